//! Keys of pages by segment and epoch (Cryptkeeper, section VI-D): only segments in use have one.
//!
//! ```text
//! root of an epoch --BLAKE3(epoch, segment)--> AES-256 key of a segment
//! ```
//!
//! A *segment* is [`SEGMENT_PAGES`] LPIDs in a row: pages that were sealed one after the other,
//! whatever their addresses. So a record's LPID says under which key its page is, and a key's last
//! page is sealed soon after its first. An *epoch* is a row of segments under one root. An epoch
//! begins when the keys are rotated; the one before ends, and its root is destroyed, once no page
//! is left that was sealed in it.
//!
//! The keys of at most [`MOST_KEYS`] segments are kept, those that were used last. For another one
//! the root is asked for, by which that key is derived again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use zeroize::Zeroizing;

use casemate_core::gpc::{GlobalPageCounter, Lpid};
use casemate_core::key_derivation::derive;
use casemate_core::violation::Violation;

/// LPIDs of a segment: 16 MiB of pages.
pub const SEGMENT_PAGES: u64 = 4096;
/// Segments whose keys are kept at most: those of 2 GiB of pages.
pub const MOST_KEYS: usize = 128;

/// Of BLAKE3's `derive_key`, for the key of a segment: root, epoch and segment, the numbers in 8
/// bytes, the least first.
pub const SEGMENT_CONTEXT: &str = "casemate 2026-11-27 segment of pages AES-256-GCM key v1";

/// Where the roots of epochs come from. There are two at a time at most: that of the last epoch,
/// and that of the one before until it [ends](Self::end_epochs_before).
pub trait Roots: Send + Sync {
    /// Calls `with` with the root of an epoch, once. Nothing keeps it.
    ///
    /// # Errors
    /// [`NoRoot`]; `with` was not called then.
    fn with_root(&self, epoch: u64, with: &mut dyn FnMut(&[u8; 32])) -> Result<(), NoRoot>;

    /// Makes the root of the next epoch. Who knows all roots before it does not know this one.
    ///
    /// # Errors
    /// [`NoRoot`], also while there are two; nothing is changed then.
    fn begin_epoch(&self, epoch: u64) -> Result<(), NoRoot>;

    /// Destroys the roots of all epochs before this one.
    ///
    /// # Errors
    /// [`NoRoot`] if that cannot be done.
    fn end_epochs_before(&self, epoch: u64) -> Result<(), NoRoot>;

    /// The keys of how many segments to come are derived beside that of a new one: more than none
    /// where it takes long to come by a root.
    fn segments_ahead(&self) -> u64 {
        0
    }
}

/// Roots that stay where they are.
impl<R: Roots> Roots for &'static R {
    fn with_root(&self, epoch: u64, with: &mut dyn FnMut(&[u8; 32])) -> Result<(), NoRoot> {
        (**self).with_root(epoch, with)
    }

    fn begin_epoch(&self, epoch: u64) -> Result<(), NoRoot> {
        (**self).begin_epoch(epoch)
    }

    fn end_epochs_before(&self, epoch: u64) -> Result<(), NoRoot> {
        (**self).end_epochs_before(epoch)
    }

    fn segments_ahead(&self) -> u64 {
        (**self).segments_ahead()
    }
}

/// The root of an epoch could not be had, or that epoch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoot;

/// The AES-256 key of one segment, wiped when dropped.
pub(crate) type SegmentKey = Zeroizing<[u8; 32]>;

/// The keys of segments in use.
pub(crate) struct SegmentKeys {
    roots: Box<dyn Roots>,
    /// Held while keys are derived and put into the table, and while epochs change. Locked before
    /// the table.
    deriving: Mutex<()>,
    table: RwLock<Table>,
    /// Raised when a key is derived, and by [`tick`](Self::tick): the time of uses.
    clock: AtomicU64,
    derived: AtomicU64,
}

struct Table {
    /// The oldest first. The last is the one in which pages are sealed.
    epochs: Vec<Epoch>,
    kept: HashMap<u64, Kept>,
    /// The first segment that no key was derived for yet, nor for any after it.
    unused_from: u64,
}

