//! What the program's mappings are known to be.

use super::{Origins, Vpn};
use crate::config::PAGE_BYTES;
use crate::pager::rights::Rights;
use crate::ranges::PageRanges;
use std::ops::Range;

/// What the program has mapped, and what it has said of it.
#[derive(Default)]
pub struct Mapped {
    /// Ranges registered with the descriptor.
    pub registered: PageRanges,
    /// Of those, ranges that are just being registered. A fork whose event is read meanwhile may
    /// have copied them before: whether the child's are registered is not known.
    pub registering: PageRanges,
    /// Access rights of ranges that are not plain read-write.
    pub rights: Rights,
    /// Pages that a child does not get (`MADV_DONTFORK`), or gets empty (`MADV_WIPEONFORK`).
    pub unforked: PageRanges,
    /// Pages under `MADV_GUARD_INSTALL`: there is nothing, and nothing may be put there.
    pub guards: PageRanges,
    /// What the program had advised before it was armed is known.
    pub(crate) knows_advice: bool,
    /// It has an agent, and what it advised before is known; since then each call that advises is
    /// heard.
    pub(crate) follows_advice: bool,
    /// What pages hold that the program has not written, where that is not zeros.
    pub origins: Origins,
    /// Ranges that the program has sealed (`mseal`).
    pub sealed: PageRanges,
    /// What the program maps is locked, and perhaps filled before it is registered (`mlockall`
    /// before arming).
    pub locks_future: bool,
    /// The program has asked for `READ_IMPLIES_EXEC`, and its agent has not.
    pub read_implies_exec: bool,
}

impl Mapped {
    /// A range is mapped no more, or something new is mapped there: nothing that was said of it
    /// holds.
    pub(super) fn unmapped(&mut self, range: &Range<Vpn>) {
        self.registered.remove(range.clone());
        self.unforked.remove(range.clone());
        self.guards.remove(range.clone());
        self.origins.clear(range);
        self.rights.clear(range);
        self.sealed.remove(range.clone());
    }

    /// A page address that is certainly not registered, for
    /// [`Userfault::quiet`](crate::sys::uffd::Userfault::quiet).
    pub fn unregistered_address(&self) -> u64 {
        const LOWEST_MAPPABLE: u64 = 0x1_0000;
        let mut vpn = LOWEST_MAPPABLE / PAGE_BYTES as u64;
        while self.registered.contains(vpn) {
            vpn += self.registered.run_from(vpn);
        }
        vpn * PAGE_BYTES as u64
    }
}
