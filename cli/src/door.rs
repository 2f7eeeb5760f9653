//! The door of a run: an abstract socket that its keeper opens, named by its front process.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use casemate_keeper::control::{Envelope, MOST_BYTES, Reply, Request, VERSION, socket_name};
use casemate_keeper::sys::procfs;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
    sockopt::{Timeout, set_socket_timeout, socket_peercred},
};

use crate::failure::Failure;

/// More ancestors than any process has.
const MOST_ANCESTORS: usize = 4096;
/// How long a run that hears others is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run that goes on.
pub struct Run {
    /// Its front process: the `casemate run` that was started.
    pub front: u32,
    /// Its keeper.
    pub keeper: i32,
    socket: OwnedFd,
}

/// Who answers at a name.
enum Knocked {
    Keeper(i32, OwnedFd),
    /// A process that is no keeper of that run has taken the name.
    Other(i32),
    /// No process has the name.
    NoDoor,
}

/// The run that a process is the front of, or that it belongs to.
///
/// Of its ancestors the furthest that has a door is the front process: a program may open a door
/// for itself, but none for who is above its run, since only a child of theirs could.
pub fn of(pid: u32) -> Result<Run> {
    let parent = |pid: u32| {
        let (_, parent) = procfs::state_and_parent(i32::try_from(pid).ok()?)?;
        u32::try_from(parent).ok()
    };
    if parent(pid).is_none() {
        return Err(Failure::no(format!("there is no process {pid}")).into());
    }
    let line = std::iter::successors(Some(pid), |&pid| parent(pid).filter(|&pid| pid > 0));
    let line: Vec<u32> = line.take(MOST_ANCESTORS).collect();
    let mut other = None;
    for &front in line.iter().rev() {
        match knock(front)? {
            Knocked::Keeper(keeper, socket) => return Ok(Run { front, keeper, socket }),
            Knocked::Other(holder) => other = Some((front, holder)),
            Knocked::NoDoor => {}
        }
    }
    let none = match other {
        Some((front, holder)) => format!(
            "no run of process {pid} can be reached: process {holder}, which is no keeper of it, has \
             taken the name of run {front}"
        ),
        None => format!(
            "process {pid} belongs to no run of this machine and network namespace: name the \
             `casemate run` that was started, or a process that it protects"
        ),
    };
    Err(Failure::no(none).into())
}

fn knock(front: u32) -> Result<Knocked> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .context("cannot create a socket")?;
    let address = SocketAddrUnix::new_abstract_name(socket_name(front).as_bytes())
        .context("cannot name the socket of the run")?;
    // Who has taken the name may never accept.
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))
        .context("cannot limit the wait for the run")?;
    if connect(&socket, &address).is_err() {
        return Ok(Knocked::NoDoor);
    }
    // Names are free for all. The keeper is a child of the front process.
    let keeper = match socket_peercred(&socket) {
        Ok(holder) => holder.pid.as_raw_nonzero().get(),
        // The kernel names process 0 for one that has no number here.
        Err(error) if error.raw_os_error() == 0 => return Err(elsewhere(front).into()),
        Err(error) => return Err(error).context("cannot tell whose the socket of the run is"),
    };
    Ok(match procfs::state_and_parent(keeper) {
        Some((_, parent)) if u32::try_from(parent) == Ok(front) => Knocked::Keeper(keeper, socket),
        Some(_) => Knocked::Other(keeper),
        // It has just ended.
        None => Knocked::NoDoor,
    })
}

fn elsewhere(front: u32) -> Failure {
    Failure::no(format!(
        "the name of run {front} belongs to a process of another pid namespace: use this command in \
         the one where the run was started"
    ))
}

/// The sentence for a run that ended before it answered.
pub fn ended(front: u32) -> String {
    format!("run {front} has ended meanwhile")
}

impl Run {
    /// Asks, and waits for the reply.
    pub fn ask(&self, request: Request) -> Result<Reply> {
        let message = serde_json::to_vec(&Envelope { version: VERSION, request })?;
        // Who is refused is not listened to; the reply says why.
        let _ = send(&self.socket, &message, SendFlags::NOSIGNAL);
        let mut buffer = [0; MOST_BYTES];
        let received = loop {
            match recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                // What was not read at the other end comes before what was written there.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                received => break received,
            }
        };
        let (_, bytes) = received.context("cannot hear the reply of the run")?;
        if bytes == 0 {
            return Err(Failure::no(ended(self.front)).into());
        }
        serde_json::from_slice(&buffer[..bytes])
            .context("cannot understand the reply of the run (are both the same casemate?)")
    }
}
