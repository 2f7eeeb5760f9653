//! Threads and children without the C library's list of mutexes, begun by `clone`: the kernel
//! clears a word when they end (`CLONE_CHILD_CLEARTID`), which may lie anywhere.

use crate::support::sys::{self, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 6;
const STACK_BYTES: usize = 64 << 10;
/// A word that is never cleared is not waited for any longer.
const TOO_LONG: Duration = Duration::from_secs(30);

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const THREAD: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_PARENT_SETTID;

/// What a thread or a child does.
type Life = extern "C" fn(*mut libc::c_void) -> i32;

/// What the thread or the child reads before it ends.
struct Work {
    first: AtomicUsize,
    pages: AtomicUsize,
}

static WORK: Work = Work { first: AtomicUsize::new(0), pages: AtomicUsize::new(0) };

/// A thread.
pub fn raw_threads_end(options: &Options) -> Verdict {
    end_awaited(options, THREAD, end_thread)
}

/// More threads than there are words that a pager could hold at once; their words do not hold their
/// numbers.
pub fn many_raw_threads_end(options: &Options) -> Verdict {
    const THREADS: usize = 150;
    const LAST: usize = 5;
    begin_paging(options)?;
    let bytes = THREADS * PAGE;
    let words = sys::map(std::ptr::null_mut(), bytes, RW, PRIVATE)?.cast::<i32>();
    for number in 0..THREADS {
        // SAFETY: the words are mapped, a page for each.
        let word = unsafe { words.byte_add(number * PAGE) };
        let stack = sys::map(std::ptr::null_mut(), STACK_BYTES, RW, PRIVATE)?;
        // SAFETY: as above; no thread uses it yet.
        unsafe { word.write(1) };
        let life: Life = if number < THREADS - LAST { end_late } else { end_thread };
        begin(stack, word, THREAD & !libc::CLONE_PARENT_SETTID, life)?;
        // SAFETY: the word stays mapped, and is only used atomically here.
        await_zero(unsafe { AtomicI32::from_ptr(word) })?;
    }
    Ok(())
}

/// A child process that shares the memory, and ends as a process does.
pub fn shared_vm_ends(options: &Options) -> Verdict {
    const CHILD: i32 = libc::CLONE_VM | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
    end_awaited(options, CHILD, end_process)?;
    for _ in 0..ROUNDS {
        let mut status = 0;
        // SAFETY: one live local is filled.
        check("waitpid", unsafe { libc::waitpid(-1, &mut status, 0) })?;
        sys::same("the child's status", 0, status)?;
    }
    Ok(())
}

/// Begins one after the other, each with a word in a page of its own, and waits for its end.
fn end_awaited(options: &Options, flags: i32, life: Life) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    begin_paging(options)?;
    for _ in 0..ROUNDS {
        let stack = sys::map(std::ptr::null_mut(), STACK_BYTES, RW, PRIVATE)?;
        let word = sys::map(std::ptr::null_mut(), PAGE, RW, PRIVATE)?.cast::<i32>();
        ballast.squeeze()?;
        begin(stack, word, flags, life)?;
        // SAFETY: the word stays mapped, and is only used atomically here.
        await_zero(unsafe { AtomicI32::from_ptr(word) })?;
    }
    Ok(())
}

/// Fills the region that the threads and children read.
fn begin_paging(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    WORK.first.store(region.base as usize, Ordering::SeqCst);
    WORK.pages.store(options.pages(), Ordering::SeqCst);
    Ok(())
}

/// Begins a thread or a child, whose end clears the word.
fn begin(stack: *mut u8, word: *mut i32, flags: i32, life: Life) -> Verdict {
    // SAFETY: the stack and the word are mapped, and stay; `life` touches neither the C library's
    // state nor memory that is not shared.
    let tid = unsafe {
        let top = stack.add(STACK_BYTES - 256).cast();
        let none = std::ptr::null_mut::<libc::c_void>();
        libc::clone(life, top, flags | libc::CLONE_CHILD_CLEARTID, none, word, none, word)
    };
    check("clone", tid).map(drop)
}

/// Waits for the word to be cleared, as `pthread_join` does.
fn await_zero(word: &AtomicI32) -> Verdict {
    let begun = Instant::now();
    loop {
        let value = word.load(Ordering::SeqCst);
        if value == 0 {
            return Ok(());
        }
        if begun.elapsed() > TOO_LONG {
            return Err(format!("the word of thread {value} was not cleared").into());
        }
        let patience = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        let at = word.as_ptr();
        // SAFETY: the word and the time are live; a wait that ends early is begun again.
        unsafe { libc::syscall(libc::SYS_futex, at, libc::FUTEX_WAIT, value, &patience) };
    }
}

extern "C" fn end_thread(_: *mut libc::c_void) -> i32 {
    read_all();
    // SAFETY: ends this thread, which owns nothing.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    0
}

extern "C" fn end_late(_: *mut libc::c_void) -> i32 {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: sleeps, and ends this thread, which owns nothing.
    unsafe {
        libc::syscall(libc::SYS_nanosleep, &raw const pause, 0);
        libc::syscall(libc::SYS_exit, 0);
    }
    0
}

extern "C" fn end_process(_: *mut libc::c_void) -> i32 {
    read_all();
    // SAFETY: ends this process, which owns nothing.
    unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    0
}

/// Reads the region, so that the word and the stack's end leave the Clear.
fn read_all() {
    let first = WORK.first.load(Ordering::SeqCst);
    for page in 0..WORK.pages.load(Ordering::SeqCst) {
        // SAFETY: the region is mapped as long as the process lives.
        unsafe { ((first + page * PAGE) as *const u8).read_volatile() };
    }
}
