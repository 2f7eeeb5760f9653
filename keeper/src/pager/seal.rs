//! Sealing: plaintext from the grace list becomes ciphertext in the Crypt under a fresh LPID.

use super::space::{Space, SpaceState, Vpn};
use super::{Pager, Stop, violation_at};
use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::profile::{self, Phase};
use casemate_pages::PageRecord;

/// A page that has been encrypted but is not recorded yet.
struct Sealed {
    vpn: Vpn,
    record: PageRecord,
}

impl Pager {
    /// Encrypts the `count` pages that have been on the grace list of `space` longest.
    pub(super) fn seal_oldest(
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
    pub(super) fn seal_all(&self, space: &Space, state: &mut SpaceState) -> Result<(), Stop> {
        let count = state.grace.len();
        self.seal_oldest(space, state, count)
    }

    /// Encrypts one page, in place, that has no room on the grace list.
    pub(super) fn seal_now(
        &self,
        space: &Space,
        vpn: Vpn,
        plain: &mut [u8; PAGE_BYTES],
    ) -> Result<(), Stop> {
        self.record(space, &[Sealed { vpn, record: self.seal(plain)? }])
    }

    /// Encrypts a page where it is, in the keeper's own memory, and copies it to the store. A fresh LPID
    /// for every encryption (AISE/BMT section 4.3): no seed is ever used twice.
    fn seal(&self, page: &mut [u8; PAGE_BYTES]) -> Result<PageRecord, Stop> {
        let lpid = self.gpc.next().map_err(|v| violation_at("a page going out", v))?;
        profile::ended(Phase::Lists);
        let tag = self.cipher.seal_in_place(lpid, page);
        profile::ended(Phase::Seal);
        let (place, ()) = self.store.put(|cipher| *cipher = *page)?;
        profile::ended(Phase::Store);
        Ok(PageRecord { lpid, tag, place })
    }

    fn record(&self, space: &Space, sealed: &[Sealed]) -> Result<(), Stop> {
        let mut directory = self.directory.lock();
        for Sealed { vpn, record } in sealed {
            let old = directory.replace(space.id, *vpn, Some(*record)).map_err(|violation| {
                violation_at(&format!("{:#x}", vpn * PAGE_BYTES as u64), violation)
            })?;
            if let Some(old) = old {
                // A child of a fork may still hold the record of a page that it had in the Clear.
                self.store.release(old.place);
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
pub(super) fn is_zero(page: &[u8; PAGE_BYTES]) -> bool {
    page.chunks_exact(64).all(|line| line.iter().fold(0, |acc, b| acc | b) == 0)
}
