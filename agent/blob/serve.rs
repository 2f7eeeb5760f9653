//! The agent's loop: serves requests until one tells it to exit or the keeper has ended.
use crate::start::{NEIGHBOUR_BYTES, Post};
use crate::wire::{
    Action, DATA_OFFSET, Errno, Limits, OPS, OPS_OFFSET, Op, PAGE_BYTES, STAGINGS, WAITS_ON_BELL,
    WAITS_ON_FUTEX, validate,
};
use crate::{arch, calls};
use core::sync::atomic::Ordering::{Acquire, SeqCst};

const PAGE: usize = PAGE_BYTES as usize;
/// `PROT_READ | PROT_WRITE`.
const READ_WRITE: u32 = 3;
/// How often a move of one page is tried while the kernel says that it could not tell yet.
const MOST_TRIES: u32 = 1000;

/// A range of the agent to which pages are moved.
#[derive(Clone, Copy)]
struct Staging {
    /// The address of the first half, where pages enter. The second, where they leave, follows it.
    address: usize,
    /// Pages of a half.
    pages: usize,
    /// One bit a page of the first half: moved in and not dropped. Only these may be read; a read
    /// of another would wait for the keeper without end.
    present: u128,
}

struct Agent<'a> {
    post: &'a Post,
    limits: Limits,
    stagings: [Staging; STAGINGS],
    exiting: bool,
}

pub fn serve(post: &Post) -> ! {
    let header = post.header();
    let nothing = Staging { address: 0, pages: 0, present: 0 };
    let mut agent =
        Agent { post, limits: Limits::default(), stagings: [nothing; STAGINGS], exiting: false };
    let mut done = 0_u32;
    loop {
        let request = header.request.load(SeqCst);
        if request == done {
            header.agent_waits.store(1, SeqCst);
            if header.request.load(SeqCst) == done
                && !calls::futex_wait(&header.request, done)
                && calls::has_ended(post.keeper, false)
            {
                avenge(post);
            }
            header.agent_waits.store(0, SeqCst);
            continue;
        }
        let count = (header.ops.load(Acquire) as usize).min(OPS);
        for i in 0..count {
            agent.run(i);
        }
        done = request;
        header.reply.store(done, SeqCst);
        match header.keeper_waits.load(SeqCst) {
            WAITS_ON_FUTEX => calls::futex_wake(&header.reply),
            WAITS_ON_BELL => calls::ring(post.bell),
            _ => {}
        }
        if agent.exiting {
            calls::exit(0);
        }
    }
}

/// Called when the keeper has ended. No page will be brought in again, so the program must not
/// continue; the userfaultfds must stay open until it has ended, or its last system calls would
/// read zeros.
fn avenge(post: &Post) -> ! {
    calls::kill(post.program);
    while !calls::has_ended(post.program, true) {}
    calls::exit(0)
}

