//! The door by which a run is changed from outside while it goes on (`casemate set`).
//!
//! ```text
//! serve      an abstract socket, a thread that hears one caller at a time    control.rs
//!   Callers    those that said nothing yet: who speaks first is heard first   control/callers.rs
//!   admit      the same user or root, and no process of the run              control/caller.rs
//!   Request    what was asked, if it is understood                          control/protocol.rs
//!   Order      to the watcher, which changes the size, and answers           watch/resize.rs
//!   LockOrder  to the watcher, which locks the run, or lets it go on         watch/lock.rs
//!   once       a thread that rotates the keys, and answers                   rotate.rs
//! ```
//!
//! Nothing that a caller says or leaves out ends a run.

mod caller;
mod callers;
mod protocol;

use crate::config::{ClearSize, PAGE_BYTES};
use crate::lock::{LockKey, Offer, SealingKey};
use crate::pager::Pager;
use crate::rotate::{self, Rotated};
use crate::sys::socket;
use callers::Callers;
pub use protocol::{Envelope, MOST_BYTES, Obstacle, Refusal, Reply, Request, VERSION, WantedSize};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use zeroize::Zeroize;

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

/// To lock the run, or to let it go on, for the watcher.
#[derive(Debug)]
pub(crate) enum LockOrder {
    Lock { key: LockKey, answer: Sender<LockAnswer> },
    Unlock { sealing: SealingKey, answer: Sender<LockAnswer> },
}

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockAnswer {
    /// Locked, under this.
    Locked {
        offer: Offer,
        found: Locked,
    },
    Unlocked,
    Refused(Refusal),
    Hindered(Obstacle),
}

/// What was found when the run was locked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Locked {
    /// Anonymous pages that can be read still.
    pub plaintext_pages: u64,
    /// Other pages of the program that can be read.
    pub outside_pages: u64,
    /// Threads that stand still, and those among them whose registers stay with the kernel.
    pub threads: u64,
    pub threads_in_calls: u64,
}

/// What is ordered at the door.
pub(crate) struct Orders {
    pub sizes: Receiver<Order>,
    pub locks: Receiver<LockOrder>,
}

/// The other ends of [`Orders`].
struct Desk {
    sizes: Sender<Order>,
    locks: Sender<LockOrder>,
    /// What the run is locked under. Callers are heard one at a time, by one thread: it knows.
    locked: Option<Offer>,
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
pub(crate) fn serve(front: u32, pager: &Arc<Pager>) -> io::Result<(Door, Orders)> {
    let listener = Arc::new(socket::listen(&socket_name(front))?);
    let ((sizes, sizes_ordered), (locks, locks_ordered)) = (channel(), channel());
    let (heard, pager) = (Arc::clone(&listener), Arc::clone(pager));
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        hear(&heard, &pager, &mut Desk { sizes, locks, locked: None });
    })?;
    Ok((Door(listener), Orders { sizes: sizes_ordered, locks: locks_ordered }))
}

