//! A page has left the program: what is kept of it.

use super::seal::is_zero;
use super::{Evict, Leaving};
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::hand::Hand;
use crate::pager::Stop;
use crate::pager::plain::wipe;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use std::sync::Arc;

impl Evict<'_> {
    /// A page that was no page of the Clear has come out of the program, by another way: `read`
    /// takes it from there, and says whether there is anything to keep. It is spared, or sealed if
    /// there is no buffer for it.
    pub(in crate::pager) fn spare(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        read: &mut dyn FnMut(&mut [u8; PAGE_BYTES]) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        if self.plain.left() == 0 {
            self.seal_oldest(space, &mut state.grace, self.budget.batch())?;
        }
        let Some(mut plain) = self.plain.take() else {
            let mut page = [0u8; PAGE_BYTES];
            let sealed = read(&mut page).and_then(|is_kept| match is_kept {
                true => {
                    self.budget.track(1);
                    self.seal_now(space, vpn, &mut page)
                }
                false => Ok(()),
            });
            wipe(&mut page[..]);
            return sealed;
        };
        if read(&mut plain)? {
            self.budget.track(1);
            state.grace.spare(vpn, plain);
        }
        Ok(())
    }

    /// A page is in staging slot `slot`: spare it, drop it, or note that its ciphertext is current.
    pub(super) fn has_left(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        slot: usize,
        leaving: &Leaving,
    ) -> Result<(), Stop> {
        self.account.part(state, leaving.vpn);
        state.clear.was_let_out(leaving.vpn);
        let is_clean = state.clear.pages.remove(&leaving.vpn).is_some_and(|page| page.clean);
        if is_clean {
            state.clear.clean_bet.won();
            add(&self.counts.clean_evictions, 1);
            self.budget.untrack(1);
            self.budget.sealed(1, 0);
            return Ok(());
        }
        if self.plain.left() == 0 {
            self.seal_oldest(space, &mut state.grace, self.budget.batch())?;
        }
        let Some(mut plain) = self.plain.take() else {
            // Other spaces hold the whole pool.
            let mut page = [0u8; PAGE_BYTES];
            hand.copy_data(slot, &mut page);
            self.seal_now(space, leaving.vpn, &mut page)?;
            wipe(&mut page[..]);
            return Ok(());
        };
        profile::ended(Phase::Lists);
        hand.copy_data(slot, &mut plain);
        profile::ended(Phase::Take);
        // Where there is a file, nothing recorded means what the file has.
        let holds_nothing = is_zero(&plain) && !state.mapped.origins.contains(leaving.vpn);
        profile::ended(Phase::Zero);
        if holds_nothing {
            add(&self.counts.zero_evictions, 1);
            self.budget.untrack(1);
            return Ok(());
        }
        state.grace.spare(leaving.vpn, plain);
        Ok(())
    }
}
