//! Signals that the calling process has blocked: which are pending, and what they say.

use super::process;
use std::io;
use std::os::fd::AsRawFd;

/// A set of signals, a bit each, the lowest for signal 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalSet(u64);

impl SignalSet {
    /// Every signal.
    pub const ALL: SignalSet = SignalSet(u64::MAX);

    /// Those that are pending for the calling thread or its process.
    pub fn pending() -> Self {
        let mut set = 0_u64;
        // SAFETY: the kernel fills a set of the size that is passed.
        unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut set, size_of_val(&set)) };
        SignalSet(set)
    }

    /// One signal.
    pub fn of(signal: i32) -> Self {
        SignalSet(1 << (signal - 1))
    }

    /// Those that are not among `others`.
    pub fn without(self, others: SignalSet) -> Self {
        SignalSet(self.0 & !others.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `signal` is among them.
    pub fn has(self, signal: i32) -> bool {
        self.0 & SignalSet::of(signal).0 != 0
    }

    /// Each of them, in the order of their numbers.
    pub fn each(self) -> impl Iterator<Item = i32> {
        (1..=64).filter(move |&signal| self.has(signal))
    }
}

/// A signal that was received: the kernel's `siginfo_t`, of which the first fields are numbers of 4
/// bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received([u8; Self::BYTES]);

const _: () = assert!(size_of::<Received>() == size_of::<libc::siginfo_t>());

impl Received {
    /// What the kernel copies.
    pub const BYTES: usize = 128;

    /// Takes the pending signal of `among` that is delivered first, if there is one.
    pub fn take(among: SignalSet) -> Option<Self> {
        let mut taken = Received([0; Self::BYTES]);
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set, the time and the record are live for the call, and as long and as
        // aligned as what the kernel reads and writes.
        let signal = unsafe {
            libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const among.0,
                &raw mut taken,
                &raw const at_once,
                size_of_val(&among.0),
            )
        };
        (signal > 0).then_some(taken)
    }

    /// What another process has taken.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Received(bytes)
    }

    /// The same, to be told to another process.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    fn number(&self, index: usize) -> i32 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| self.0[index * 4 + at]);
        i32::from_ne_bytes([a, b, c, d])
    }

    /// Its number; 0 if this is none.
    pub fn signal(&self) -> i32 {
        self.number(0)
    }

    /// How it was sent; above 0 by the kernel.
    pub fn code(&self) -> i32 {
        self.number(2)
    }

    /// The process that sent it; none if that was the kernel.
    pub fn sender(&self) -> Option<i32> {
        (self.code() <= 0).then(|| self.number(4))
    }

    /// Sends the same to the process of a pidfd; what sigqueue(3) has sent with its value, and the
    /// number of who sent it.
    ///
    /// # Errors
    /// Those of `pidfd_send_signal(2)`: the process has ended.
    pub fn pass_on(&self, to: &impl AsRawFd) -> io::Result<()> {
        if self.code() != libc::SI_QUEUE {
            return process::signal_pidfd(to, self.signal());
        }
        // SAFETY: the record is live for the call, and as long as what the kernel reads.
        let r = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, to.as_raw_fd(), self.signal(), self, 0)
        };
        if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
