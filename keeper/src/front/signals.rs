//! Signals sent to the front process, which are meant for the program: blocked during the run, and
//! forwarded unless the program has received them already.

use super::witness::Witness;
use crate::sys::own_limits::Limits;
use crate::sys::signals::{Received, SignalSet};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The signal state and the limits that the program is to start with.
pub(crate) struct Before {
    limits: Limits,
    mask: libc::sigset_t,
    on_child: libc::sigaction,
}

impl Before {
    /// Restores them for the calling process. Safe between fork and exec.
    pub fn restore(&self) {
        self.limits.restore();
        // SAFETY: both were read from the kernel, and a handler in there is this very program's.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.on_child, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

/// Signals of this process, blocked while the run lasts.
pub(super) struct Signals {
    /// Readable while one is pending that may be meant for the program.
    fd: OwnedFd,
    /// SIGCHLD, which is never meant for the program.
    children: OwnedFd,
    pub before: Before,
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

impl Signals {
    /// Blocks the signals of this process, opens their descriptors, and raises the soft limits.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn take() -> io::Result<Self> {
        // First, since without it there may be no descriptor left.
        let limits = Limits::raise();
        // SAFETY: signal sets and actions are plain data; the calls fill them and the descriptor is
        // new.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // Faults of the front process itself must still kill it.
            for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
                libc::sigdelset(&mut all, own);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &all, &mut mask);
            // While SIGCHLD is ignored, the kernel reaps children by itself, and their ends cannot
            // be read.
            let mut on_child: libc::sigaction = std::mem::zeroed();
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, &default, &mut on_child);
            let mut child: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut child);
            libc::sigaddset(&mut child, libc::SIGCHLD);
            libc::sigdelset(&mut all, libc::SIGCHLD);
            let (fd, children) = (descriptor(&all)?, descriptor(&child)?);
            Ok(Signals { fd, children, before: Before { limits, mask, on_child } })
        }
    }

    /// Readable when a child has ended, stopped or gone on since [`Signals::hear_children`].
    pub fn children(&self) -> i32 {
        self.children.as_raw_fd()
    }

    /// Discards the pending SIGCHLD, before the states of children are read.
    pub fn hear_children(&self) {
        while read(&self.children).is_some() {}
    }

    /// Ends the forwarding after the run. Signals that came for the program after its end are
    /// dropped, since they would end this process.
    pub fn give_back(&self) {
        while read(&self.fd).is_some() {}
        self.hear_children();
        self.before.restore();
    }
}

/// A descriptor for signals that are blocked.
fn descriptor(signals: &libc::sigset_t) -> io::Result<OwnedFd> {
    // SAFETY: the set is live for the call; the descriptor is new, so the OwnedFd is its only
    // owner.
    unsafe {
        let fd = libc::signalfd(-1, signals, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

fn read(signals: &OwnedFd) -> Option<libc::signalfd_siginfo> {
    // SAFETY: siginfo is plain data of the size that is passed.
    unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let size = size_of_val(&info);
        let n = libc::read(signals.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), size);
        (n == size as isize).then_some(info)
    }
}

/// Forwards signals to the program.
pub(super) struct Forwarding {
    /// The program's pidfd, opened by the keeper in the shared descriptor table.
    program: i32,
    keeper: i32,
    /// None if its process could not be created, or has ended.
    witness: Option<Witness>,
    group: GroupSignals,
}

impl Forwarding {
    /// Forwards signals to the process of the pidfd `program`.
    pub fn to(program: i32, keeper: i32) -> Self {
        let group = GroupSignals::default();
        Forwarding { program, keeper, witness: Witness::new().ok(), group }
    }

    /// Forwards the signals that came, except those that the program received itself.
    pub fn pass_on(&mut self) {
        loop {
            // In this order: of what is pending before the witness is asked it says whether it went
            // to the group; what it says of signals that are not pending after that is merged with
            // one that was taken.
            let before = meant_for_the_program();
            self.ask();
            let after = meant_for_the_program();
            self.group.keep(after);
            if after.is_empty() {
                return;
            }
            // One of each: a second of the same number may have come since the witness was asked.
            for taken in before.each().filter_map(|signal| Received::take(SignalSet::of(signal))) {
                if !self.has_it(&taken) {
                    // An error means that the program is gone.
                    let _ = taken.pass_on(&self.program);
                }
            }
        }
    }

    fn ask(&mut self) {
        match self.witness.as_mut().map(Witness::ask) {
            Some(Ok(received)) => self.group.0.extend(received),
            Some(Err(_)) => self.witness = None,
            None => {}
        }
    }

    fn has_it(&mut self, taken: &Received) -> bool {
        if taken.signal() == libc::SIGCONT && taken.sender() == Some(self.keeper) {
            // Sent by the keeper, because the program was continued (`keeper/src/pause.rs`).
            return true;
        }
        match &self.witness {
            Some(_) => self.group.had(taken),
            // Signals that the kernel itself sends for a terminal go to the whole group.
            None => taken.sender().is_none(),
        }
    }
}

/// Pending signals of this process that may be for the program.
fn meant_for_the_program() -> SignalSet {
    SignalSet::pending().without(SignalSet::of(libc::SIGCHLD))
}

/// Signals that went to the process group, which this process has received too and not taken yet.
#[derive(Default)]
struct GroupSignals(Vec<Received>);

impl GroupSignals {
    /// Drops those that are not among `pending`.
    fn keep(&mut self, pending: SignalSet) {
        self.0.retain(|received| pending.has(received.signal()));
    }

    /// Whether a signal that was taken went to the group. To be called once for each.
    fn had(&mut self, taken: &Received) -> bool {
        // Each real-time signal is delivered. Of the others one is pending at most, that says who
        // sent the first.
        let is_queued = taken.signal() >= libc::SIGRTMIN();
        let is_it = |received: &Received| match is_queued {
            true => received == taken,
            false => received.signal() == taken.signal(),
        };
        let found = self.0.iter().position(is_it);
        found.map(|index| self.0.remove(index)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As kill(2) sends it.
    fn received(signal: i32, sender: i32) -> Received {
        let mut bytes = [0; Received::BYTES];
        for (at, number) in [(0, signal), (8, libc::SI_USER), (16, sender)] {
            bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        Received::from_bytes(bytes)
    }

    #[test]
    fn a_signal_to_the_group_is_had_once() {
        let mut group = GroupSignals(vec![received(libc::SIGTERM, 7), received(libc::SIGINT, 7)]);
        assert!(!group.had(&received(libc::SIGHUP, 7)));
        // Pending were one to the front alone, by 8, and one to the group: they are merged.
        assert!(group.had(&received(libc::SIGTERM, 8)));
        assert!(!group.had(&received(libc::SIGTERM, 7)));
        assert!(group.had(&received(libc::SIGINT, 7)));
    }

    #[test]
    fn real_time_signals_are_told_apart_by_who_sent_them() {
        let signal = libc::SIGRTMIN();
        let mut group = GroupSignals(vec![received(signal, 7), received(signal, 7)]);
        assert!(!group.had(&received(signal, 8)));
        assert!(group.had(&received(signal, 7)) && group.had(&received(signal, 7)));
        assert!(!group.had(&received(signal, 7)));
    }

    #[test]
    fn what_is_not_pending_was_merged_with_what_was_taken() {
        let mut group = GroupSignals(vec![received(libc::SIGTERM, 7), received(libc::SIGINT, 7)]);
        group.keep(SignalSet::of(libc::SIGINT));
        assert!(!group.had(&received(libc::SIGTERM, 7)));
        assert!(group.had(&received(libc::SIGINT, 7)));
    }
}