#[derive(Clone, Copy)]
struct Epoch {
    number: u64,
    first_segment: u64,
}

struct Kept {
    key: LessSafeKey,
    used: AtomicU64,
}

/// The segment of a page.
fn segment_of(lpid: Lpid) -> u64 {
    lpid.0 / SEGMENT_PAGES
}

impl SegmentKeys {
    /// No key is derived yet. The first epoch is number 0.
    pub fn new(roots: Box<dyn Roots>) -> Self {
        let epochs = vec![Epoch { number: 0, first_segment: 0 }];
        SegmentKeys {
            roots,
            deriving: Mutex::default(),
            table: RwLock::new(Table { epochs, kept: HashMap::new(), unused_from: 0 }),
            clock: AtomicU64::new(1),
            derived: AtomicU64::new(0),
        }
    }

    /// Calls `with` with the key of a page.
    ///
    /// # Errors
    /// [`Violation::NoKey`].
    #[inline]
    pub fn with_key<T>(
        &self,
        lpid: Lpid,
        with: impl FnOnce(&LessSafeKey) -> T,
    ) -> Result<T, Violation> {
        let segment = segment_of(lpid);
        loop {
            let table = self.table();
            if let Some(kept) = table.kept.get(&segment) {
                kept.used.store(self.clock.load(Relaxed), Relaxed);
                return Ok(with(&kept.key));
            }
            drop(table);
            self.derive(segment).map_err(|NoRoot| Violation::NoKey { lpid })?;
        }
    }

    /// Derives the key of a page for a use that needs its bytes, apart from those that are kept.
    ///
    /// # Errors
    /// [`Violation::NoKey`].
    pub fn bytes(&self, lpid: Lpid) -> Result<SegmentKey, Violation> {
        let segment = segment_of(lpid);
        let mut key = SegmentKey::default();
        let _one = self.deriving();
        let epoch = self.table().epoch_of(segment);
        let mut derive = |root: &[u8; 32]| fill_key(root, epoch.unwrap_or(0), segment, &mut key);
        epoch
            .ok_or(NoRoot)
            .and_then(|epoch| self.roots.with_root(epoch, &mut derive))
            .map_err(|NoRoot| Violation::NoKey { lpid })?;
        Ok(key)
    }

    #[cold]
    fn derive(&self, segment: u64) -> Result<(), NoRoot> {
        let _one = self.deriving();
        let (epoch, segments) = {
            let table = self.table();
            if table.kept.contains_key(&segment) {
                return Ok(());
            }
            let epoch = table.epoch_of(segment).ok_or(NoRoot)?;
            let is_new = segment >= table.unused_from;
            let ahead = if is_new { self.roots.segments_ahead() } else { 0 };
            (epoch, segment..=segment.saturating_add(ahead))
        };
        let mut keys = Vec::new();
        self.roots.with_root(epoch, &mut |root| {
            for segment in segments.clone() {
                let mut key = SegmentKey::default();
                fill_key(root, epoch, segment, &mut key);
                keys.push((segment, schedule(&key)));
            }
        })?;
        if keys.is_empty() {
            return Err(NoRoot);
        }
        self.derived.fetch_add(keys.len() as u64, Relaxed);
        let now = self.clock.fetch_add(1, Relaxed) + 1;
        let mut table = self.table_mut();
        table.unused_from = table.unused_from.max(segments.end().saturating_add(1));
        for (segment, key) in keys {
            table.make_room();
            table.kept.insert(segment, Kept { key, used: AtomicU64::new(now) });
        }
        Ok(())
    }

    /// Makes the root of the next epoch, which may take long.
    ///
    /// # Errors
    /// [`Violation::SeedsExhausted`], [`Violation::NoKey`]; nothing is changed.
    pub fn prepare_epoch(&self, counter: &GlobalPageCounter) -> Result<(), Violation> {
        let _one = self.deriving();
        let next = self.table().epochs.last().map_or(0, |epoch| epoch.number) + 1;
        let lpid = counter.upcoming();
        // Segments enough are left for all that is sealed until it begins.
        if segment_of(lpid) > u64::MAX / SEGMENT_PAGES / 2 {
            return Err(Violation::SeedsExhausted);
        }
        self.roots.begin_epoch(next).map_err(|NoRoot| Violation::NoKey { lpid })
    }

