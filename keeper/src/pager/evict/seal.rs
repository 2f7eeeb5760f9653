//! Sealing: plaintext from the grace list becomes ciphertext in the Crypt under a fresh LPID.

use super::Evict;
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::pager::space::{Grace, Space, Vpn};
use crate::pager::{Stop, violation_at};
use crate::profile::{self, Phase};
use casemate_pages::{PageRecord, page_protocol};

impl Evict<'_> {
    /// Encrypts the `count` pages that have been on the grace list of `space` longest.
    pub(super) fn seal_oldest(
        &self,
        space: &Space,
        grace: &mut Grace,
        count: usize,
    ) -> Result<(), Stop> {
        let mut sealed = Vec::with_capacity(count);
        while sealed.len() < count {
            let Some((vpn, mut plain)) = grace.take_oldest() else { break };
            sealed.push((vpn, self.seal(&mut plain)?));
            plain.is_ciphertext();
        }
        self.record(space, &sealed)
    }

    /// Empties the grace list of `space` into the Crypt.
    pub(in crate::pager) fn seal_all(&self, space: &Space, grace: &mut Grace) -> Result<(), Stop> {
        let count = grace.pages.len();
        self.seal_oldest(space, grace, count)
    }

    /// Encrypts one page, in place, that has no room on the grace list.
    pub(super) fn seal_now(
        &self,
        space: &Space,
        vpn: Vpn,
        plain: &mut [u8; PAGE_BYTES],
    ) -> Result<(), Stop> {
        self.record(space, &[(vpn, self.seal(plain)?)])
    }

    /// Encrypts a page where it is, in the keeper's own memory, and copies it to the store.
    fn seal(&self, page: &mut [u8; PAGE_BYTES]) -> Result<PageRecord, Stop> {
        profile::ended(Phase::Lists);
        let sealed = page_protocol::seal(self.cipher, self.gpc, page)
            .map_err(|violation| violation_at("a page going out", violation))?;
        profile::ended(Phase::Seal);
        let place = self.put(|cipher| sealed.store(self.cipher, cipher))?;
        profile::ended(Phase::Store);
        Ok(sealed.at(place))
    }

    fn record(&self, space: &Space, sealed: &[(Vpn, PageRecord)]) -> Result<(), Stop> {
        let replaced = self.records.enter(space.id, sealed)?;
        profile::ended(Phase::Record);
        let pages = sealed.len() as u64;
        self.budget.untrack(pages);
        self.budget.sealed(pages, replaced);
        add(&self.counts.pages_out, pages);
        Ok(())
    }
}

/// Whether a page holds nothing: such pages need no crypto and no room.
pub(super) fn is_zero(page: &[u8; PAGE_BYTES]) -> bool {
    page.chunks_exact(64).all(|line| line.iter().fold(0, |acc, b| acc | b) == 0)
}
