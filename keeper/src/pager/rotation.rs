//! Rotation of keys: pages get keys of a new epoch, and what was sealed in the one before is sealed
//! anew, while the program runs (Cryptkeeper, section VI-D).
//!
//! ```text
//! a new epoch begins          pages are sealed under its keys    PageCipher::begin_epoch
//!   each stored page of the one before is opened and sealed      fault/reseal.rs
//!   until the directory has no record of one                     Directory::stored_before
//! the one before ends         its root and keys are destroyed    PageCipher::end_earlier_epochs
//! ```

use super::fault::{Resealed, Resealing};
use super::{Pager, Stop, violation_at};
use crate::event_counts::add;
use casemate_core::{Lpid, Violation};
use casemate_pages::PageCipher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Pages that are sealed anew under one lock of their space.
const BATCH: usize = 16;
/// The rest after a batch, as a multiple of what it took: the program's own faults come first.
const REST: u32 = 3;
/// The time until an epoch is begun again that could not begin while a key was derived.
const DERIVING_PAUSE: Duration = Duration::from_millis(1);
/// The time until a round is repeated in which nothing could be done.
const PAUSE: Duration = Duration::from_secs(1);

/// Who rotates: one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct Rotations {
    /// A thread rotates.
    pub is_taken: AtomicBool,
    /// A rotation that was asked for is under way, or waits for its turn.
    pub is_asked: AtomicBool,
}

impl Pager {
    /// The keys of pages.
    pub(crate) fn page_keys(&self) -> &PageCipher {
        &self.cipher
    }

    /// Goes on to the next epoch and ends the one before. `rest` is called between two batches.
    /// Nothing is done once a violation was noted: a page that did not verify cannot be sealed
    /// anew. Whether all that was stored has keys of the new epoch. One thread at a time.
    pub(crate) fn rotate(
        self: &Arc<Self>,
        rest: &mut dyn FnMut(&Pager, Duration),
    ) -> Result<bool, Stop> {
        if self.must_not_rotate() {
            return Ok(false);
        }
        let no_key = |violation: Violation| violation_at("a rotation of keys", violation);
        self.cipher.prepare_epoch(&self.gpc).map_err(no_key)?;
        let first = loop {
            match self.records().begin_epoch(|| self.cipher.begin_epoch(&self.gpc)) {
                Some(first) => break first,
                None => rest(self, DERIVING_PAUSE),
            }
        };
        loop {
            // Who took an earlier LPID has entered its record by the end of a round: a page is
            // sealed and recorded under the lock of its space, which the round takes.
            let done = self.reseal_all(first, rest)?;
            if self.must_not_rotate() {
                return Ok(false);
            }
            // A round may have missed pages that were moved, or spaces that were made: the count
            // is what tells.
            if self.records().stored_before() == 0 {
                break;
            }
            if done.pages == 0 {
                rest(self, PAUSE);
            }
        }
        self.cipher.end_earlier_epochs().map_err(no_key)?;
        add(&self.counts.key_rotations, 1);
        Ok(true)
    }

    fn must_not_rotate(&self) -> bool {
        self.ending().is_some() || self.noted_violation().is_some()
    }

    /// Seals anew whatever is stored under an LPID before `first`, of all spaces by address: what a
    /// fork shares is sealed for all that have it at about the same time, and is not stored twice
    /// for longer.
    fn reseal_all(
        self: &Arc<Self>,
        first: Lpid,
        rest: &mut dyn FnMut(&Pager, Duration),
    ) -> Result<Resealed, Stop> {
        let mut resealing = Resealing::before(first, &self.store);
        let mut all = Resealed::default();
        let mut spaces: Vec<_> = self.all_spaces().into_iter().map(|space| (0, space)).collect();
        while let Some(at) = (0..spaces.len()).min_by_key(|&at| spaces[at].0) {
            let (from, space) = &mut spaces[at];
            let begun = Instant::now();
            let done = self.fault().reseal_stored(space, *from, BATCH, &mut resealing)?;
            let Some((next, done)) = done else {
                spaces.swap_remove(at);
                continue;
            };
            (*from, all) = (next, all + done);
            rest(self, begun.elapsed() * REST);
            if self.must_not_rotate() {
                return Ok(all);
            }
        }
        Ok(all)
    }
}
