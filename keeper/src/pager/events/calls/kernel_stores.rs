//! Calls by which the kernel stores to the program's memory where it cannot wait for a pager: a
//! missing or protected page there is passed over or fails the call. So these pages are brought in,
//! and held until the call is over.
//!
//! - A thread or a process ends, or executes another program, which ends its other threads: the
//!   kernel marks its robust mutexes, and clears the word by which its end is waited for
//!   (`CLONE_CHILD_CLEARTID`). Threads that wait for either would wait for ever.
//! - Operations of `futex` that store: `FUTEX_WAKE_OP`, and those of priority inheritance. They
//!   would fail with `EFAULT`.

use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::fault::Served;
use crate::pager::space::{ClearPage, Held, InFlight, Space, SpaceState, Until, Vpn};
use crate::sys::process;
use crate::sys::procfs;
use crate::sys::seccomp::Announced;
use crate::sys::uffd::Refusal;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Robust mutexes of a thread that are looked at; the kernel's own limit.
const MOST_MUTEXES: usize = 2048;
/// How far before its list of robust mutexes the C library keeps the word that tells of a thread's
/// end.
const BACK_TO_TID: u64 = 16;
/// Pages from a thread's last stack frame on in which the word of its end is sought.
const NEAR_PAGES: u64 = 2;
/// Threads of a space whose pages are held before it is looked which of them have left their call.
const MOST_THREADS: usize = 64;
/// Pages of a space that are held for calls of `futex`; a quarter of the least Clear. Others are
/// brought in, and can be evicted before the kernel stores to them.
const MOST_PAGES: usize = 128;

impl Events<'_> {
    /// Prepares the pages of a call by which the kernel stores. False if that has to wait: a call
    /// is under way, and nothing can be made writable before its event is read.
    pub fn prepare_stores(&self, space: &Arc<Space>, call: &Announced) -> Result<bool, Stop> {
        let words = |tid| Words { space, tid };
        let mut pages: Vec<Vpn> = match call.number {
            libc::SYS_exit => words(call.tid).pages_stored_at_end(),
            libc::SYS_futex => pages_of_futexes(call),
            _ => {
                let threads = procfs::threads(call.tid).into_iter().map(words);
                let owners = threads.filter(Words::hold_mutexes);
                owners.flat_map(|words| words.pages_stored_at_end()).collect()
            }
        };
        pages.sort_unstable();
        pages.dedup();
        self.hold(space, call, pages)
    }

    fn hold(
        &self,
        space: &Arc<Space>,
        call: &Announced,
        mut pages: Vec<Vpn>,
    ) -> Result<bool, Stop> {
        {
            let mut state = space.state.lock();
            // Others are never taken out. To read one might wait for another pager, a program's
            // own.
            pages.retain(|vpn| state.mapped.registered.contains(*vpn));
            let held = &mut state.clear.held;
            held.retain(|other| other.tid != call.tid);
            if pages.is_empty() {
                return Ok(true);
            }
            held.retain(|other| other.ending.is_some() || process::exists(other.tid));
            if held.len() >= MOST_THREADS || !is_room_for(held, &pages) {
                held.retain(Held::may_be_needed);
            }
            if call.number != libc::SYS_futex || is_room_for(held, &pages) {
                let is_end = call.number == libc::SYS_exit_group;
                let ending = is_end.then(|| procfs::process_of(call.tid)).flatten();
                held.push(Held { tid: call.tid, ending, pages: pages.clone() });
            }
        }
        // Brings the pages in: a thread that reads another process's memory waits for that
        // process's pager.
        let is_read = |page: &Vpn| process::read_u64(call.tid, page * PAGE_BYTES as u64).is_ok();
        let pages: Vec<Vpn> = pages.into_iter().filter(is_read).collect();
        let (made, wakes) = {
            let mut state = space.state.lock();
            let made = self.make_writable(space, &mut state, &pages);
            (self.end.or_stop(made)?, std::mem::take(&mut state.pending.wakes))
        };
        space.wake_all(&wakes);
        self.asks.serve_left_over(space)?;
        Ok(made)
    }

    /// Lifts the protection of pages, whatever is known of it. False if an event is on its way.
    fn make_writable(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pages: &[Vpn],
    ) -> Result<bool, Stop> {
        self.settle(space, state)?;
        if self.end.has_come() || space.is_gone() {
            return Ok(true);
        }
        // The child is about to share them.
        if matches!(state.calls.in_flight, Some(InFlight { until: Until::Fork, .. })) {
            return Ok(false);
        }
        for &vpn in
            pages.iter().filter(|vpn| state.mapped.registered.contains(**vpn)).collect::<Vec<_>>()
        {
            let is_protected = |page: &ClearPage| page.clean || page.protected;
            if state.clear.pages.get(&vpn).is_some_and(is_protected)
                && self.asks.lift(space, state, vpn)? != Served::Yes
            {
                return Ok(false);
            }
            let bytes = PAGE_BYTES as u64;
            let is_lifted = space.uffd.protect(vpn * bytes, bytes, false);
            let is_there = state.processes.holds_page(vpn * bytes)? != Some(false);
            if is_lifted == Err(Refusal::EventPending) || !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether pages can be held beside those that are; several threads may use one page.
fn is_room_for(held: &[Held], pages: &[Vpn]) -> bool {
    let held = held.iter().flat_map(|held| &held.pages);
    held.chain(pages).collect::<BTreeSet<_>>().len() <= MOST_PAGES
}

/// The pages of the words that an operation of `futex` stores to.
fn pages_of_futexes(call: &Announced) -> Vec<Vpn> {
    let [first, operation, _, _, second, _] = call.arguments;
    let page = |at: u64| at / PAGE_BYTES as u64;
    match operation as i32 & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAKE_OP | libc::FUTEX_WAIT_REQUEUE_PI | libc::FUTEX_CMP_REQUEUE_PI => {
            vec![page(first), page(second)]
        }
        _ => vec![page(first)],
    }
}

/// The words of a thread's memory, as far as they can be read at once.
struct Words<'a> {
    space: &'a Space,
    tid: i32,
}

