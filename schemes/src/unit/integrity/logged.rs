//! What both log hashes share: which chunks are on chip, when a check is due, and that nothing is
//! answered after one has failed.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::PAGE_BLOCKS;
use super::super::anatomy::{Anatomy, LogAnatomy};
use super::super::metadata_cache::{MetadataCache, NextLevel};
use super::super::page_table::PageTable;
use super::super::place::{Place, Region};
use super::super::port::{Binding, UnitPort};
use super::super::time_stamps::StampedMemory;
use super::{Integrity, bare};
use crate::memory_line::MemoryLine;
use casemate_core::checks::Checks;
use casemate_core::node_cache::Capacity;
use casemate_core::port::{FixedBytes, Port};
use casemate_core::violation::Violation;

/// A log hash, as its figure has it. Chunks are counted as [`Residence`] counts them.
pub trait LogScheme<P: UnitPort> {
    /// Chunks and time stamps.
    fn memory(&mut self) -> &mut StampedMemory<P>;

    /// Prepares for chunks, before anything else is done.
    fn initialise(&mut self, _residence: &Residence<P>) -> Result<(), Violation> {
        Ok(())
    }

    /// Chunks that are covered from now on, with equal contents.
    fn add_chunks(
        &mut self,
        residence: &Residence<P>,
        leaves: Range<u64>,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation>;

    /// A chunk leaves the chip.
    fn write_chunk(
        &mut self,
        residence: &Residence<P>,
        leaf: u64,
        contents: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation>;

    /// A chunk comes in.
    fn read_chunk(
        &mut self,
        residence: &Residence<P>,
        leaf: u64,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation>;

    /// Verifies everything since the last check.
    fn integrity_check(&mut self, residence: &Residence<P>) -> Result<(), Violation>;

    /// Whether the next operation might take the last time stamp.
    fn is_check_due(&self) -> bool;

    /// Throws one of the scheme's own lines out, if it is on chip.
    fn evict(&mut self, _place: Place) -> Result<(), Violation> {
        Ok(())
    }

    /// Takes out what the scheme itself has on chip.
    fn evict_all(&mut self, _residence: &Residence<P>) -> Result<(), Violation> {
        Ok(())
    }

    /// Where what belongs to a block lies.
    fn anatomy(&self, residence: &Residence<P>, data: Place, counter: Option<Place>) -> LogAnatomy;
}

/// Where each chunk is: on chip, in memory, or in no valid page. Chunks are counted in one row,
/// data first, then lines of counters.
pub struct Residence<P: Port> {
    data_lines: u64,
    counter_lines: u64,
    pages: PageTable,
    on_chip: BTreeMap<u64, OnChip<P>>,
}

/// A chunk on chip.
enum OnChip<P: Port> {
    /// In the program's cache; what memory has of it is kept here in case it is asked for again, as
    /// when a page is encrypted anew. In a processor it is that cache itself that answers.
    Program(P::V<P::Line>),
    /// In the metadata cache.
    Metadata,
}

impl<P: UnitPort> Residence<P> {
    /// Number of chunks.
    pub fn leaves(&self) -> u64 {
        self.data_lines + self.counter_lines
    }

    /// A chunk's number.
    pub fn leaf(&self, place: Place) -> u64 {
        match place.region {
            Region::Data => place.index,
            _ => self.data_lines + place.index,
        }
    }

    /// Where a chunk lies.
    pub fn place(&self, leaf: u64) -> Place {
        match leaf.checked_sub(self.data_lines) {
            None => Place::new(Region::Data, leaf),
            Some(line) => Place::new(Region::Counters, line),
        }
    }

    /// Whether a check has to read a chunk.
    pub fn is_in_memory(&self, leaf: u64) -> bool {
        let valid = leaf >= self.data_lines || self.pages.is_valid(leaf / page_lines::<P>());
        valid && !self.on_chip.contains_key(&leaf)
    }

    fn held_by_program(&self) -> Vec<(u64, P::V<P::Line>)> {
        let held = self.on_chip.iter().filter_map(|(leaf, on_chip)| match on_chip {
            OnChip::Program(block) => Some((*leaf, P::carry(*P::peek(block), P::moment(block)))),
            OnChip::Metadata => None,
        });
        held.collect()
    }

    /// The chunks that a check has to read, each once: see [`PageTable`].
    pub fn in_memory(&self) -> impl Iterator<Item = u64> + '_ {
        let page = page_lines::<P>();
        let frames = self.pages.valid_below(self.data_lines / page);
        let data = frames.flat_map(move |frame| frame * page..(frame + 1) * page);
        data.chain(self.data_lines..self.leaves()).filter(|leaf| self.is_in_memory(*leaf))
    }
}

/// Chunks of a page.
fn page_lines<P: UnitPort>() -> u64 {
    PAGE_BLOCKS / P::Line::BLOCKS as u64
}

/// A log hash as an integrity scheme.
pub struct Logged<P: Port, L> {
    chunks: Chunks<P, L>,
    metadata: MetadataCache<P>,
}

struct Chunks<P: Port, L> {
    scheme: L,
    residence: Residence<P>,
    poisoned: bool,
}

impl<P: UnitPort, L: LogScheme<P>> Chunks<P, L> {
    /// Before each operation: nothing is answered after a violation, and no TIMER reaches its end
    /// (LHash, section 4.2.1).
    fn begin(&mut self) -> Result<(), Violation> {
        if self.poisoned {
            return Err(Violation::Poisoned);
        }
        if self.scheme.is_check_due() { self.check() } else { Ok(()) }
    }

    fn check(&mut self) -> Result<(), Violation> {
        self.guarded(|scheme, residence| scheme.integrity_check(residence))
    }

    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut L, &Residence<P>) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        step(&mut self.scheme, &self.residence).inspect_err(|_| self.poisoned = P::Checks::POISON)
    }