fn hear(listener: &OwnedFd, pager: &Arc<Pager>, desk: &mut Desk) {
    let mut callers = Callers::new(PATIENCE);
    while pager.ending().is_none() {
        match callers.next(listener, admit) {
            Ok(caller) => {
                // An error means that the caller has gone, or says nothing.
                let _ = converse(caller, pager, desk);
            }
            // The door is shut.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
            // No descriptor is left, for example.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Whether a caller may speak. Who may not is told so, and not listened to.
fn admit(caller: &OwnedFd) -> bool {
    let admitted = caller::admit(caller, std::process::id() as i32);
    // An error means that the caller has gone.
    let _ = socket::set_patience(caller, PATIENCE);
    if let Err(refusal) = admitted {
        let _ = socket::send(caller, &protocol::written(&Reply::Refused(refusal)));
    }
    admitted.is_ok()
}

/// Hears what a caller has said, and does it.
fn converse(caller: OwnedFd, pager: &Arc<Pager>, desk: &mut Desk) -> io::Result<()> {
    let mut buffer = [0; MOST_BYTES];
    let asked = socket::receive(&caller, &mut buffer)?.map(protocol::understand);
    // The sealing key of a lock may be in it.
    buffer.zeroize();
    let reply = match asked.unwrap_or(Err(Refusal::Malformed)) {
        // It takes long: others are heard meanwhile.
        Ok(Request::Rotate) if desk.locked.is_none() => return rotate_keys(caller, pager),
        Ok(request) => desk.attend(request, pager),
        Err(refusal) => Reply::Refused(refusal),
    };
    socket::send(&caller, &protocol::written(&reply))
}

/// Has the keys rotated. The thread that does so replies.
fn rotate_keys(caller: OwnedFd, pager: &Arc<Pager>) -> io::Result<()> {
    let begun = Instant::now();
    let kept = caller.try_clone()?;
    let answer = move |rotated| {
        let reply = match rotated {
            Rotated::Done { pages: resealed_pages } => {
                let elapsed_ms = begun.elapsed().as_micros() as f64 / 1e3;
                Reply::Rotated { resealed_pages, elapsed_ms }
            }
            Rotated::Violated => Reply::Refused(Refusal::Violated),
            Rotated::Ending => Reply::Refused(Refusal::Ending),
        };
        // An error means that the caller has gone.
        let _ = socket::send(&kept, &protocol::written(&reply));
    };
    let refusal = match rotate::once(pager, answer) {
        Ok(true) => return Ok(()),
        Ok(false) => Refusal::Rotating,
        Err(_) => Refusal::Exhausted,
    };
    socket::send(&caller, &protocol::written(&Reply::Refused(refusal)))
}

impl Desk {
    fn attend(&mut self, request: Request, pager: &Pager) -> Reply {
        let refused = Reply::Refused;
        match (request, self.locked) {
            (Request::SetClear(size), None) => set_clear(size, pager, &self.sizes),
            (Request::Lock(key), None) => {
                self.lock(|answer| LockOrder::Lock { key, answer }, pager)
            }
            (Request::SetClear(_) | Request::Lock(_) | Request::Rotate, Some(_)) => {
                refused(Refusal::Locked)
            }
            // Another thread attends to it.
            (Request::Rotate, None) => refused(Refusal::Malformed),
            (Request::AskOffer, Some(offer)) => Reply::Offered(offer),
            (Request::Unlock(mut key), Some(_)) => {
                let sealing = SealingKey::new(key.0);
                key.0.zeroize();
                self.lock(|answer| LockOrder::Unlock { sealing, answer }, pager)
            }
            (Request::AskOffer | Request::Unlock(_), None) => refused(Refusal::NotLocked),
        }
    }

    fn lock(
        &mut self,
        order: impl FnOnce(Sender<LockAnswer>) -> LockOrder,
        pager: &Pager,
    ) -> Reply {
        let (answer, answered) = channel();
        let begun = Instant::now();
        let sent = self.locks.send(order(answer)).is_ok();
        let Some(answer) = sent.then(|| await_answer(&answered, pager)).flatten() else {
            return Reply::Refused(Refusal::Ending);
        };
        let bytes = |pages: u64| pages * PAGE_BYTES as u64;
        let elapsed_ms = begun.elapsed().as_micros() as f64 / 1e3;
        match answer {
            LockAnswer::Locked { offer, found } => {
                self.locked = Some(offer);
                Reply::Locked {
                    plaintext_bytes: bytes(found.plaintext_pages),
                    outside_bytes: bytes(found.outside_pages),
                    threads: found.threads,
                    threads_in_calls: found.threads_in_calls,
                    elapsed_ms,
                }
            }
            LockAnswer::Unlocked => {
                self.locked = None;
                Reply::Unlocked { elapsed_ms }
            }
            LockAnswer::Refused(refusal) => Reply::Refused(refusal),
            LockAnswer::Hindered(obstacle) => Reply::NotLocked(obstacle),
        }
    }
}

/// What the watcher answers; none if the run ends first.
fn await_answer<T>(answered: &Receiver<T>, pager: &Pager) -> Option<T> {
    pager.attention.ring();
    loop {
        match answered.recv_timeout(LOOK) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if pager.ending().is_none() => {}
            Err(_) => return None,
        }
    }
}

fn set_clear(size: WantedSize, pager: &Pager, orders: &Sender<Order>) -> Reply {
    let size = match size.checked() {
        Ok(size) => size,
        Err(refusal) => return Reply::Refused(refusal),
    };
    let (answer, answered) = channel();
    let begun = Instant::now();
    let sent = orders.send(Order { size, answer }).is_ok();
    match sent.then(|| await_answer(&answered, pager)).flatten() {
        Some(answer) => reply_to(answer, begun.elapsed()),
        None => Reply::Refused(Refusal::Ending),
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