impl Words<'_> {
    /// A word, 0 where there is none. Memory that is not ours and not in the page table is not
    /// read: it might have to wait for a pager of the program's own.
    fn at(&self, address: u64) -> u64 {
        let bytes = PAGE_BYTES as u64;
        let mut pages = address / bytes..=address.saturating_add(7) / bytes;
        let is_ready = |vpn: Vpn| {
            let mut state = self.space.state.lock();
            state.mapped.registered.contains(vpn)
                || matches!(state.processes.holds_page(vpn * bytes), Ok(Some(true)))
        };
        let is_read = pages.all(is_ready);
        is_read.then(|| process::read_u64(self.tid, address).ok()).flatten().unwrap_or(0)
    }

    /// Whether the thread has robust mutexes, or is about to lock or unlock one.
    fn hold_mutexes(&self) -> bool {
        process::robust_list(self.tid)
            .is_some_and(|head| self.at(head) & !1 != head || self.at(head.wrapping_add(16)) != 0)
    }

    /// The pages that the kernel stores to when the thread ends, as far as they can be known.
    fn pages_stored_at_end(&self) -> Vec<Vpn> {
        let Some(head) = process::robust_list(self.tid) else { return self.pages_near_stack() };
        let [first, offset, pending] = [0, 8, 16].map(|at| self.at(head.wrapping_add(at)));
        let mut addresses = vec![head.saturating_sub(BACK_TO_TID), head, head.wrapping_add(16)];
        let mut entry = first;
        let mut left = MOST_MUTEXES;
        // The lowest bit says which kind of mutex it is.
        while entry & !1 != head && entry != 0 && left > 0 {
            addresses.extend([entry & !1, (entry & !1).wrapping_add(offset)]);
            entry = self.at(entry & !1);
            left -= 1;
        }
        if pending != 0 {
            addresses.push((pending & !1).wrapping_add(offset));
        }
        let pages = addresses.into_iter().map(|at| at / PAGE_BYTES as u64);
        pages.chain(self.pages_near_stack()).collect()
    }

    /// Where the C library keeps the word that tells of a thread's end: near the start of its
    /// stack, whatever list the thread has.
    fn pages_near_stack(&self) -> Vec<Vpn> {
        let Some(stack) = procfs::stack_pointer(self.tid) else { return Vec::new() };
        let first = stack / PAGE_BYTES as u64;
        (first..first + NEAR_PAGES).collect()
    }
}