    fn bring_in_leaf(&mut self, leaf: u64, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        self.guarded(|scheme, residence| scheme.read_chunk(residence, leaf, from))
    }

    fn take_out_leaf(
        &mut self,
        leaf: u64,
        contents: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        self.guarded(|scheme, residence| scheme.write_chunk(residence, leaf, contents, dirty))?;
        self.residence.on_chip.remove(&leaf);
        Ok(())
    }

    fn add(&mut self, leaves: Range<u64>) -> Result<(), Violation> {
        let zeros = P::carry(P::Line::ZERO, self.scheme.memory().port.now());
        self.guarded(|scheme, residence| scheme.add_chunks(residence, leaves, &zeros))
    }
}

impl<P: UnitPort, L: LogScheme<P>> NextLevel<P> for Chunks<P, L> {
    fn port(&mut self) -> &mut P {
        &mut self.scheme.memory().port
    }

    fn bring_in(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        self.begin()?;
        let leaf = self.residence.leaf(place);
        let line = self.bring_in_leaf(leaf, from)?;
        self.residence.on_chip.insert(leaf, OnChip::Metadata);
        Ok(line)
    }

    fn take_out(
        &mut self,
        place: Place,
        line: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        self.begin()?;
        self.take_out_leaf(self.residence.leaf(place), line, dirty)
    }
}

impl<P: UnitPort, L: LogScheme<P>> Logged<P, L> {
    /// A log hash over so many chunks.
    pub(in super::super) fn new(
        scheme: L,
        data_lines: u64,
        counter_lines: u64,
        metadata_cache: Capacity,
    ) -> Self {
        let residence = Residence {
            data_lines,
            counter_lines,
            pages: PageTable::default(),
            on_chip: BTreeMap::new(),
        };
        let chunks = Chunks { scheme, residence, poisoned: false };
        Self { chunks, metadata: MetadataCache::new(metadata_cache) }
    }

    /// Time stamps that were found on chip so far, and that were not.
    pub fn time_stamp_hits_and_misses(&mut self) -> (u64, u64) {
        let cache = self.chunks.scheme.memory().cache();
        (cache.hits(), cache.misses())
    }

    /// As [`Associative::freeze`](super::super::associative::Associative::freeze), of the
    /// time-stamp cache.
    pub(in super::super) fn freeze(&mut self, frozen: bool) {
        self.chunks.scheme.memory().freeze_cache(frozen);
    }

