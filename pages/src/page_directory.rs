//! The page directory: which page of which space lies where, under which LPID and tag.
//!
//! It does what the paper's Page Root Directory does (section 5.1) for every page outside the
//! Clear, whatever the tier: a page's tag plays the part of its page root.
//!
//! Everything lies in the array that the Bonsai tree protects: a radix table of spaces, for each
//! space a radix table of virtual pages, and tables of records. Trusted state is constant,
//! however many spaces and pages there are: the tree's, two words of the block allocator, and a
//! small cache of walks.

use crate::block_allocator::{BLOCK_LINES, BlockAllocator, TableBlock, first_line};
use crate::bytes::BytesPort;
use crate::directory_shape::DirectoryPort;
use crate::directory_shape::{LINE_BYTES, Line};
use crate::epoch_counts::EpochCounts;
use crate::keys::DirectoryKeys;
use crate::line_array::{LineArray, Lines};
use crate::logged_lines::LoggedLines;
use crate::page_record::PageRecord;
use crate::radix_table::Tables;
use casemate_core::checks::AllChecks;
use casemate_core::checks::Checks;
use casemate_core::geometry::LinePlace;
use casemate_core::hash_tree::HashTree;
use casemate_core::port::Port;
use casemate_core::violation::{Refusal, Violation};
use casemate_core::{Lpid, UntrustedMemory};

/// An address space: one process's, usually.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u32);

/// The page directory on bytes: the one that the keeper uses.
pub type PageDirectory<M> = Directory<BytesPort<M>, Lines<M, AllChecks>>;

/// How a directory is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verification {
    /// At once, by a Bonsai tree.
    #[default]
    Tree,
    /// What was written there earlier is told from what was written last by a check only
    /// ([`Directory::check`]); all else is noticed at once.
    LogHash,
}

/// Virtual page numbers have so many bits.
pub const VPN_BITS: u32 = 52;
/// Address bits that a record table decides.
pub(crate) const RECORD_TABLE_BITS: u32 = 7;
/// Records of a table.
pub(crate) const RECORDS: u64 = 1 << RECORD_TABLE_BITS;
/// Records of a line.
pub(crate) const RECORDS_PER_LINE: usize = LINE_BYTES / PageRecord::BYTES;
/// Pointer tables from a space's root down to a record table: 5 × 9 + 7 = 52 bits.
pub(crate) const PAGE_DEPTH: usize = 5;
/// Pointer tables from the root of all spaces down to a space: 4 × 9 ≥ 32 bits.
pub(crate) const SPACE_DEPTH: usize = 4;

/// The page directory, over any port.
pub struct Directory<P: Port, A = HashTree<P>> {
    pub(crate) tables: Tables<P, A>,
    space_root: TableBlock,
    walks: WalkCache,
    pub(crate) epochs: EpochCounts,
}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> Directory<BytesPort<M, C>, Lines<M, C>> {
    /// An empty directory. It keeps a copy of the keys, wiped on drop.
    pub fn new(memory: M, keys: &DirectoryKeys, cache_bytes: usize) -> Self {
        Self::verified_by(Verification::Tree, BytesPort::new(memory, keys), cache_bytes)
    }

    /// An empty directory that uses the keys where they are, and keeps no copy.
    pub fn new_in_place(
        how: Verification,
        memory: M,
        keys: &'static DirectoryKeys,
        cache_bytes: usize,
    ) -> Self {
        Self::verified_by(how, BytesPort::new_in_place(memory, keys), cache_bytes)
    }

    /// An empty directory over a port, verified one way or the other.
    pub fn verified_by(how: Verification, port: BytesPort<M, C>, cache_bytes: usize) -> Self {
        Self::in_lines(
            (),
            match how {
                Verification::Tree => Lines::Tree(HashTree::new(port, cache_bytes)),
                Verification::LogHash => Lines::Logged(LoggedLines::new(port, cache_bytes)),
            },
        )
    }
}

#[cfg(any(test, feature = "adversary"))]
impl<M, C, A> Directory<BytesPort<M, C>, A>
where
    M: UntrustedMemory<LinePlace, Line>,
    C: Checks,
    A: LineArray<BytesPort<M, C>>,
{
    /// The untrusted memory, for adversaries.
    pub fn memory_mut(&mut self) -> &mut M {
        self.tables.lines.port_mut().memory_mut()
    }
}

impl<P: DirectoryPort> Directory<P> {
    /// An empty directory over a port, verified by a tree.
    pub fn over(port: P, node_cache_bytes: usize) -> Self {
        let at = port.now();
        Self::in_lines(at, HashTree::new(port, node_cache_bytes))
    }
}

impl<P: DirectoryPort, A: LineArray<P>> Directory<P, A> {
    fn in_lines(at: P::Moment, mut lines: A) -> Self {
        let (blocks, space_root) = BlockAllocator::with_first_block(&mut lines);
        Self {
            tables: Tables { lines, blocks, at },
            space_root,
            walks: WalkCache::new(),
            epochs: EpochCounts::default(),
        }
    }

