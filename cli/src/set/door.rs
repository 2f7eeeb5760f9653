//! The door of a run: an abstract socket that its keeper opens, named by its front process.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use casemate_keeper::control::{Envelope, MOST_BYTES, Reply, Request, VERSION, socket_name};
use casemate_keeper::sys::procfs;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt::socket_peercred,
};

use crate::failure::Failure;

/// More ancestors than any process has.
const MOST_ANCESTORS: u32 = 4096;

/// A run that goes on.
pub struct Run {
    /// Its front process: the `casemate run` that was started.
    pub front: u32,
    socket: OwnedFd,
}

/// The run that a process is the front of, or that it belongs to.
pub fn of(pid: u32) -> Result<Run> {
    let parent = |pid: u32| {
        let (_, parent) = procfs::state_and_parent(i32::try_from(pid).ok()?)?;
        u32::try_from(parent).ok().filter(|parent| *parent > 1)
    };
    if parent(pid).is_none() && pid != 1 && procfs::state_and_parent(pid as i32).is_none() {
        return Err(Failure::no(format!("there is no process {pid}")).into());
    }
    let mut next = Some(pid);
    for _ in 0..MOST_ANCESTORS {
        let Some(front) = next else { break };
        if let Some(socket) = knock(front)? {
            return Ok(Run { front, socket });
        }
        next = parent(front);
    }
    Err(Failure::no(format!(
        "process {pid} belongs to no run of this machine and network namespace: name the \
         `casemate run` that was started, or a process that it protects"
    ))
    .into())
}

/// The door of the run with this front process, if it has one.
fn knock(front: u32) -> Result<Option<OwnedFd>> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .context("cannot create a socket")?;
    let address = SocketAddrUnix::new_abstract_name(socket_name(front).as_bytes())
        .context("cannot name the socket of the run")?;
    if connect(&socket, &address).is_err() {
        return Ok(None);
    }
    // Names are free for all. The keeper is a child of the front process.
    let keeper = socket_peercred(&socket).context("cannot tell whose the socket of the run is")?;
    let keeper = keeper.pid.as_raw_nonzero().get();
    match procfs::state_and_parent(keeper) {
        Some((_, parent)) if u32::try_from(parent) == Ok(front) => Ok(Some(socket)),
        Some(_) => Err(Failure::no(format!(
            "process {keeper}, which is not the keeper of run {front}, has taken its name: that run \
             cannot be changed"
        ))
        .into()),
        // It has just ended.
        None => Ok(None),
    }
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
