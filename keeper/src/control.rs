//! The door by which a run is changed from outside while it goes on (`casemate set`).
//!
//! ```text
//! serve      an abstract socket, a thread that hears one caller at a time    control.rs
//!   admit      the same user or root, and no process of the run              control/caller.rs
//!   Request    what was asked, if it is understood                          control/protocol.rs
//!   Order      to the watcher, which changes the size, and answers           watch/resize.rs
//! ```
//!
//! Nothing that a caller says or leaves out ends a run.

mod caller;
mod protocol;

use crate::config::{ClearSize, PAGE_BYTES};
use crate::pager::Pager;
use crate::sys::socket;
pub use protocol::{Envelope, MOST_BYTES, Refusal, Reply, Request, VERSION, WantedSize};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The longest time that a caller is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks whether the run has ended while an order is carried out.
const LOOK: Duration = Duration::from_millis(100);

/// The abstract name of the socket of the run whose front process has this number.
#[must_use]
pub fn socket_name(front: u32) -> String {
    format!("casemate-control-{front}")
}

/// Another size of the Clear, for the watcher.
#[derive(Debug)]
pub(crate) struct Order {
    pub size: ClearSize,
    pub answer: Sender<Answer>,
}

/// What became of it. Sizes are in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether it is in force; otherwise the old one is.
    pub is_in_force: bool,
    /// The bound before.
    pub before: u64,
    /// The bound in force.
    pub limit: u64,
    /// Plaintext at that moment.
    pub used: u64,
}

/// The door of a run. It closes when this is dropped.
pub(crate) struct Door(Arc<OwnedFd>);

impl Drop for Door {
    fn drop(&mut self) {
        // The descriptor itself stays open in the front process, whose table is the same.
        socket::shut(&self.0);
    }
}

/// Opens the door of the run of this front process, and returns it with what is ordered there.
pub(crate) fn serve(front: u32, pager: &Arc<Pager>) -> io::Result<(Door, Receiver<Order>)> {
    let listener = Arc::new(socket::listen(&socket_name(front))?);
    let (orders, ordered) = channel();
    let (heard, pager) = (Arc::clone(&listener), Arc::clone(pager));
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        hear(&heard, &pager, &orders);
    })?;
    Ok((Door(listener), ordered))
}

fn hear(listener: &OwnedFd, pager: &Pager, orders: &Sender<Order>) {
    while pager.ending().is_none() {
        match socket::accept(listener) {
            Ok(caller) => {
                // An error means that the caller has gone, or says nothing.
                let _ = converse(&caller, pager, orders);
            }
            // The door is shut.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
            // No descriptor is left, for example.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

fn converse(caller: &OwnedFd, pager: &Pager, orders: &Sender<Order>) -> io::Result<()> {
    socket::set_patience(caller, PATIENCE)?;
    let reply = match caller::admit(caller, std::process::id() as i32) {
        // Who is not admitted is not listened to either.
        Err(refusal) => Reply::Refused(refusal),
        Ok(()) => {
            let mut buffer = [0; MOST_BYTES];
            match socket::receive(caller, &mut buffer)?.map(protocol::understand) {
                Some(Ok(Request::SetClear(size))) => set_clear(size, pager, orders),
                Some(Err(refusal)) => Reply::Refused(refusal),
                None => Reply::Refused(Refusal::Malformed),
            }
        }
    };
    socket::send(caller, &protocol::written(&reply))
}

fn set_clear(size: WantedSize, pager: &Pager, orders: &Sender<Order>) -> Reply {
    let size = match size.checked() {
        Ok(size) => size,
        Err(refusal) => return Reply::Refused(refusal),
    };
    let (answer, answered) = channel();
    let begun = Instant::now();
    if orders.send(Order { size, answer }).is_err() {
        return Reply::Refused(Refusal::Ending);
    }
    pager.attention.ring();
    loop {
        match answered.recv_timeout(LOOK) {
            Ok(answer) => return reply_to(answer, begun.elapsed()),
            Err(RecvTimeoutError::Timeout) if pager.ending().is_none() => {}
            Err(_) => return Reply::Refused(Refusal::Ending),
        }
    }
}

fn reply_to(answer: Answer, elapsed: Duration) -> Reply {
    let bytes = |pages: u64| pages * PAGE_BYTES as u64;
    let (clear_bytes, plaintext_bytes) = (bytes(answer.limit), bytes(answer.used));
    if !answer.is_in_force {
        return Reply::NotReached { clear_bytes, plaintext_bytes };
    }
    Reply::Set {
        clear_bytes,
        before_bytes: bytes(answer.before),
        plaintext_bytes,
        elapsed_ms: elapsed.as_micros() as f64 / 1e3,
    }
}
