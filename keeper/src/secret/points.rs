//! Points at which threads that work with keys have none on their stacks.
//!
//! A thread passes a point between two pieces of work. Normally that costs one load. While the
//! points are [closed](close), a thread that comes to one wipes the unused part of its stack and
//! its vector registers, and waits there. A thread that sleeps is interrupted until it comes.
//!
//! They are closed in two steps, since a thread that reads a program's memory can wait for a page,
//! which nothing interrupts: those that serve faults come last.

use super::stack::{StackRange, wipe_below_here};
use crate::sys::sched;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Acquire, Ordering::Release};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What interrupts a thread that sleeps. Nothing else in the keeper is told by it, and without a
/// handler the kernel ignores it.
const SIGNAL: i32 = libc::SIGURG;
/// How long a piece of work may take, for a thread of the idle class on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after which a thread is interrupted, and again: an interruption that comes before the
/// thread sleeps is lost.
const PAUSE: Duration = Duration::from_millis(1);

/// What a thread does with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// It serves faults, and never waits for a page of a program.
    Serves = 1,
    /// It may wait for a page of a program.
    Asks = 2,
}

/// The least role for which the points are closed; [`OPEN`] if they are for none.
static CLOSED: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = u8::MAX;
static THREADS: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
static OPENED: Condvar = Condvar::new();

struct Thread {
    tid: i32,
    role: Role,
    waits: bool,
    /// It is of the idle class, and is not while the points are being closed.
    is_raised: bool,
}

thread_local! {
    static STACK: Cell<Option<StackRange>> = const { Cell::new(None) };
    static ROLE: Cell<Role> = const { Cell::new(Role::Asks) };
}

/// The calling thread works with keys, on this stack, until the value is dropped.
pub struct Membership(());

/// The points are closed until the value is dropped.
#[derive(Debug)]
pub struct Closed(());

/// Makes the calling thread one that passes points.
///
/// # Errors
/// If the kernel lets no signal be handled.
pub fn join(stack: StackRange, role: Role) -> io::Result<Membership> {
    receive_interruptions()?;
    STACK.set(Some(stack));
    ROLE.set(role);
    let tid = this_thread();
    threads().push(Thread { tid, role, waits: false, is_raised: false });
    Ok(Membership(()))
}

impl Drop for Membership {
    fn drop(&mut self) {
        let tid = this_thread();
        threads().retain(|thread| thread.tid != tid);
        STACK.set(None);
    }
}

/// A point: waits here while the points are closed.
#[inline(always)]
pub fn pass() {
    if CLOSED.load(Acquire) != OPEN && is_closed_for(ROLE.get()) {
        sweep();
        wait();
    }
}

fn is_closed_for(role: Role) -> bool {
    CLOSED.load(Acquire) <= role as u8
}

/// Closes the points, and waits until every other thread has come to one: first those that may wait
/// for one that serves faults. None if a piece of work
/// takes too long; the points are open then.
#[must_use]
pub fn close() -> Option<Closed> {
    let closed = Closed(());
    let until = Instant::now() + PATIENCE;
    let all_came = [Role::Asks, Role::Serves].into_iter().all(|role| close_for(role, until));
    all_came.then_some(closed)
}

/// Closes the points for a role and waits until every thread that has it has come to one. False if
/// one has not at that time.
fn close_for(role: Role, until: Instant) -> bool {
    CLOSED.store(role as u8, Release);
    let this = this_thread();
    loop {
        let is_awaited = |t: &&Thread| t.tid != this && t.role == role && !t.waits;
        let working: Vec<i32> = threads().iter().filter(is_awaited).map(|t| t.tid).collect();
        if working.is_empty() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(PAUSE);
        raise_idle(role);
        working.into_iter().for_each(interrupt);
    }
}

/// Gives threads of the idle class that have not come yet the ordinary policy: on a busy machine
/// they would not come for long. Those who may not be raised come when they get time.
fn raise_idle(role: Role) {
    let is_late = |t: &&mut Thread| t.role == role && !t.waits && !t.is_raised;
    for thread in threads().iter_mut().filter(is_late) {
        thread.is_raised = sched::is_idle(thread.tid) && sched::set_ordinary(thread.tid, 0).is_ok();
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let mut threads = threads();
        CLOSED.store(OPEN, Release);
        for thread in threads.iter_mut() {
            thread.waits = false;
            if std::mem::take(&mut thread.is_raised) {
                // All may.
                let _ = sched::set_idle(thread.tid);
            }
        }
        drop(threads);
        OPENED.notify_all();
    }
}

/// Wipes what the calling thread has left on its stack, below the caller's frame, and in its vector
/// registers.
#[inline(always)]
pub fn sweep() {
    let lowest = lowest_touched();
    // SAFETY: of the stack that this thread has said it runs on.
    unsafe { wipe_below_here(lowest) };
}

/// Of the stack of the calling thread; 0 if that is none of ours.
#[cold]
#[inline(never)]
fn lowest_touched() -> usize {
    STACK.get().map_or(0, StackRange::lowest_touched)
}

#[cold]
#[inline(never)]
fn wait() {
    let tid = this_thread();
    let mut threads = threads();
    while is_closed_for(ROLE.get()) {
        if let Some(thread) = threads.iter_mut().find(|thread| thread.tid == tid) {
            thread.waits = true;
        }
        threads = OPENED.wait(threads).unwrap_or_else(PoisonError::into_inner);
    }
}

fn threads() -> MutexGuard<'static, Vec<Thread>> {
    // A panic while it was held has left no entry half changed.
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn this_thread() -> i32 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { libc::gettid() }
}

fn interrupt(tid: i32) {
    // SAFETY: touches no memory; a thread that has ended is no error to us.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, SIGNAL) };
}

extern "C" fn interrupted(_: i32) {}

/// Handles the signal by nothing. Calls in the middle of a piece of work are made again; the waits
/// at whose end a point is (`epoll_wait`, `ppoll`) end early in any case.
fn receive_interruptions() -> io::Result<()> {
    // SAFETY: the action and the set are plain data, filled before use; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupted as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        if libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, SIGNAL);
        match libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}
