//! Signals of the front process, which are meant for the program: read from a descriptor while the
//! run lasts, and passed on where the program has not got them already.

use super::limits::Limits;
use super::witness::Witness;
use crate::sys::process;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What a process does with signals, and its limits, as the program is to find them.
pub(crate) struct Before {
    limits: Limits,
    mask: libc::sigset_t,
    on_child: libc::sigaction,
}

impl Before {
    /// Puts it back in force for the calling process. Safe between fork and exec.
    pub fn restore(&self) {
        self.limits.restore();
        // SAFETY: both were read from the kernel, and a handler in there is this very program's.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.on_child, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

/// Signals of this process, blocked and read from descriptors while the run lasts.
pub(super) struct Signals {
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
    /// Takes the signals that come for this process, and what its limits allow.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn take() -> io::Result<Self> {
        // First of all, for there may be no descriptor left.
        let limits = Limits::raise();
        // SAFETY: signal sets and actions are plain data; the calls fill them and the descriptor is
        // new.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // Faults of our own must still kill us.
            for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
                libc::sigdelset(&mut all, own);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &all, &mut mask);
            // Where it is ignored the kernel keeps no child's end for us.
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

    /// Takes note of what is known of children.
    pub fn hear_children(&self) {
        while read(&self.children).is_some() {}
    }

    fn next(&self) -> Option<libc::signalfd_siginfo> {
        read(&self.fd)
    }

    /// The run is over. What came for the program after its end is dropped, for it would end us.
    pub fn give_back(&self) {
        while self.next().is_some() {}
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

/// The program's side of it.
pub(super) struct Forwarding {
    /// A descriptor of the keeper's, in the table that it shares with us.
    program: i32,
    keeper: i32,
    /// None where the kernel gave no process for it.
    witness: Option<Witness>,
}

impl Forwarding {
    /// Signals go to the process of the descriptor `program` from now on.
    pub fn to(program: i32, keeper: i32) -> Self {
        Forwarding { program, keeper, witness: Witness::new().ok() }
    }

    /// Passes on what came, all but what the program got by itself.
    pub fn pass_on(&mut self, signals: &Signals) {
        loop {
            self.look();
            let Some(info) = signals.next() else { return };
            if !self.has_it(&info) {
                // An error means that the program is gone.
                let _ = process::signal_pidfd(&self.program, info.ssi_signo as i32);
            }
        }
    }

    fn has_it(&mut self, info: &libc::signalfd_siginfo) -> bool {
        let signal = info.ssi_signo as i32;
        let from_keeper = info.ssi_code <= 0 && info.ssi_pid as i32 == self.keeper;
        if signal == libc::SIGCONT && from_keeper {
            // Ours: the program goes on and we do (`keeper/pause.rs`).
            return true;
        }
        // It may have come after the last look.
        self.look();
        match &mut self.witness {
            Some(witness) => witness.has_seen(signal),
            // All that the kernel sends by itself to a program of the terminal goes to the group.
            None => info.ssi_code > 0,
        }
    }

    fn look(&mut self) {
        if self.witness.as_mut().is_some_and(|witness| witness.look().is_err()) {
            self.witness = None;
        }
    }
}