impl Agent<'_> {
    fn run(&mut self, i: usize) {
        let place = (self.post.mailbox + OPS_OFFSET) as *mut Op;
        // SAFETY: i < OPS, so the op lies in the mailbox, which stays mapped; an Op is plain
        // integers, and the keeper leaves it alone until it has the reply.
        let place = unsafe { place.add(i) };
        // SAFETY: as above.
        let mut op = unsafe { place.read_volatile() };
        op.result = match validate(&op, &self.limits) {
            Ok(action) => {
                let (result, error) = self.act(action);
                if matches!(action, Action::MoveOut { .. }) {
                    op.arg = error as u64;
                }
                result
            }
            Err(error) => -i64::from(error.0),
        };
        // SAFETY: as above.
        unsafe { place.write_volatile(op) };
    }

    fn act(&mut self, action: Action) -> (i64, i32) {
        match action {
            Action::Nop => (0, 0),
            Action::MoveOut { src, len, staging, index } => self.move_out(src, len, staging, index),
            Action::MoveOver { src, len, dst } => {
                (calls::move_pages(self.post.program_uffd, dst, src, len, true).0, 0)
            }
            Action::CopyOut { staging, index, pages, slot } => {
                (self.copy_out(staging, index, pages, slot), 0)
            }
            Action::DropStaging { staging, index, pages, all: true } => {
                plain(self.drop_run(staging, index, pages))
            }
            Action::DropStaging { staging, index, pages, all: false } => {
                plain(self.drop_counted(staging, index, pages))
            }
            Action::Claim { staging, index, pages } => {
                self.staging(staging).present |= bits(index, pages);
                (0, 0)
            }
            Action::MakeStaging { staging, pages, kind } => {
                plain(self.make_staging(staging, pages, kind.executable(), kind.locked()))
            }
            Action::Advise { addr, len, advice } => {
                plain(calls::advise(addr as usize, len as usize, advice))
            }
            Action::Map { addr, len, prot, flags } => {
                plain(calls::map_for_program(addr, len, prot, flags))
            }
            Action::Unmap { addr, len } => plain(calls::unmap_for_program(addr, len)),
            Action::Remap { addr, old_len, new_len, flags, new_addr } => {
                plain(calls::remap_for_program(addr, old_len, new_len, flags, new_addr))
            }
            Action::Lock { addr, len, locked } => {
                plain(calls::lock(addr as usize, len as usize, locked))
            }
            Action::LockAll { flags } => plain(calls::lock_all_for_program(flags)),
            Action::Break { end } => plain(calls::break_for_program(end)),
            Action::UnmapStaging { staging } => (self.unmap_staging(staging), 0),
            Action::Exit => {
                self.exiting = true;
                (0, 0)
            }
            Action::TakeAside { src, len, slot, staging } => {
                plain(self.take_aside(src as usize, len as usize, slot, staging))
            }
            Action::PutBack { aside, len, dst, prot } => {
                let (aside, len) = (aside as usize, len as usize);
                let ready = calls::set_rights(aside, len, prot);
                plain(ready.and_then(|_| calls::move_over(aside, len, dst as usize)))
            }
            Action::Replace { addr, len, with } => {
                plain(self.replace(addr as usize, len as usize, with as usize))
            }
        }
    }

    /// A staging whose existence `validate` has checked.
    fn staging(&mut self, id: u32) -> &mut Staging {
        &mut self.stagings[id as usize % STAGINGS]
    }

    fn move_out(&mut self, src: u64, len: u64, id: u32, index: u64) -> (i64, i32) {
        // On the program's own userfaultfd the kernel refuses the call while an event of its
        // address space is unread.
        let uffd = self.post.program_uffd;
        let staging = self.staging(id);
        let dst = staging.address as u64 + index * PAGE_BYTES;
        let (moved, error) = calls::move_pages(uffd, dst, src, len, false);
        let counted = moved.max(0) as u64;
        staging.present |= bits(index, counted / PAGE_BYTES);
        (moved, error)
    }

    fn copy_out(&mut self, id: u32, index: u64, pages: u64, slot: u64) -> i64 {
        let data = self.post.mailbox + DATA_OFFSET;
        let staging = *self.staging(id);
        let mut copied = 0;
        for page in 0..pages {
            if staging.present & bits(index + page, 1) == 0 {
                continue;
            }
            let from = staging.address + (index + page) as usize * PAGE;
            let to = data + (slot + page) as usize * PAGE;
            // SAFETY: `validate` checked both ranges; the page is present in the staging, of which
            // the program is not told, and the data area is mapped for good.
            unsafe { arch::copy(to as *mut u8, from as *const u8, PAGE) };
            copied += 1;
        }
        copied
    }

    /// Drops the pages of a range that were counted as moved in, run by run. A page that the kernel
    /// moved without counting it stays until the keeper has searched for it.
    fn drop_counted(&mut self, id: u32, index: u64, pages: u64) -> Result<usize, Errno> {
        let (mut at, end) = (index, index + pages);
        while at < end {
            let present = self.staging(id).present;
            let run = (at..end).take_while(|page| present & bits(*page, 1) != 0).count() as u64;
            if run > 0 {
                self.drop_run(id, at, run)?;
            }
            at += run + 1;
        }
        Ok(0)
    }

    fn drop_run(&mut self, id: u32, index: u64, pages: u64) -> Result<usize, Errno> {
        let uffd = self.post.staging_uffd;
        let staging = self.staging(id);
        let len = pages as usize * PAGE;
        let from = staging.address + index as usize * PAGE;
        let to = from + staging.pages * PAGE;
        let mut done = 0;
        while done < len {
            let (moved, error) = calls::move_pages(
                uffd,
                (to + done) as u64,
                (from + done) as u64,
                (len - done) as u64,
                true,
            );
            done += moved.max(0) as usize;
            match error {
                0 | calls::EAGAIN => {}
                // The second half was filled (as `mlockall` does), or pages were moved there
                // uncounted.
                calls::EEXIST => drop(calls::advise(to, len, calls::DONTNEED_LOCKED)?),
                other => return Err(Errno(other)),
            }
        }
        staging.present &= !bits(index, pages);
        // Also of memory that is not locked: the program's `mlockall` may have locked it since.
        calls::advise(to, len, calls::DONTNEED_LOCKED)?;
        Ok(0)
    }

    fn make_staging(
        &mut self,
        id: u32,
        pages: u64,
        executable: bool,
        locked: bool,
    ) -> Result<usize, Errno> {
        let half = pages as usize * PAGE;
        let bytes = 2 * half;
        let address = calls::map(self.neighbour(id as usize % STAGINGS), bytes, executable, -1)?;
        let ready = calls::advise(address, bytes, calls::NOHUGEPAGE)
            .or(Ok(0))
            .and_then(|_| calls::lock(address, bytes, locked))
            // MCL_FUTURE may have filled the range already; pages can be moved to empty places
            // only.
            .and_then(|_| calls::advise(address, bytes, calls::DONTNEED_LOCKED));
        if let Err(error) = ready {
            calls::unmap(address, bytes);
            return Err(error);
        }
        *self.staging(id) = Staging { address, pages: pages as usize, present: 0 };
        self.limits.stagings[id as usize % STAGINGS] = pages;
        Ok(address)
    }

    fn take_aside(&mut self, src: usize, len: usize, slot: u64, id: u32) -> Result<usize, Errno> {
        let aside = calls::reserve(self.neighbour(STAGINGS), len)?;
        if let Err(error) = calls::move_aside(src, len, aside) {
            calls::unmap(aside, len);
            return Err(error);
        }
        let pages = (len / PAGE) as u64;
        if calls::set_rights(aside, len, READ_WRITE).is_err() {
            return Ok(aside);
        }
        for page in 0..pages {
            if !self.move_from_aside(aside, id, page) {
                self.move_to_aside(aside, id, page + 1);
                return Ok(aside);
            }
        }
        self.copy_out(id, 0, pages, slot);
        self.drop_run(id, 0, pages)?;
        calls::unmap(aside, len);
        Ok(pages as usize)
    }

    /// Moves a page that lies aside into a staging. False if the kernel refuses that.
    fn move_from_aside(&mut self, aside: usize, id: u32, page: u64) -> bool {
        let at = aside + page as usize * PAGE;
        let mut is_own = false;
        for _ in 0..MOST_TRIES {
            match self.move_out(at as u64, PAGE_BYTES, id, page) {
                (_, 0) => return true,
                (_, calls::EAGAIN) => {}
                // A fork shares it, or it is pinned. What is shared becomes a page of its own.
                (_, calls::EBUSY) if !is_own => {
                    is_own = true;
                    if calls::advise(at, PAGE, calls::POPULATE_WRITE).is_err() {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        false
    }

    /// Moves the first pages of a staging to where they lay aside: of the last one it is not known
    /// whether the kernel moved it, since it may do so without counting it.
    fn move_to_aside(&mut self, aside: usize, id: u32, pages: u64) {
        let uffd = self.post.program_uffd;
        for page in 0..pages {
            let (from, to) = (self.staging(id).address, aside);
            let offset = page as usize * PAGE;
            // Every other answer means that it is aside: moved uncounted, or never elsewhere. Were
            // it not, it would be nowhere, which ends the run before the program reads it.
            while calls::move_pages(
                uffd,
                (to + offset) as u64,
                (from + offset) as u64,
                PAGE_BYTES,
                false,
            )
            .1 == calls::EAGAIN
            {}
            self.staging(id).present &= !bits(page, 1);
        }
    }

    /// From the first step on each page is the program's own and writable: it stays the one that
    /// the pipe holds, whatever the program stores, until the last step takes it away.
    fn replace(&mut self, addr: usize, len: usize, with: usize) -> Result<usize, Errno> {
        calls::advise(addr, len, calls::POPULATE_WRITE)?;
        if calls::hold(self.post.pipe, addr, len)? != len {
            return Err(Errno(calls::EAGAIN));
        }
        calls::move_over(with, len, addr)
    }

    /// Where the mapping of this number should lie.
    fn neighbour(&self, number: usize) -> usize {
        // Below what is mapped like a stack the kernel keeps a gap, of a mebibyte as a rule.
        self.post.mailbox + (1 + number) * 4 * NEIGHBOUR_BYTES
    }

    fn unmap_staging(&mut self, id: u32) -> i64 {
        let slot = id as usize % STAGINGS;
        calls::unmap(self.stagings[slot].address, 2 * self.stagings[slot].pages * PAGE);
        self.limits.stagings[slot] = 0;
        0
    }
}

fn plain(result: Result<usize, Errno>) -> (i64, i32) {
    match result {
        Ok(value) => (value as i64, 0),
        Err(error) => (-i64::from(error.0), error.0),
    }
}

/// Bits `first..first + count`, all below 128.
fn bits(first: u64, count: u64) -> u128 {
    let ones = u128::MAX.checked_shr(128_u32.saturating_sub(count as u32)).unwrap_or(0);
    ones.checked_shl(first as u32).unwrap_or(0)
}
