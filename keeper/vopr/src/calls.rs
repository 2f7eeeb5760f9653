//! What the agent's code takes from its `crate::calls`: the calls that it makes, of the simulated
//! kernel.

use crate::kernel::{ASIDE, PAGE, Wait};
use crate::scheduler;
use casemate_agent::Errno;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

pub const EAGAIN: i32 = libc::EAGAIN;
pub const EBUSY: i32 = libc::EBUSY;
pub const EEXIST: i32 = libc::EEXIST;
pub const NOHUGEPAGE: u32 = libc::MADV_NOHUGEPAGE as u32;
pub const POPULATE_WRITE: u32 = libc::MADV_POPULATE_WRITE as u32;
pub const DONTNEED_LOCKED: u32 = libc::MADV_DONTNEED_LOCKED as u32;

/// Where the agents' own mappings lie.
const OWN: u64 = 0x2000_0000_0000 / PAGE;

thread_local! {
    /// This thread's task, and its program's userfaultfd.
    static AGENT: Cell<(i32, usize)> = const { Cell::new((0, 0)) };
}

/// This thread is agent `tid` from now on.
pub fn become_agent(tid: i32, uffd: usize) {
    AGENT.set((tid, uffd));
}

/// The agent that this thread is.
pub fn this_agent() -> i32 {
    AGENT.get().0
}

fn call(number: i64, arguments: [u64; 6]) -> Result<usize, Errno> {
    let kernel = scheduler::kernel();
    if !kernel.lock().tasks.contains_key(&this_agent()) {
        scheduler::end_thread();
    }
    let result = kernel.perform(this_agent(), number, arguments);
    usize::try_from(result).map_err(|_| Errno(-result as i32))
}

pub fn exit(_code: i32) -> ! {
    scheduler::end_thread()
}

pub fn kill(_pidfd: i32) {}

pub fn has_ended(_pidfd: i32, _wait: bool) -> bool {
    false
}

pub fn futex_wait(word: &AtomicU32, seen: u32) -> bool {
    while word.load(SeqCst) == seen {
        if !scheduler::kernel().lock().tasks.contains_key(&this_agent()) {
            scheduler::end_thread();
        }
        scheduler::sleep(Wait::Request(this_agent()).into(), None);
    }
    true
}

pub fn futex_wake(_word: &AtomicU32) {
    ring(0);
}

pub fn ring(_bell: i32) {
    scheduler::wake(Wait::Beside(AGENT.get().1).into());
}

pub fn advise(at: usize, len: usize, advice: u32) -> Result<usize, Errno> {
    call(libc::SYS_madvise, [at as u64, len as u64, advice.into(), 0, 0, 0])
}

pub fn map(_at: usize, len: usize, executable: bool, _fd: i32) -> Result<usize, Errno> {
    let at = own(len)?;
    let prot = if executable { 7 } else { 3 };
    let at = call(libc::SYS_mmap, [at, len as u64, prot, libc::MAP_FIXED as u64, 0, 0])?;
    advise(at, len, libc::MADV_DONTFORK as u32)?;
    Ok(at)
}

pub fn reserve(_at: usize, len: usize) -> Result<usize, Errno> {
    let at = own(len)?;
    call(libc::SYS_mmap, [at, len as u64, 0, libc::MAP_FIXED as u64, 0, 0])
}

/// A free place for a mapping of the agent's own.
fn own(len: usize) -> Result<u64, Errno> {
    let kernel = scheduler::kernel();
    let mut state = kernel.lock();
    let mm = state.tasks.get(&this_agent()).map(|task| task.mm).ok_or(Errno(libc::ESRCH))?;
    Ok(state.mm(mm).gap(OWN, len as u64 / PAGE) * PAGE)
}

pub fn move_aside(src: usize, len: usize, to: usize) -> Result<usize, Errno> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let (src, len, to) = (src as u64, len as u64, to as u64);
    call(libc::SYS_mremap, [src, len, len, flags as u64, to, ASIDE])
}

pub fn move_over(aside: usize, len: usize, to: usize) -> Result<usize, Errno> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let (aside, len, to) = (aside as u64, len as u64, to as u64);
    call(libc::SYS_mremap, [aside, len, len, flags as u64, to, ASIDE])
}

/// No mapping of a file is replaced here.
pub fn hold(_pipe: i32, _at: usize, _len: usize) -> Result<usize, Errno> {
    Err(Errno(libc::ENOSYS))
}

pub fn set_rights(at: usize, len: usize, prot: u32) -> Result<usize, Errno> {
    call(libc::SYS_mprotect, [at as u64, len as u64, prot.into(), 0, 0, 0])
}

pub fn unmap(at: usize, len: usize) {
    // As the agent itself: it has nothing to do about a failure.
    let _ = call(libc::SYS_munmap, [at as u64, len as u64, 0, 0, 0, 0]);
}

pub fn map_for_program(addr: u64, len: u64, prot: u32, flags: u32) -> Result<usize, Errno> {
    call(libc::SYS_mmap, [addr, len, prot.into(), flags.into(), 0, 0])
}

pub fn unmap_for_program(addr: u64, len: u64) -> Result<usize, Errno> {
    call(libc::SYS_munmap, [addr, len, 0, 0, 0, 0])
}

pub fn remap_for_program(
    addr: u64,
    old_len: u64,
    new_len: u64,
    flags: u32,
    new_addr: u64,
) -> Result<usize, Errno> {
    call(libc::SYS_mremap, [addr, old_len, new_len, flags.into(), new_addr, 0])
}

pub fn lock_all_for_program(_flags: u32) -> Result<usize, Errno> {
    Err(Errno(libc::ENOSYS))
}

pub fn break_for_program(end: u64) -> Result<usize, Errno> {
    call(libc::SYS_brk, [end, 0, 0, 0, 0, 0])
}

pub fn lock(_at: usize, _len: usize, _locked: bool) -> Result<usize, Errno> {
    Ok(0)
}

pub fn move_pages(uffd: i32, dst: u64, src: u64, len: u64, holes: bool) -> (i64, i32) {
    if !scheduler::kernel().lock().tasks.contains_key(&this_agent()) {
        scheduler::end_thread();
    }
    scheduler::kernel().move_pages(uffd as usize, dst, src, len, holes)
}
