//! Read-ahead of pages that are no run from the missing page upwards: those below it, or in line
//! with it at equal distances. They are filled after the page that a thread waits for.

use super::bring_in::with_scratch;
use super::turn_back::{Ahead, Attempt, Unserved};
use super::{Fault, Served};
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::readahead::{MAX_WINDOW_PAGES, along};

impl Fault<'_> {
    /// How many pages beyond `vpn` are to be brought in along the line: until one that is there, or
    /// where none may be. None for a run.
    pub(super) fn further(
        &self,
        state: &SpaceState,
        attempt: &Attempt,
        vpn: Vpn,
        ahead: Ahead,
    ) -> u64 {
        if ahead.is_run() {
            return 0;
        }
        let most = if attempt.has_made_room { self.budget.free() } else { MAX_WINDOW_PAGES };
        let window = ahead.window.min(most.max(1));
        let may_come = |&count: &u64| may_come(state, along(vpn, ahead.step, count));
        (1..window).take_while(may_come).count() as u64
    }

    /// Brings them in, as many as the kernel takes: no thread is known to wait for them. Tells the
    /// stream where it goes on. Returns how many came.
    pub(super) fn fetch_further(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        ahead: Ahead,
        further: u64,
        write: bool,
    ) -> Result<u64, Stop> {
        let tracked = state.clear.pages.len();
        if ahead.step == -1 {
            let mut at = vpn - further;
            while at < vpn {
                match self.fill_further(space, state, at, vpn - at, write)? {
                    0 => break,
                    came => at += came,
                }
            }
        } else {
            for count in 1..=further {
                if self.fill_further(space, state, along(vpn, ahead.step, count), 1, write)? == 0 {
                    break;
                }
            }
        }
        let is_there = |&count: &u64| state.holds(along(vpn, ahead.step, count));
        let reached = 1 + (1..ahead.asked).take_while(is_there).count() as u64;
        state.faults.readahead.came_short(vpn, ahead.asked, reached);
        Ok((state.clear.pages.len() - tracked) as u64)
    }

    /// Brings in up to `pages` from `vpn` on, of one kind: stored ones or zeros. Returns how many
    /// came; none once the kernel has refused a run, or others have used the room.
    fn fill_further(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        pages: u64,
        write: bool,
    ) -> Result<u64, Stop> {
        let pages = self.budget.claim_up_to(pages);
        if pages == 0 {
            return Ok(0);
        }
        let wakes = state.pending.wakes.len();
        let filled = with_scratch(|scratch| {
            let absent = self.look_up(space, state, vpn, pages, scratch)?;
            self.fill(space, state, vpn, absent, write, scratch)
        });
        self.budget.give_back(pages);
        // A thread that waits for one of them has sent a message, and is woken when that is served.
        state.pending.wakes.truncate(wakes);
        match filled {
            Ok((came, Served::Yes)) if state.holds(vpn) && state.faults.singly == 0 => Ok(came),
            Err(Unserved::Stop(stop)) => Err(stop),
            // Another message says what is the matter, or will.
            Ok(_) | Err(Unserved::Back(_)) => Ok(0),
        }
    }
}

/// Whether a page is nowhere in the Clear, and may be put where it belongs.
fn may_come(state: &SpaceState, vpn: Vpn) -> bool {
    let address = vpn.wrapping_mul(PAGE_BYTES as u64);
    !state.holds(vpn)
        && state.mapped.registered.contains(vpn)
        && !state.mapped.guards.contains(vpn)
        && !state.agent.owned.iter().any(|range| range.contains(&address))
}
