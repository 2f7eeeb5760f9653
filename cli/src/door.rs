//! The door of a run: an abstract socket that its keeper opens, named by its front process.
//!
//! ```text
//! of          the run of a process                                    door.rs
//! runs        of a process, or all that may be changed                door/runs.rs
//! Run::ask    one request, one reply; then the keeper hangs up        door.rs
//! refusal     the sentence for each refusal                           door/refusal.rs
//! told        what came of each run, for people or as JSON            door/told.rs
//! ```

pub mod refusal;
pub mod runs;
pub mod told;

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
use zeroize::Zeroizing;

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
    /// The user whose it is.
    pub user: u32,
    socket: OwnedFd,
}

/// Who answers at a name.
enum Knocked {
    Keeper(Run),
    /// A process that is no keeper of that run has taken the name.
    Other(i32),
    /// No process has the name.
    NoDoor,
}

/// What is found of the run of a process.
enum Sought {
    Run(Run),
    /// Only a name that another process has taken.
    Taken {
        front: u32,
        holder: i32,
    },
    Nothing,
}

/// The run that a process is the front of, or that it belongs to.
pub fn of(pid: u32) -> Result<Run> {
    if parent(pid).is_none() {
        return Err(Failure::no(format!("there is no process {pid}")).into());
    }
    let none = match seek(pid)? {
        Sought::Run(run) => return Ok(run),
        Sought::Taken { front, holder } => format!(
            "no run of process {pid} can be reached: process {holder}, which is no keeper of it, \
             has taken the name of run {front}"
        ),
        Sought::Nothing => format!(
            "process {pid} belongs to no run of this machine and network namespace: name the \
             `casemate run` that was started, or a process that it protects"
        ),
    };
    Err(Failure::no(none).into())
}

fn parent(pid: u32) -> Option<u32> {
    let (_, parent) = procfs::state_and_parent(i32::try_from(pid).ok()?)?;
    u32::try_from(parent).ok()
}

/// Of a process and its ancestors the furthest that has a door is the front process: a program may
/// open a door for itself, but none for who is above its run, since only a child of theirs could.
fn seek(pid: u32) -> Result<Sought> {
    let line = std::iter::successors(Some(pid), |&pid| parent(pid).filter(|&pid| pid > 0));
    let line: Vec<u32> = line.take(MOST_ANCESTORS).collect();
    let mut sought = Sought::Nothing;
    for &front in line.iter().rev() {
        match knock(front)? {
            Knocked::Keeper(run) => return Ok(Sought::Run(run)),
            Knocked::Other(holder) => sought = Sought::Taken { front, holder },
            Knocked::NoDoor => {}
        }
    }
    Ok(sought)
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
    let (keeper, user) = match socket_peercred(&socket) {
        Ok(holder) => (holder.pid.as_raw_nonzero().get(), holder.uid.as_raw()),
        // The kernel names process 0 for one that has no number here.
        Err(error) if error.raw_os_error() == 0 => return Err(elsewhere(front).into()),
        Err(error) => return Err(error).context("cannot tell whose the socket of the run is"),
    };
    Ok(match procfs::state_and_parent(keeper) {
        Some((_, parent)) if u32::try_from(parent) == Ok(front) => {
            Knocked::Keeper(Run { front, keeper, user, socket })
        }
        Some(_) => Knocked::Other(keeper),
        // It has just ended.
        None => Knocked::NoDoor,
    })
}

fn elsewhere(front: u32) -> Failure {
    Failure::no(format!(
        "the name of run {front} belongs to a process of another pid namespace: use this command \
         in the one where the run was started"
    ))
}

/// The sentence for a run that ended before it answered.
pub fn ended(front: u32) -> String {
    format!("run {front} has ended meanwhile")
}

impl Run {
    /// Asks, and waits for the reply.
    pub fn ask(&self, request: &Request) -> Result<Reply> {
        let message = written(request)?;
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

/// A request as it is sent, wiped when dropped: the key that opens a lock may be in it. It has room
/// for the longest message from the start, since a vector that grows leaves copies behind.
fn written(request: &Request) -> Result<Zeroizing<Vec<u8>>> {
    let mut message = Zeroizing::new(Vec::with_capacity(MOST_BYTES));
    serde_json::to_writer(&mut *message, &Envelope { version: VERSION, request })?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_keeper::lock::{Hex, LockKey};

    #[test]
    fn a_message_stays_where_it_was_begun() {
        let hex = "ab".repeat(32);
        let message = written(&Request::Unlock(Hex([0xab; 32]))).expect("JSON");
        let text = format!(r#"{{"version":1,"request":{{"unlock":"{hex}"}}}}"#);
        assert_eq!(String::from_utf8_lossy(&message), text);
        assert_eq!(message.capacity(), MOST_BYTES);
        let most = u32::MAX;
        let key =
            LockKey { salt: Hex([7; 16]), memory_kib: most, passes: most, public: Hex([9; 32]) };
        assert_eq!(written(&Request::Lock(key)).expect("JSON").capacity(), MOST_BYTES);
    }
}
