//! Signals sent to the front process, which are meant for the program: read from a descriptor
//! during the run, and forwarded unless the program has received them already.

use super::witness::Witness;
use crate::sys::own_limits::Limits;
use crate::sys::process;
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

    fn next(&self) -> Option<libc::signalfd_siginfo> {
        read(&self.fd)
    }

    /// Ends the forwarding after the run. Signals that came for the program after its end are
    /// dropped, since they would end this process.
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

/// Forwards signals to the program.
pub(super) struct Forwarding {
    /// The program's pidfd, opened by the keeper in the shared descriptor table.
    program: i32,
    keeper: i32,
    /// None if its process could not be created.
    witness: Option<Witness>,
}

impl Forwarding {
    /// Forwards signals to the process of the pidfd `program`.
    pub fn to(program: i32, keeper: i32) -> Self {
        Forwarding { program, keeper, witness: Witness::new().ok() }
    }

    /// Forwards the signals that came, except those that the program received itself.
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
            // Sent by the keeper, because the program was continued (`keeper/src/pause.rs`).
            return true;
        }
        // The signal may have come after the last look.
        self.look();
        match &mut self.witness {
            Some(witness) => witness.has_seen(signal),
            // Signals that the kernel itself sends for a terminal go to the whole group.
            None => info.ssi_code > 0,
        }
    }

    fn look(&mut self) {
        if self.witness.as_mut().is_some_and(|witness| witness.look().is_err()) {
            self.witness = None;
        }
    }
}