    /// Goes on to the epoch that was prepared: pages get LPIDs of it from now on. Returns its first
    /// LPID; what was sealed under earlier ones is of the epochs before. None while a key is being
    /// derived, which may take long.
    pub fn begin_epoch(&self, counter: &GlobalPageCounter) -> Option<Lpid> {
        let _one = match self.deriving.try_lock() {
            Ok(one) => one,
            Err(TryLockError::Poisoned(one)) => one.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let mut table = self.table_mut();
        let next = table.epochs.last().map_or(0, |epoch| epoch.number) + 1;
        // A page is sealed under a lock on the table: LPIDs of all so far are before this segment.
        let first_segment = segment_of(counter.upcoming()) + 1;
        let first = first_segment.saturating_mul(SEGMENT_PAGES);
        table.epochs.push(Epoch { number: next, first_segment });
        // They were derived ahead, by the root of the epoch before.
        table.kept.retain(|&segment, _| segment < first_segment);
        table.unused_from = table.unused_from.min(first_segment);
        drop(table);
        counter.skip_to(Lpid(first));
        Some(Lpid(first))
    }

    /// Ends all epochs but the last, and destroys their keys and roots. A page that was sealed in
    /// one of them cannot be opened any more.
    ///
    /// # Errors
    /// [`Violation::NoKey`] if the roots of earlier epochs cannot be destroyed.
    pub fn end_earlier_epochs(&self) -> Result<(), Violation> {
        let _one = self.deriving();
        let mut table = self.table_mut();
        let Some(last) = table.epochs.pop() else { return Ok(()) };
        table.epochs = vec![last];
        table.kept.retain(|&segment, _| segment >= last.first_segment);
        drop(table);
        let lpid = Lpid(last.first_segment.saturating_mul(SEGMENT_PAGES));
        let ended = self.roots.end_epochs_before(last.number);
        ended.map_err(|NoRoot| Violation::NoKey { lpid })
    }

    /// A moment of the clock of uses, for [`forget_unused_since`](Self::forget_unused_since).
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Relaxed) + 1
    }

    /// Drops the keys that were not used since that moment. Returns how many are left.
    pub fn forget_unused_since(&self, moment: u64) -> usize {
        let mut table = self.table_mut();
        table.kept.retain(|_, kept| *kept.used.get_mut() >= moment);
        table.kept.len()
    }

    /// How many keys are kept now.
    pub fn kept(&self) -> usize {
        self.table().kept.len()
    }

    /// How many keys were derived so far.
    pub fn derived(&self) -> u64 {
        self.derived.load(Relaxed)
    }

    // No step that holds one of these locks can stop half-way but by a failed allocation, which
    // leaves a key less in the table.

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn deriving(&self) -> MutexGuard<'_, ()> {
        self.deriving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The epoch of a segment. None if that has ended.
    fn epoch_of(&self, segment: u64) -> Option<u64> {
        let before = |epoch: &&Epoch| epoch.first_segment <= segment;
        self.epochs.iter().rev().find(before).map(|epoch| epoch.number)
    }

    /// Drops the key that was not used for longest, if there are as many as may be.
    fn make_room(&mut self) {
        if self.kept.len() < MOST_KEYS {
            return;
        }
        let used = |kept: &Kept| kept.used.load(Relaxed);
        let oldest = self.kept.iter().min_by_key(|(_, kept)| used(kept)).map(|(&of, _)| of);
        if let Some(oldest) = oldest {
            self.kept.remove(&oldest);
        }
    }
}

fn fill_key(root: &[u8; 32], epoch: u64, segment: u64, key: &mut SegmentKey) {
    let names = [epoch.to_le_bytes(), segment.to_le_bytes()];
    derive(SEGMENT_CONTEXT, &[root, &names[0], &names[1]], key.as_mut_slice());
}

/// The key schedule lies in a block of aws-lc's allocator, which is wiped when it is freed.
fn schedule(key: &SegmentKey) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key.as_slice()).expect("an AES-256 key has 32 bytes");
    LessSafeKey::new(key)
}

#[cfg(test)]
mod tests;
