//! Sealing stored pages anew, under a key of the present epoch.

use super::bring_in::{Opened, Scratch, with_scratch};
use super::turn_back::Unserved;
use super::{Fault, Served};
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::plain::wipe;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::store::PageStore;
use casemate_core::Lpid;
use casemate_pages::{PageRecord, page_protocol};
use std::collections::{HashMap, VecDeque};
use std::ops::Add;
use std::sync::Arc;

/// Places that are left for pages that leave the Clear meanwhile: a batch of each of a few threads.
const PLACES_LEFT: u64 = 256;

/// Shared pages that are stored twice at a time where places may run short: a MiB.
const MOST_TWICE: usize = 256;
/// Of those that are held for others, so many are looked at with each batch.
const LOOKS: usize = 64;

/// What became of stored pages that were to be sealed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// They were.
    pub pages: u64,
    /// There was no place for them.
    pub without_place: u64,
    /// Something else was to be done first.
    pub left: u64,
}

impl Add for Resealed {
    type Output = Resealed;

    fn add(self, more: Resealed) -> Resealed {
        Resealed {
            pages: self.pages + more.pages,
            without_place: self.without_place + more.without_place,
            left: self.left + more.left,
        }
    }
}

/// A ciphertext that was sealed anew in one space, and is held once more for others.
struct Shared {
    old: PageRecord,
    new: PageRecord,
    /// Spaces that had the old one as well, when it was sealed anew.
    others: u32,
}

/// A round over all that is stored.
pub struct Resealing<'a> {
    /// Pages with earlier LPIDs are sealed anew.
    first: Lpid,
    /// What became of ciphertexts that several spaces share since a fork, by their former LPID,
    /// which no other page ever has.
    shared: HashMap<Lpid, Shared>,
    /// The keys of `shared`, and some that are there no more: those that were looked at longest ago
    /// first.
    order: VecDeque<Lpid>,
    store: &'a PageStore,
}

impl<'a> Resealing<'a> {
    /// A round over what was sealed under LPIDs before `first`.
    pub fn before(first: Lpid, store: &'a PageStore) -> Self {
        Resealing { first, shared: HashMap::new(), order: VecDeque::new(), store }
    }

    /// What this record became in a space before, held once more for another.
    fn again(&mut self, old: &PageRecord) -> Option<PageRecord> {
        let shared = self.shared.get_mut(&old.lpid).filter(|shared| shared.old == *old)?;
        let new = shared.new;
        shared.others -= 1;
        match shared.others {
            // The last one gets the hold that was kept.
            0 => drop(self.shared.remove(&old.lpid)),
            _ => self.store.retain(new.place),
        }
        Some(new)
    }

    /// Notes what a record became, if others have it too. One that flipped bits brought to another
    /// place is not noted again.
    fn note(&mut self, old: &PageRecord, new: PageRecord) {
        let others = self.store.holds(old.place).saturating_sub(1);
        if others > 0 && !self.shared.contains_key(&old.lpid) {
            self.store.retain(new.place);
            self.shared.insert(old.lpid, Shared { old: *old, new, others });
            self.order.push_back(old.lpid);
        }
    }

    /// Gives back what is held for others alone, the space that had it having given it up: it is
    /// stored for none. Looks at a few each time.
    fn give_back(&mut self) {
        for _ in 0..LOOKS.min(self.order.len()) {
            let Some(lpid) = self.order.pop_front() else { break };
            let Some(shared) = self.shared.get(&lpid) else { continue };
            if self.store.holds(shared.new.place) > 1 {
                self.order.push_back(lpid);
                continue;
            }
            self.store.release(shared.new.place);
            self.shared.remove(&lpid);
        }
    }
}

impl Drop for Resealing<'_> {
    fn drop(&mut self) {
        for shared in self.shared.values() {
            self.store.release(shared.new.place);
        }
    }
}

