//! The keeper's end of the mailbox.
use super::sys;
use casemate_agent::{
    DATA_OFFSET, Header, MAGIC, MAILBOX_BYTES, OPS, OPS_OFFSET, Op, VERSION, WAITS_ON_BELL,
    WAITS_ON_FUTEX,
};
use casemate_core::PAGE_BYTES;
use std::io::{self, Error};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// Shared memory that one agent has mapped too.
pub(super) struct Mailbox {
    start: NonNull<u8>,
    memory: OwnedFd,
}

// SAFETY: the mapping is not bound to a thread; `&self` methods touch it by atomics or raw copies
// only.
unsafe impl Send for Mailbox {}

impl Mailbox {
    pub(super) fn new(program: i32) -> io::Result<Mailbox> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL;
        // SAFETY: the name ends in 0; the descriptor is new and owned from here on.
        let memory = unsafe {
            let fd = libc::memfd_create(c"casemate-mailbox".as_ptr(), flags);
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        truncate(memory.as_fd())?;
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                MAILBOX_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                std::os::fd::AsRawFd::as_raw_fd(&memory),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made. Plaintext passes through it: not into core
        // files, and not out to swap where the limit on locked memory allows that.
        unsafe {
            libc::madvise(start, MAILBOX_BYTES, libc::MADV_DONTDUMP);
            libc::mlock(start, MAILBOX_BYTES);
        }
        let start = NonNull::new(start.cast()).ok_or(Error::from_raw_os_error(libc::ENOMEM))?;
        let mailbox = Mailbox { start, memory };
        let header = mailbox.header();
        header.magic.store(MAGIC, SeqCst);
        header.version.store(VERSION, SeqCst);
        header.program.store(program as u32, SeqCst);
        Ok(mailbox)
    }

    pub(super) fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, longer than a header and lives as long as self;
        // every field is an atomic.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    /// Posts a request and wakes the agent if it sleeps; returns the request's number.
    pub(super) fn post(&mut self, ops: &[Op]) -> u32 {
        debug_assert!(ops.len() <= OPS);
        // SAFETY: OPS_OFFSET is a multiple of an Op's alignment, and the op area lies in the
        // mapping.
        let place = unsafe { self.start.add(OPS_OFFSET).cast::<Op>() };
        for (i, op) in ops.iter().take(OPS).enumerate() {
            // SAFETY: i < OPS.
            unsafe { place.add(i).write_volatile(*op) };
        }
        let header = self.header();
        header.ops.store(ops.len().min(OPS) as u32, SeqCst);
        let number = header.request.load(Relaxed).wrapping_add(1);
        header.request.store(number, SeqCst);
        if header.agent_waits.load(SeqCst) != 0 {
            sys::futex_wake(&header.request);
        }
        number
    }

    /// Waits for the reply to a request; false if `patience` passed first.
    pub(super) fn await_reply(&self, number: u32, patience: Duration) -> bool {
        let header = self.header();
        let seen = header.reply.load(SeqCst);
        if seen == number {
            return true;
        }
        header.keeper_waits.store(WAITS_ON_FUTEX, SeqCst);
        if header.reply.load(SeqCst) == seen {
            sys::futex_wait(&header.reply, seen, patience);
        }
        header.keeper_waits.store(0, SeqCst);
        header.reply.load(SeqCst) == number
    }

    /// [`Mailbox::await_reply`], but false also as soon as `beside` can be read. The agent rings
    /// `bell`.
    pub(super) fn await_reply_beside(
        &self,
        number: u32,
        bell: BorrowedFd<'_>,
        beside: BorrowedFd<'_>,
        patience: Duration,
    ) -> bool {
        let header = self.header();
        header.keeper_waits.store(WAITS_ON_BELL, SeqCst);
        if header.reply.load(SeqCst) != number {
            sys::wait_for_either(bell, beside, patience);
        }
        header.keeper_waits.store(0, SeqCst);
        header.reply.load(SeqCst) == number
    }

    pub(super) fn op(&self, i: usize) -> Op {
        assert!(i < OPS);
        // SAFETY: i < OPS, so the op lies in the mapping; an Op is plain integers.
        unsafe { self.start.add(OPS_OFFSET).cast::<Op>().add(i).read_volatile() }
    }

    /// Start of a data slot.
    pub(super) fn slot(&self, slot: usize) -> *const [u8; PAGE_BYTES] {
        assert!(slot < casemate_agent::SLOTS as usize);
        // SAFETY: the slot was checked, so the address lies in the mapping.
        unsafe { self.start.add(DATA_OFFSET + slot * PAGE_BYTES).as_ptr().cast() }
    }

    /// Copies a data slot out.
    pub(super) fn copy_slot(&self, slot: usize, into: &mut [u8; PAGE_BYTES]) {
        // SAFETY: source as in `slot`; the destination is a unique reference to ordinary memory,
        // hence disjoint. If the other side writes meanwhile the bytes are its own loss, not ours.
        unsafe { std::ptr::copy_nonoverlapping(self.slot(slot), into, 1) };
    }

    /// Fills a data slot with zeros.
    pub(super) fn wipe_slot(&mut self, slot: usize) {
        // SAFETY: the slot lies in the mapping, and no reference into the mapping covers data
        // slots. The compiler cannot leave the write out: others have this memory mapped.
        unsafe { self.slot(slot).cast_mut().write_bytes(0, 1) };
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no reference into it outlives self.
        unsafe { libc::munmap(self.start.as_ptr().cast(), MAILBOX_BYTES) };
    }
}

fn truncate(memory: BorrowedFd<'_>) -> io::Result<()> {
    std::fs::File::from(memory.try_clone_to_owned()?).set_len(MAILBOX_BYTES as u64)
}