    /// Makes an empty space.
    pub fn create_space(&mut self, space: SpaceId) -> Result<(), Violation> {
        self.begin()?;
        if self.root_if_any(space)?.is_some() {
            return Err(Refusal::SpaceExists(space.0).into());
        }
        self.tables.blocks.check_available(SPACE_DEPTH as u64)?;
        let path = self.tables.make_path::<SPACE_DEPTH>(self.space_root, space.0.into())?;
        self.tables.add_child(&path)?;
        Ok(())
    }

    /// The record of a page, or `None` if it was never put out or was removed.
    pub fn lookup(&mut self, space: SpaceId, vpn: u64) -> Result<Option<PageRecord>, Violation> {
        self.begin()?;
        check_vpn(vpn)?;
        match self.record_table(space, vpn)? {
            Some(table) => self.record(RecordSlot::new(table, vpn)),
            None => Ok(None),
        }
    }

    /// Puts, replaces or (with `None`) removes a page's record. Returns the old one.
    pub fn replace(
        &mut self,
        space: SpaceId,
        vpn: u64,
        record: Option<PageRecord>,
    ) -> Result<Option<PageRecord>, Violation> {
        self.begin()?;
        check_vpn(vpn)?;
        if record.is_some_and(|record| record.place.0 == 0) {
            return Err(Refusal::PlaceIsZero.into());
        }
        let table = self.record_table(space, vpn)?;
        let old = match table {
            Some(table) => self.record(RecordSlot::new(table, vpn))?,
            None => None,
        };
        match (table, &old, &record) {
            (_, None, None) => {}
            (Some(table), Some(_), Some(_)) => {
                self.set_record(RecordSlot::new(table, vpn), record)?;
            }
            _ => self.add_or_remove(space, vpn, record)?,
        }
        old.iter().for_each(|old| self.epochs.remove(old));
        record.iter().for_each(|new| self.epochs.add(new));
        Ok(old)
    }

    /// LPIDs from `first` on are of a new epoch. No record may have one yet.
    pub fn begin_epoch(&mut self, first: Lpid) {
        self.epochs.begin(first);
    }

    /// How many records there are. A copy in another space counts as well.
    pub fn stored(&self) -> u64 {
        self.epochs.all()
    }

    /// How many records there are of pages that were sealed before the present epoch. A copy in
    /// another space counts as well.
    pub fn stored_before(&self) -> u64 {
        self.epochs.before()
    }

    /// Verifies what was believed since the last check, if the directory is verified by a log hash.
    /// How many lines were read for it.
    ///
    /// # Errors
    /// [`Violation::LogMismatch`]: something that was used was an old line. What does not verify.
    pub fn check(&mut self) -> Result<u64, Violation> {
        self.begin()?;
        self.tables.lines.check()
    }

    /// Writes every dirty line back to untrusted memory.
    pub fn flush(&mut self) -> Result<(), Violation> {
        self.begin()?;
        self.tables.lines.flush()
    }

    /// Untrusted bytes in use now: the allocated tables and their share of the tree.
    pub fn metadata_bytes(&self) -> u64 {
        self.tables.blocks.metadata_bytes(|lines| self.tables.lines.lines_beside(lines))
    }

    /// Lines of the allocated tables.
    pub(crate) fn lines_in_use(&self) -> u64 {
        self.tables.blocks.in_use() * BLOCK_LINES
    }

    /// Counts so many blocks as used, which no table of this directory is in.
    pub(crate) fn pass_over(&mut self, blocks: u64) -> Result<(), Violation> {
        self.tables.blocks.pass_over(blocks)
    }

    /// Trusted bytes, which depend on nothing but the size of the node cache.
    pub fn trusted_bytes(&self) -> u64 {
        (size_of::<Self>() + self.tables.lines.trusted_bytes()) as u64
    }

    /// The port, to read its counts.
    pub fn port_mut(&mut self) -> &mut P {
        self.tables.lines.port_mut()
    }

    /// Writes everything back and empties all caches, so that what is used next is fetched.
    pub fn flush_and_forget(&mut self) -> Result<(), Violation> {
        self.walks.clear();
        self.tables.lines.flush_and_forget()
    }

    /// Every call begins here.
    #[inline]
    pub(crate) fn begin(&mut self) -> Result<(), Violation> {
        self.tables.lines.check_not_poisoned()?;
        self.tables.at = self.tables.lines.port_mut().now();
        Ok(())
    }

    /// The root table of a space.
    pub(crate) fn root(&mut self, space: SpaceId) -> Result<TableBlock, Violation> {
        self.root_if_any(space)?.ok_or(Refusal::UnknownSpace(space.0).into())
    }

    pub(crate) fn root_if_any(&mut self, space: SpaceId) -> Result<Option<TableBlock>, Violation> {
        if let Some(root) = self.walks.root(space) {
            return Ok(Some(root));
        }
        let entry = self.tables.find::<SPACE_DEPTH>(self.space_root, space.0.into())?;
        if entry.is_none() {
            return Ok(None);
        }
        self.walks.learn_root(space, entry.child);
        Ok(Some(entry.child))
    }

