//! Pages without a record: zeros.

use super::turn_back::Unserved;
use super::{FAULTS_SINGLY, Fault, Served, WINDOW};
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use crate::sys::uffd::Refusal;

static ZEROS: [u8; WINDOW * PAGE_BYTES] = [0; WINDOW * PAGE_BYTES];

impl Fault<'_> {
    /// Pages that were never written (or given back): zeros, without crypto.
    pub(super) fn fill_zeros(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        pages: u64,
        write: bool,
    ) -> Result<(u64, Served), Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let is_shielded = write && state.calls.is_forking();
        // A page that is about to be written gets memory of its own at once; one that is only
        // read shares the kernel's page of zeros.
        let fill = |pages: u64| {
            if write {
                space.uffd.copy(address, &ZEROS[..pages as usize * PAGE_BYTES], is_shielded)
            } else {
                space.uffd.zero(address, pages * PAGE_BYTES as u64)
            }
        };
        let (mut bytes, mut result) = fill(pages);
        if bytes == 0 && pages > 1 && result == Err(Refusal::NoMapping) {
            state.faults.singly = FAULTS_SINGLY;
            (bytes, result) = fill(1);
        }
        profile::ended(Phase::Fill);
        let came = self.has_filled(space, state, vpn, (bytes, result), is_shielded)?;
        add(&self.counts.zero_fills, came);
        Ok((came.max(1), Served::Yes))
    }

    /// Takes pages on that the kernel has filled and of which there is no record. Returns how many.
    pub(super) fn has_filled(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        filled: (usize, Result<(), Refusal>),
        is_shielded: bool,
    ) -> Result<u64, Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let came = match Self::filled(filled)? {
            Ok(came) => came,
            // There already, by an earlier message. Not to be tracked for that: madvise may be
            // about to drop it.
            Err(Refusal::Present) => 0,
            Err(refusal) => {
                self.refused(space, address, refusal)?;
                0
            }
        };
        (vpn..vpn + came).for_each(|page| state.clear.enqueue(page, false, false));
        if is_shielded {
            state.clear.shield(vpn..vpn + came);
        }
        self.budget.track(came);
        state.pending.wakes.push((address, came.max(1) * PAGE_BYTES as u64));
        Ok(came)
    }
}
