//! Flipped bits of stored pages: put right, counted, and where they come again and again.
//!
//! A page that does not verify is fetched anew, the one or two bits that its tag tells to have
//! flipped are flipped back in private memory, and it is opened as any other: what is released has
//! been verified. The store is not written to; the caller sees to it that the page gets another
//! ciphertext.

use super::{Stop, violation_at};
use crate::event_counts::{EventCounts, add};
use crate::outcome::FailingFrame;
use crate::pager::plain::wipe;
use crate::store::PageStore;
use crate::sys::mutex::Mutex;
use casemate_core::{Lpid, PAGE_BYTES};
use casemate_pages::{Flips, PageCipher, PageRecord, StorePlace, page_protocol};
use std::collections::HashMap;

/// Frames that are named at most.
const MOST_NAMED: usize = 5;
/// Places that are told apart at most: a run that has more does not need their names.
const MOST_KNOWN: usize = 1 << 16;

/// Where the memory at an address of this process lies in the machine's, if that can be seen.
pub(crate) type PhysicalAddress = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;

/// What a run does about flipped bits.
#[derive(Default)]
pub(crate) struct Healing {
    is_on: bool,
    physical_address: Option<PhysicalAddress>,
    places: Mutex<HashMap<StorePlace, Healed>>,
}

/// What was healed at a place last. Processes that share a ciphertext since a fork meet the same
/// flipped bits one after the other, and so does one that cannot put it elsewhere.
#[derive(Clone, Copy)]
struct Healed {
    lpid: Lpid,
    flips: Flips,
    frame: FailingFrame,
}

impl Healing {
    /// Flipped bits are put right.
    pub fn with(physical_address: Option<PhysicalAddress>) -> Self {
        Healing { is_on: true, physical_address, places: Mutex::default() }
    }

    /// Opens a page into `plain` that did not verify, if one or two of its bits have flipped; its
    /// ciphertext as it was sealed goes to `mended`. False: it is a violation, and `plain` is
    /// wiped.
    pub fn open(
        &self,
        (cipher, store, counts): (&PageCipher, &PageStore, &EventCounts),
        record: &PageRecord,
        plain: &mut [u8; PAGE_BYTES],
        mended: Option<&mut [u8; PAGE_BYTES]>,
    ) -> Result<bool, Stop> {
        if !self.is_on {
            return Ok(false);
        }
        let finder = cipher.flip_finder(record.lpid);
        let finder = finder.map_err(|violation| violation_at("a stored page", violation))?;
        let mut fetched = store
            .with(record.place, |stored| page_protocol::fetch(cipher, record, stored, plain))?;
        let Some(flips) = fetched.heal(&finder) else {
            wipe(plain);
            return Ok(false);
        };
        if let Some(mended) = mended {
            *mended = *fetched.cipher();
        }
        if fetched.open(cipher).is_err() {
            wipe(plain);
            return Ok(false);
        }
        if self.is_new(store, record, flips) {
            add(&counts.healed_pages, 1);
            add(&counts.healed_bits, flips.count());
        }
        Ok(true)
    }

    /// Whether these bits were not put right before, at the same place and of the same ciphertext.
    fn is_new(&self, store: &PageStore, record: &PageRecord, flips: Flips) -> bool {
        let mut places = self.places.lock();
        let known = places.get(&record.place).copied();
        if known.is_some_and(|known| (known.lpid, known.flips) == (record.lpid, flips)) {
            return false;
        }
        if known.is_none() && places.len() >= MOST_KNOWN {
            return true;
        }
        let mut frame = known.map(|known| known.frame).unwrap_or_default();
        // In the swap file no frame has failed.
        if let Some((offset, address)) = store.in_crypt(record.place) {
            if offset != frame.crypt_offset {
                frame = FailingFrame { crypt_offset: offset, ..FailingFrame::default() };
            }
            frame.physical_address = self.physical_address.as_ref().and_then(|of| of(address));
            frame.times += 1;
            frame.bits += flips.count();
        }
        places.insert(record.place, Healed { lpid: record.lpid, flips, frame });
        true
    }

    /// The frames in which bits flipped more than once, those that failed most often first.
    pub fn failing_again(&self) -> Vec<FailingFrame> {
        let mut again: Vec<FailingFrame> =
            self.places.lock().values().map(|healed| healed.frame).collect();
        again.retain(|frame| frame.times > 1);
        again.sort_unstable_by_key(|frame| (std::cmp::Reverse(frame.times), frame.crypt_offset));
        again.truncate(MOST_NAMED);
        again
    }
}
