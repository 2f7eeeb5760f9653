//! Surveys: which mappings of a process the pager does not hold yet. They are registered, and the
//! pages already in them adopted into the Clear.
//!
//! Late registration is harmless: what a program touched before is an ordinary present page.

use super::space::{Space, SpaceState};
use super::{Pager, Stop};
use crate::config::PAGE_BYTES;
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs;
use std::ops::Range;
use std::sync::Arc;

/// What a survey found.
#[derive(Debug, Default, Clone, Copy)]
pub struct Surveyed {
    /// Pages taken into the Clear.
    pub adopted: u64,
    /// Pages of mappings that could not be registered.
    pub refused_pages: u64,
}

impl Pager {
    /// Registers every protectable mapping of `pid`, which must run in `space`, and adopts what is
    /// present in newly registered ranges.
    pub fn survey(&self, space: &Arc<Space>, pid: i32) -> Result<Surveyed, Stop> {
        let mut surveyed = Surveyed::default();
        let Ok(mappings) = procfs::mappings(pid) else { return Ok(surveyed) };
        let wakes = {
            let mut guard = space.state.lock();
            let state = &mut *guard;
            let owned = state.hand.as_ref().map(|h| h.owned_ranges()).unwrap_or_default();
            let mut fresh = Vec::new();
            self.settle(space, state)?;
            for mapping in mappings.iter().filter(|m| m.is_protectable()) {
                let range = &mapping.range;
                if owned.iter().any(|o| o.start < range.end && range.start < o.end) {
                    continue;
                }
                let pages = range.start / PAGE_BYTES as u64..range.end / PAGE_BYTES as u64;
                let gaps = state.registered.missing_from(pages.clone());
                if gaps.is_empty() {
                    continue;
                }
                for gap in &gaps {
                    // What may be recorded of a range that is not ours is of a mapping long gone.
                    // (Not later: a move into the range may be on its way from now on.)
                    self.dropped(space, state, gap.clone())?;
                }
                // The whole mapping, whatever we believe of its parts: registered in part it would be
                // split, and the program's calls on all of it refused.
                let (start, len) = in_bytes(&pages);
                match space.uffd.register(start, len) {
                    Ok(()) => {
                        gaps.iter().for_each(|gap| state.registered.insert(gap.clone()));
                        fresh.extend(gaps);
                    }
                    Err(_) => {
                        surveyed.refused_pages += gaps.iter().map(|g| g.end - g.start).sum::<u64>();
                    }
                }
            }
            if !fresh.is_empty() {
                let mut events = Vec::new();
                self.gather(space, state, &mut events)?;
                self.apply(space, state, super::order::changes(events), &fresh)?;
                surveyed.adopted = self.adopt(space, state, pid, &fresh)?;
            }
            std::mem::take(&mut state.wakes)
        };
        space.wake_all(&wakes);
        Ok(surveyed)
    }

    /// Waits until no event of the space is on its way: one that was raised before a range was
    /// registered, and arrives later, would speak of what was there before.
    pub(super) fn settle(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop> {
        let mut events = Vec::new();
        self.gather(space, state, &mut events)?;
        self.apply(space, state, super::order::changes(events), &[])
    }

    fn adopt(
        &self,
        space: &Space,
        state: &mut SpaceState,
        pid: i32,
        fresh: &[Range<u64>],
    ) -> Result<u64, Stop> {
        let Ok(pagemap) = Pagemap::open(pid) else { return Ok(0) };
        let mut adopted = 0;
        // Without what an event that `settle` served has taken away again.
        let held =
            fresh.iter().flat_map(|gap| state.registered.common_with(gap)).collect::<Vec<_>>();
        for gap in &held {
            let (start, len) = in_bytes(gap);
            let mut found = Vec::new();
            let scanned = pagemap.for_each_present(start..start + len, &mut |run| found.push(run));
            if let Err(error) = scanned
                && error.raw_os_error() != Some(libc::ESRCH)
            {
                return Err(Stop::Internal(format!(
                    "asking which pages of process {pid} are present: {error}"
                )));
            }
            for run in found {
                let pages = run.start / PAGE_BYTES as u64..run.end / PAGE_BYTES as u64;
                // The mapping may have been exchanged since we registered what was there. Lifting a
                // protection that nobody set fails where the mapping is not registered with us; a
                // page there must not be taken, for nobody would tell us when it is missed.
                if space.uffd.protect(run.start, run.end - run.start, false).is_err() {
                    state.registered.remove(pages);
                    continue;
                }
                for vpn in pages {
                    match state.pages.get_mut(&vpn) {
                        None => {
                            state.enqueue(vpn, false, false);
                            adopted += 1;
                        }
                        // The protection that made it clean is lifted now.
                        Some(page) if page.clean => {
                            page.clean = false;
                            self.forget(space, vpn)?;
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        self.budget.adopt(adopted);
        Ok(adopted)
    }
}

fn in_bytes(pages: &Range<u64>) -> (u64, u64) {
    (pages.start * PAGE_BYTES as u64, (pages.end - pages.start) * PAGE_BYTES as u64)
}
