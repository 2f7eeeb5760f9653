//! Sealing: plaintext from the grace list becomes ciphertext in the Crypt under a fresh LPID.

use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::{Pager, Stop, violation_at, violation_at_page};
use crate::profile::{self, Phase};
use casemate_pages::{PageRecord, page_protocol};

/// A page that has been encrypted but is not recorded yet.
struct Sealed {
    vpn: Vpn,
    record: PageRecord,
}

impl Pager {
    /// Encrypts the `count` pages that have been on the grace list of `space` longest.
    pub(in crate::pager) fn seal_oldest(
        &self,
        space: &Space,
        state: &mut SpaceState,
        count: usize,
    ) -> Result<(), Stop> {
        let mut sealed = Vec::with_capacity(count);
        while sealed.len() < count {
            let Some((vpn, mut plain)) = state.take_oldest_grace() else { break };
            sealed.push(Sealed { vpn, record: self.seal(&mut plain)? });
            plain.is_ciphertext();
        }
        self.record(space, &sealed)
    }

    /// Empties the grace list of `space` into the Crypt.
    pub(in crate::pager) fn seal_all(
        &self,
        space: &Space,
        state: &mut SpaceState,
    ) -> Result<(), Stop> {
        let count = state.grace.len();
        self.seal_oldest(space, state, count)
    }

    /// Encrypts one page, in place, that has no room on the grace list.
    pub(in crate::pager) fn seal_now(
        &self,
        space: &Space,
        vpn: Vpn,
        plain: &mut [u8; PAGE_BYTES],
    ) -> Result<(), Stop> {
        self.record(space, &[Sealed { vpn, record: self.seal(plain)? }])
    }

    /// Encrypts a page where it is, in the keeper's own memory, and copies it to the store.
    fn seal(&self, page: &mut [u8; PAGE_BYTES]) -> Result<PageRecord, Stop> {
        profile::ended(Phase::Lists);
        let sealed = page_protocol::seal(&self.cipher, &self.gpc, page)
            .map_err(|violation| violation_at("a page going out", violation))?;
        profile::ended(Phase::Seal);
        let (place, ()) = self.store.put(|cipher| sealed.store(&self.cipher, cipher))?;
        profile::ended(Phase::Store);
        Ok(sealed.at(place))
    }

    fn record(&self, space: &Space, sealed: &[Sealed]) -> Result<(), Stop> {
        let mut directory = self.directory.lock();
        for Sealed { vpn, record } in sealed {
            let old = page_protocol::record(&mut directory, space.id, *vpn, *record);
            if let Some(old) = old.map_err(|violation| violation_at_page(*vpn, violation))? {
                // A child of a fork may still hold the record of a page that it had in the Clear.
                self.store.release(old);
                self.budget.sealed(0, 1);
            }
        }
        drop(directory);
        profile::ended(Phase::Record);
        let pages = sealed.len() as u64;
        self.budget.untrack(pages);
        self.budget.sealed(pages, 0);
        add(&self.counters.pages_out, pages);
        Ok(())
    }
}

/// Whether a page holds nothing: such pages need no crypto and no room.
pub(in crate::pager) fn is_zero(page: &[u8; PAGE_BYTES]) -> bool {
    page.chunks_exact(64).all(|line| line.iter().fold(0, |acc, b| acc | b) == 0)
}
