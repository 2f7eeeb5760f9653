//! `sys::uffd` over the simulated kernel.

use crate::canary::Canary;
use crate::kernel::{Fill, Kernel, Raw};
use crate::scheduler;
use std::io;
use std::sync::Arc;

#[derive(Debug)]
pub enum Message {
    Missing {
        address: u64,
        write: bool,
        tid: i32,
    },
    Protected {
        address: u64,
        tid: i32,
    },
    Fork(Userfault),
    Remap {
        from: u64,
        to: u64,
        len: u64,
    },
    Remove {
        start: u64,
        end: u64,
    },
    Unmap {
        start: u64,
        end: u64,
    },
    #[allow(dead_code)]
    Unknown(u8),
}

impl Message {
    pub fn is_fault(&self) -> bool {
        matches!(self, Message::Missing { .. } | Message::Protected { .. })
    }

    pub fn fault_address(&self) -> Option<u64> {
        match self {
            Message::Missing { address, .. } | Message::Protected { address, .. } => Some(*address),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    EventPending,
    Present,
    NoMapping,
    SpaceGone,
    Other(i32),
}

impl Refusal {
    fn outcome(errno: i32) -> Result<(), Refusal> {
        Err(match errno {
            0 => return Ok(()),
            libc::EAGAIN => Refusal::EventPending,
            libc::EEXIST => Refusal::Present,
            libc::ENOENT | libc::EINVAL | libc::EFAULT => Refusal::NoMapping,
            libc::ESRCH => Refusal::SpaceGone,
            other => Refusal::Other(other),
        })
    }
}

pub const BATCH_MESSAGES: usize = 16;

/// A descriptor: the number that the simulated kernel gave it.
#[derive(Debug)]
pub struct Userfault(usize);

/// What `run_beside` polls.
#[derive(Debug, Clone, Copy)]
pub struct Beside;

impl Userfault {
    pub fn new(number: usize) -> Self {
        Userfault(number)
    }

    /// For the pager's unit tests, which are checked here, but not run.
    #[cfg(test)]
    pub fn unusable(_fd: std::os::fd::OwnedFd) -> Self {
        Userfault(usize::MAX)
    }

    pub fn number(&self) -> usize {
        self.0
    }

    fn kernel() -> Arc<Kernel> {
        scheduler::kernel()
    }

    pub fn as_fd(&self) -> Beside {
        Beside
    }

    pub fn retire(&self) {}

    pub fn register(&self, start: u64, len: u64) -> io::Result<()> {
        Self::kernel().register(self.0, start, len).map_err(io::Error::from_raw_os_error)
    }

    /// What is taken back is not simulated.
    pub fn unregister(&self, _start: u64, _len: u64) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
    }

    fn fill(&self, start: u64, len: u64, what: Fill<'_>) -> (usize, Result<(), Refusal>) {
        let (done, errno) = Self::kernel().fill(self.0, start, len, what);
        (done as usize, Refusal::outcome(errno))
    }

    pub fn copy(&self, dst: u64, src: &[u8], protect: bool) -> (usize, Result<(), Refusal>) {
        let protect = protect && !Canary::CleanUnprotected.is_put_back();
        self.fill(dst, src.len() as u64, Fill::Copy { bytes: src, protect })
    }

    pub fn zero(&self, start: u64, len: u64) -> (usize, Result<(), Refusal>) {
        self.fill(start, len, Fill::Zeros)
    }

    pub fn poison(&self, start: u64, len: u64) -> Result<(), Refusal> {
        self.fill(start, len, Fill::Poison).1
    }

    pub fn protect(&self, start: u64, len: u64, protected: bool) -> Result<(), Refusal> {
        let result = Self::kernel().protect(self.0, start, len, protected);
        Refusal::outcome(result.err().unwrap_or(0))
    }

    pub fn wake(&self, start: u64, len: u64) {
        if Canary::ForgetsWakes.is_put_back() && scheduler::random(100) == 0 {
            return;
        }
        Self::kernel().wake(self.0, start, len);
    }

    pub fn quiet(&self, unregistered: u64) -> Result<(), Refusal> {
        match self.zero(unregistered, 4096).1 {
            Err(Refusal::NoMapping) | Ok(()) => Ok(()),
            Err(other) => Err(other),
        }
    }

    #[must_use]
    pub fn is_gone(&self) -> bool {
        Self::kernel().is_gone(self.0)
    }

    pub fn read(&self, into: &mut Vec<Message>) -> io::Result<usize> {
        let mut messages = Self::kernel().read(self.0, BATCH_MESSAGES);
        let count = messages.len();
        if Canary::ForgetsRemovals.is_put_back() {
            messages.retain(|message| !matches!(message, Raw::Remove { .. }));
        }
        into.extend(messages.into_iter().map(|message| match message {
            Raw::Missing { address, write, tid } => Message::Missing { address, write, tid },
            Raw::Protected { address, tid } => Message::Protected { address, tid },
            Raw::Fork { uffd } => Message::Fork(Userfault(uffd)),
            Raw::Remap { from, to, len } => Message::Remap { from, to, len },
            Raw::Remove { start, end } => Message::Remove { start, end },
            Raw::Unmap { start, end } => Message::Unmap { start, end },
        }));
        Ok(count)
    }
}
