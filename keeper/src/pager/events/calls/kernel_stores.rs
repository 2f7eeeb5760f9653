//! Calls by which the kernel stores to the program's memory where it cannot wait for a pager: a
//! missing or protected page there is passed over or fails the call. So these pages are brought in,
//! and held until the call is over.
//!
//! - A thread or a process ends, or executes another program, which ends its other threads: the
//!   kernel marks its robust mutexes, and clears the word by which its end is waited for
//!   (`CLONE_CHILD_CLEARTID`). Threads that wait for either would wait for ever.
//! - Operations of `futex` that store: `FUTEX_WAKE_OP`, and those of priority inheritance. They
//!   would fail with `EFAULT`.

use super::end_of_thread::{Words, pages_stored_at_end_of_all};
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

/// Threads of a space whose pages are held before it is looked which of them have left their call.
const MOST_THREADS: usize = 64;
/// Pages of a space that are held for calls of `futex`; a quarter of the least Clear. Others are
/// brought in, and can be evicted before the kernel stores to them.
const MOST_PAGES: usize = 128;

impl Events<'_> {
    /// Prepares the pages of a call by which the kernel stores. False if that has to wait: a call
    /// is under way, and nothing can be made writable before its event is read.
    pub fn prepare_stores(&self, space: &Arc<Space>, call: &Announced) -> Result<bool, Stop> {
        let mut pages: Vec<Vpn> = match call.number {
            libc::SYS_exit => Words { space, tid: call.tid }.pages_stored_at_end(),
            libc::SYS_futex => pages_of_futexes(call),
            _ => pages_stored_at_end_of_all(space, call.tid),
        };
        pages.sort_unstable();
        pages.dedup();
        let is_prepared = self.hold(space, call, pages)?;
        if is_prepared && call.number == libc::SYS_exit {
            Words { space, tid: call.tid }.forget();
        }
        Ok(is_prepared)
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