    /// The page table, which need not be trusted.
    pub fn page_table_mut(&mut self) -> &mut PageTable {
        &mut self.chunks.residence.pages
    }
}

impl<P: UnitPort, L: LogScheme<P>> Integrity<P> for Logged<P, L> {
    fn port(&mut self) -> &mut P {
        &mut self.chunks.scheme.memory().port
    }

    fn read(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.chunks.begin()?;
        let leaf = self.chunks.residence.leaf(place);
        if let Some(OnChip::Program(block)) = self.chunks.residence.on_chip.get(&leaf) {
            let (block, at) = (*P::peek(block), P::moment(block));
            let at = self.chunks.scheme.memory().port.join(from, at);
            return Ok(P::carry(block, at));
        }
        let block = self.chunks.bring_in_leaf(leaf, from)?;
        let copy = P::carry(*P::peek(&block), P::moment(&block));
        self.chunks.residence.on_chip.insert(leaf, OnChip::Program(copy));
        Ok(block)
    }

    /// A write-allocate cache (section 4.2.1): what it writes back, it brought in before. Where it
    /// did not, that is done now.
    fn write(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.chunks.begin()?;
        let leaf = self.chunks.residence.leaf(place);
        if !self.chunks.residence.on_chip.contains_key(&leaf) {
            let _old = self.chunks.bring_in_leaf(leaf, P::moment(block))?;
        }
        self.chunks.take_out_leaf(leaf, block, true)
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        self.chunks.begin()?;
        self.metadata.read(place, from, &mut self.chunks)
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.chunks.begin()?;
        self.metadata.amend(place, from, &mut self.chunks, change)
    }

    fn is_told_of_drops(&self, place: Place) -> bool {
        self.chunks.residence.on_chip.contains_key(&self.chunks.residence.leaf(place))
    }

    fn drop_clean(&mut self, place: Place, block: &P::V<P::Line>) -> Result<(), Violation> {
        self.chunks.begin()?;
        if self.is_told_of_drops(place) {
            self.chunks.take_out_leaf(self.chunks.residence.leaf(place), block, false)?;
        }
        Ok(())
    }

    /// add-chunks for a page that was not valid before (section 4.2.1).
    fn add_page(&mut self, frame: u64) -> Result<(), Violation> {
        self.chunks.begin()?;
        if self.chunks.residence.pages.insert(frame) {
            let page = page_lines::<P>();
            self.chunks.add(frame * page..(frame + 1) * page)?;
        }
        Ok(())
    }

    fn checks_at_intervals(&self) -> bool {
        true
    }

    fn check(&mut self) -> Result<(), Violation> {
        if self.chunks.poisoned {
            return Err(Violation::Poisoned);
        }
        self.chunks.check()
    }

    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        let log = self.chunks.scheme.anatomy(&self.chunks.residence, data, counter);
        Anatomy { path: log.path.clone(), log: Some(log), ..bare::<P>(data, counter) }
    }

    /// No time stamp is on chip after it.
    fn initialise(&mut self, _lines: u64) -> Result<(), Violation> {
        self.freeze(true);
        self.chunks.guarded(|scheme, residence| scheme.initialise(residence))?;
        self.chunks.add(self.chunks.residence.data_lines..self.chunks.residence.leaves())?;
        self.freeze(false);
        Ok(())
    }

    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        match place.region {
            Region::Counters => {
                self.chunks.begin()?;
                self.metadata.forget(place, &mut self.chunks)
            }
            _ => self.chunks.guarded(|scheme, _| scheme.evict(place)),
        }
    }

    /// What the program's cache holds counts as dropped clean: if it writes a block back later, the
    /// block is brought in first.
    fn flush(&mut self) -> Result<(), Violation> {
        self.chunks.begin()?;
        self.metadata.empty(&mut self.chunks)?;
        for (leaf, block) in self.chunks.residence.held_by_program() {
            self.chunks.begin()?;
            self.chunks.take_out_leaf(leaf, &block, false)?;
        }
        self.chunks.guarded(|scheme, residence| scheme.evict_all(residence))?;
        self.chunks.scheme.memory().forget_time_stamps();
        Ok(())
    }
}
