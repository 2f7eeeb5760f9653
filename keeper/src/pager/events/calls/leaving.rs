//! Threads that end. On the way out the kernel writes to their memory where it cannot wait for a
//! pager: it gives up their robust mutexes, and clears the word by which their end is waited for
//! (`CLONE_CHILD_CLEARTID`). A missing or protected page there would be passed over, and the
//! threads that wait for either would wait for ever. So these pages are brought in, and held until
//! the thread is gone.

use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::fault::Served;
use crate::pager::space::{ClearPage, InFlight, Space, SpaceState, Until, Vpn};
use crate::sys::process;
use crate::sys::uffd::Refusal;
use std::sync::Arc;

/// Robust mutexes of a thread that are looked at; the kernel's own limit.
const MOST_MUTEXES: usize = 2048;
/// How far before its list of robust mutexes the C library keeps the word that tells of a thread's
/// end.
const BACK_TO_TID: u64 = 16;

impl Events<'_> {
    /// A thread of `space` is about to end. False if that has to wait: a call is under way, and
    /// nothing can be made writable before its event is read.
    pub fn thread_ends(&self, space: &Arc<Space>, tid: i32) -> Result<bool, Stop> {
        let pages = pages_written_at_end(tid);
        if pages.is_empty() {
            return Ok(true);
        }
        {
            let mut state = space.state.lock();
            state.clear.leaving.retain(|(tid, _)| process::exists(*tid));
            state.clear.leaving.push((tid, pages.clone()));
        }
        // Brings the pages in: a thread that reads another process's memory waits for that
        // process's pager.
        let is_read = |page: &Vpn| process::read_u64(tid, page * PAGE_BYTES as u64).is_ok();
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

/// The pages that the kernel writes to when this thread ends, as far as they can be known.
fn pages_written_at_end(tid: i32) -> Vec<Vpn> {
    let Some(head) = process::robust_list(tid) else { return Vec::new() };
    let word = |at: u64| process::read_u64(tid, at).unwrap_or(0);
    let (first, offset, pending) = (word(head), word(head + 8), word(head + 16));
    let mut addresses = vec![head.saturating_sub(BACK_TO_TID), head];
    let mut entry = first;
    let mut left = MOST_MUTEXES;
    // The lowest bit says which kind of mutex it is.
    while entry & !1 != head && entry != 0 && left > 0 {
        addresses.extend([entry & !1, (entry & !1).wrapping_add(offset)]);
        entry = word(entry & !1);
        left -= 1;
    }
    if pending != 0 {
        addresses.push((pending & !1).wrapping_add(offset));
    }
    let mut pages: Vec<Vpn> = addresses.into_iter().map(|at| at / PAGE_BYTES as u64).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}