impl Fault<'_> {
    /// Seals anew what has to be among the `most` stored pages of a space from page `from` on: the
    /// page to go on at, and what became of them. None: there are no more. Pages that are in the
    /// Clear as well are sealed anew too: they leave as what is stored if nothing writes to them.
    pub fn reseal_stored(
        &self,
        space: &Arc<Space>,
        from: Vpn,
        most: usize,
        resealing: &mut Resealing<'_>,
    ) -> Result<Option<(Vpn, Resealed)>, Stop> {
        let mut state = space.state.lock();
        if space.is_gone() || self.end.has_come() {
            return Ok(None);
        }
        let resealed = self.reseal_batch(space, &mut state, from, most, resealing);
        let resealed = self.end.or_stop(resealed);
        let wakes = std::mem::take(&mut state.pending.wakes);
        drop(state);
        space.wake_all(&wakes);
        self.serve_left_over(space)?;
        resealed
    }

    fn reseal_batch(
        &self,
        space: &Space,
        state: &mut SpaceState,
        from: Vpn,
        most: usize,
        resealing: &mut Resealing<'_>,
    ) -> Result<Option<(Vpn, Resealed)>, Stop> {
        let mut stored = Vec::with_capacity(most);
        self.records.from(space.id, from, most, &mut stored)?;
        let Some(&(last, _)) = stored.last() else { return Ok(None) };
        stored.retain(|(_, record)| record.lpid < resealing.first);
        resealing.give_back();
        let mut all = Resealed::default();
        with_scratch(|scratch| {
            stored.iter().try_for_each(|(vpn, record)| -> Result<(), Stop> {
                all = all + self.reseal(space, state, *vpn, record, resealing, scratch)?;
                Ok(())
            })
        })?;
        add(&self.counts.resealed_pages, all.pages);
        Ok(Some((last + 1, all)))
    }

    /// Whether a page can have another place without taking it from what is on its way to the
    /// store. What others share takes a second one until it was sealed anew for each of them: if
    /// there are not places for all that they may write to by then, only a few may at a time.
    fn has_place_for(&self, old: &PageRecord, resealing: &Resealing<'_>) -> bool {
        if self.store.holds(old.place) <= 1 {
            return self.store.spares(PLACES_LEFT);
        }
        let shared = self.records.stored().saturating_sub(self.store.pages());
        let most = self.budget.used() + PLACES_LEFT;
        let is_beyond_need = self.store.spares(most + shared);
        is_beyond_need || resealing.shared.len() < MOST_TWICE && self.store.spares(most)
    }

    fn reseal(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        old: &PageRecord,
        resealing: &mut Resealing<'_>,
        scratch: &mut Scratch,
    ) -> Result<Resealed, Stop> {
        let done = Resealed { pages: 1, ..Resealed::default() };
        if let Some(new) = resealing.again(old) {
            self.records.enter(space.id, &[(vpn, new)])?;
            return Ok(done);
        }
        if !self.has_place_for(old, resealing) {
            return Ok(Resealed { without_place: 1, ..Resealed::default() });
        }
        let page = &mut scratch.pages[0].0;
        if let Opened::Violated(violation) = self.open_page(old, page, None)? {
            return match self.violated(space, state, vpn, violation) {
                Ok(Served::Yes | Served::Poisoned | Served::Back(_)) | Err(Unserved::Back(_)) => {
                    Ok(Resealed { left: 1, ..Resealed::default() })
                }
                Err(Unserved::Stop(stop)) => Err(stop),
            };
        }
        let sealed = match page_protocol::seal(self.cipher, self.gpc, page) {
            Ok(sealed) => sealed,
            Err(violation) => {
                wipe(page);
                return Err(crate::pager::violation_at_page(vpn, violation));
            }
        };
        let Ok((place, ())) = self.store.put(|cipher| sealed.store(self.cipher, cipher)) else {
            return Ok(Resealed { without_place: 1, ..Resealed::default() });
        };
        let new = sealed.at(place);
        resealing.note(old, new);
        self.records.enter(space.id, &[(vpn, new)])?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