    /// Frees a space's root table, which must be empty, and forgets the space.
    pub(crate) fn remove_space(&mut self, space: SpaceId) -> Result<(), Violation> {
        self.walks.clear();
        let path = self.tables.make_path::<SPACE_DEPTH>(self.space_root, space.0.into())?;
        // A space's entry does not count what is under it: it goes when it is told to, not when
        // it happens to be empty.
        self.tables.count_down(&path, 0)
    }

    /// The table that holds a page's record, if there is one.
    #[inline]
    fn record_table(&mut self, space: SpaceId, vpn: u64) -> Result<Option<TableBlock>, Violation> {
        let group = vpn >> RECORD_TABLE_BITS;
        if let Some(table) = self.walks.table(space, group) {
            return Ok(Some(table));
        }
        let root = self.root(space)?;
        let entry = self.tables.find::<PAGE_DEPTH>(root, group)?;
        if entry.is_none() {
            return Ok(None);
        }
        self.walks.learn_table(space, group, entry.child);
        Ok(Some(entry.child))
    }

    /// The slow half of `replace`: the number of records in the table changes.
    fn add_or_remove(
        &mut self,
        space: SpaceId,
        vpn: u64,
        record: Option<PageRecord>,
    ) -> Result<(), Violation> {
        if record.is_some() {
            self.tables.blocks.check_available(PAGE_DEPTH as u64)?;
        }
        let root = self.root(space)?;
        let path = self.tables.make_path::<PAGE_DEPTH>(root, vpn >> RECORD_TABLE_BITS)?;
        let mut table = self.tables.entry(path[PAGE_DEPTH - 1])?.child;
        if table == 0 {
            table = self.tables.add_child(&path)?;
        }
        self.set_record(RecordSlot::new(table, vpn), record)?;
        if record.is_some() {
            self.tables.count_up(&path)
        } else {
            self.forget_walks();
            self.tables.count_down(&path, 1)
        }
    }

    fn record(&mut self, slot: RecordSlot) -> Result<Option<PageRecord>, Violation> {
        let line = self.tables.line(slot.line)?;
        match decode_at(line, slot.offset) {
            Ok(record) => Ok(record),
            Err(_) => Err(self.tables.malformed(slot.line)),
        }
    }

    fn set_record(
        &mut self,
        slot: RecordSlot,
        record: Option<PageRecord>,
    ) -> Result<(), Violation> {
        let bytes = PageRecord::encode(record);
        self.tables.amend(slot.line, |line| {
            line[slot.offset..slot.offset + PageRecord::BYTES].copy_from_slice(&bytes);
        })
    }

    /// Tables may be freed or moved now: no remembered walk may lead to them.
    pub(crate) fn forget_walks(&mut self) {
        self.walks.clear();
    }
}

/// One record's position.
#[derive(Clone, Copy)]
struct RecordSlot {
    line: u64,
    offset: usize,
}

impl RecordSlot {
    #[inline]
    fn new(table: TableBlock, vpn: u64) -> Self {
        let record = (vpn % RECORDS) as usize;
        Self {
            line: first_line(table) + (record / RECORDS_PER_LINE) as u64,
            offset: record % RECORDS_PER_LINE * PageRecord::BYTES,
        }
    }
}

/// The record at a byte offset of a line.
#[inline]
pub(crate) fn decode_at(
    line: &Line,
    offset: usize,
) -> Result<Option<PageRecord>, crate::page_record::MalformedRecord> {
    let bytes = line.get(offset..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(Err(crate::page_record::MalformedRecord), PageRecord::decode)
}

pub(crate) fn check_vpn(vpn: u64) -> Result<(), Violation> {
    if vpn >> VPN_BITS == 0 { Ok(()) } else { Err(Refusal::VpnOutOfRange(vpn).into()) }
}

/// Results of verified walks, remembered in trusted memory: a page-walk cache.
struct WalkCache {
    roots: [Option<(SpaceId, TableBlock)>; 16],
    tables: [Option<(SpaceId, u64, TableBlock)>; 64],
}

impl WalkCache {
    const fn new() -> Self {
        Self { roots: [None; 16], tables: [None; 64] }
    }

    fn clear(&mut self) {
        *self = Self::new();
    }

    fn root(&self, space: SpaceId) -> Option<TableBlock> {
        match self.roots[space.0 as usize % 16] {
            Some((known, root)) if known == space => Some(root),
            _ => None,
        }
    }

    fn learn_root(&mut self, space: SpaceId, root: TableBlock) {
        self.roots[space.0 as usize % 16] = Some((space, root));
    }

    #[inline]
    fn table(&self, space: SpaceId, group: u64) -> Option<TableBlock> {
        match self.tables[Self::position(space, group)] {
            Some((known, known_group, table)) if known == space && known_group == group => {
                Some(table)
            }
            _ => None,
        }
    }

    fn learn_table(&mut self, space: SpaceId, group: u64, table: TableBlock) {
        self.tables[Self::position(space, group)] = Some((space, group, table));
    }

    fn position(space: SpaceId, group: u64) -> usize {
        (group ^ u64::from(space.0).wrapping_mul(0x9e37_79b9)) as usize % 64
    }
}
