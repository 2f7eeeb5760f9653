//! Radix tables of pointers: the inner structure of the page directory.
//!
//! A table is one block of 512 entries. An entry is a child's block number and how many entries
//! or records that child holds, so that a table is freed when its last one goes. Both the space
//! table (space → root table) and the page tables (page → record table) are made of these.

use crate::block_allocator::{BlockAllocator, TableBlock, first_line};
use crate::directory_shape::DirectoryPort;
use crate::directory_shape::{LINE_BYTES, Line};
use crate::line_array::LineArray;
use casemate_core::hash_tree::HashTree;
use casemate_core::port::Port;
use casemate_core::violation::Violation;

/// Address bits that one table decides.
pub(crate) const TABLE_BITS: u32 = 9;
/// Entries of a table.
pub(crate) const ENTRIES: usize = 1 << TABLE_BITS;
const ENTRY_BYTES: usize = 8;
/// Entries of a line.
pub(crate) const ENTRIES_PER_LINE: usize = LINE_BYTES / ENTRY_BYTES;

/// A pointer to a child table. A zero block number means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) child: TableBlock,
    pub(crate) count: u32,
}

impl Entry {
    pub(crate) const NONE: Entry = Entry { child: 0, count: 0 };

    pub(crate) fn is_none(self) -> bool {
        self.child == 0
    }

    /// The entries of a line, in order.
    pub(crate) fn all_in(line: &Line) -> impl Iterator<Item = Entry> + '_ {
        line.chunks_exact(ENTRY_BYTES).map(|bytes| {
            let word = |at: usize| {
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            Entry { child: word(0), count: word(4) }
        })
    }
}

/// One entry's position: which table, which entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) table: TableBlock,
    pub(crate) entry: usize,
}

impl Slot {
    fn line(self) -> u64 {
        first_line(self.table) + (self.entry / ENTRIES_PER_LINE) as u64
    }

    fn offset(self) -> usize {
        self.entry % ENTRIES_PER_LINE * ENTRY_BYTES
    }
}

/// The slots from a root table down to the entry for one key. The last slot's entry is the key's.
pub(crate) type Path<const DEPTH: usize> = [Slot; DEPTH];

/// The digit of `key` that a table at `depth` of `DEPTH` decides.
pub(crate) fn digit<const DEPTH: usize>(key: u64, depth: usize) -> usize {
    (key >> (TABLE_BITS as usize * (DEPTH - 1 - depth))) as usize % ENTRIES
}

/// Verified memory, the allocator of its blocks, and the moment up to which a walk has come.
///
/// Every access starts when the one before it is complete: a walk chases pointers.
pub(crate) struct Tables<P: Port, A = HashTree<P>> {
    pub(crate) lines: A,
    pub(crate) blocks: BlockAllocator,
    pub(crate) at: P::Moment,
}

impl<P: DirectoryPort, A: LineArray<P>> Tables<P, A> {
    #[inline]
    pub(crate) fn line(&mut self, index: u64) -> Result<&Line, Violation> {
        let (line, at) = self.lines.read(index, self.at)?;
        self.at = at;
        Ok(line)
    }

    #[inline]
    pub(crate) fn amend(
        &mut self,
        index: u64,
        change: impl FnOnce(&mut Line),
    ) -> Result<(), Violation> {
        self.at = self.lines.amend(index, self.at, change)?;
        Ok(())
    }

    #[inline]
    pub(crate) fn entry(&mut self, slot: Slot) -> Result<Entry, Violation> {
        let offset = slot.offset();
        let line = self.line(slot.line())?;
        let word =
            |at: usize| u32::from_le_bytes([line[at], line[at + 1], line[at + 2], line[at + 3]]);
        Ok(Entry { child: word(offset), count: word(offset + 4) })
    }

    pub(crate) fn set_entry(&mut self, slot: Slot, entry: Entry) -> Result<(), Violation> {
        let offset = slot.offset();
        self.amend(slot.line(), |line| {
            line[offset..offset + 4].copy_from_slice(&entry.child.to_le_bytes());
            line[offset + 4..offset + 8].copy_from_slice(&entry.count.to_le_bytes());
        })
    }

    pub(crate) fn allocate(&mut self) -> Result<TableBlock, Violation> {
        self.blocks.allocate(&mut self.lines, &mut self.at)
    }

    /// Frees a block of zeros.
    pub(crate) fn free(&mut self, block: TableBlock) -> Result<(), Violation> {
        self.blocks.free(&mut self.lines, block, &mut self.at)
    }

    /// The entry for `key`, or none if a table on the way is absent.
    #[inline]
    pub(crate) fn find<const DEPTH: usize>(
        &mut self,
        root: TableBlock,
        key: u64,
    ) -> Result<Entry, Violation> {
        let mut table = root;
        for depth in 0..DEPTH - 1 {
            let entry = self.entry(Slot { table, entry: digit::<DEPTH>(key, depth) })?;
            if entry.is_none() {
                return Ok(Entry::NONE);
            }
            table = entry.child;
        }
        self.entry(Slot { table, entry: digit::<DEPTH>(key, DEPTH - 1) })
    }

    /// The path to the entry for `key`; absent tables on the way are made.
    pub(crate) fn make_path<const DEPTH: usize>(
        &mut self,
        root: TableBlock,
        key: u64,
    ) -> Result<Path<DEPTH>, Violation> {
        let mut path = [Slot { table: root, entry: digit::<DEPTH>(key, 0) }; DEPTH];
        for depth in 1..DEPTH {
            let mut child = self.entry(path[depth - 1])?.child;
            if child == 0 {
                child = self.add_child(&path[..depth])?;
            }
            path[depth] = Slot { table: child, entry: digit::<DEPTH>(key, depth) };
        }
        Ok(path)
    }

    /// Makes an empty table under the entry at the end of `path`, which must be empty.
    pub(crate) fn add_child(&mut self, path: &[Slot]) -> Result<TableBlock, Violation> {
        let Some((slot, above)) = path.split_last() else { return Ok(0) };
        let child = self.allocate()?;
        self.set_entry(*slot, Entry { child, count: 0 })?;
        self.count_up(above)?;
        Ok(child)
    }

    /// The table under the entry at the end of `path` holds one thing more.
    pub(crate) fn count_up(&mut self, path: &[Slot]) -> Result<(), Violation> {
        let Some(slot) = path.last() else { return Ok(()) };
        let entry = self.entry(*slot)?;
        self.set_entry(*slot, Entry { count: entry.count + 1, ..entry })
    }

    /// The table under the entry at the end of `path` holds `fewer` things less; freed when empty,
    /// and so on up to the root table, which stays.
    pub(crate) fn count_down(&mut self, path: &[Slot], fewer: u32) -> Result<(), Violation> {
        let (mut path, mut fewer) = (path, fewer);
        while let Some((slot, above)) = path.split_last() {
            let entry = self.entry(*slot)?;
            let Some(count) = entry.count.checked_sub(fewer) else {
                return Err(self.malformed(slot.line()));
            };
            if count > 0 {
                return self.set_entry(*slot, Entry { count, ..entry });
            }
            self.set_entry(*slot, Entry::NONE)?;
            self.free(entry.child)?;
            (path, fewer) = (above, 1);
        }
        Ok(())
    }

    /// A verified line makes no sense: poisons everything.
    pub(crate) fn malformed(&mut self, index: u64) -> Violation {
        self.lines.poison(Violation::MalformedRecord { index })
    }
}
