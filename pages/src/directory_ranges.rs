//! What the page directory does to many pages at once: fork, remove, move, drop, visit.
//!
//! All of it descends the radix tables and skips what is absent, so a huge empty range costs
//! little. The depth of the recursion is the fixed depth of the tables.

use crate::block_allocator::{BLOCK_LINES, TableBlock, first_line};
use crate::directory_shape::DirectoryPort;
use crate::directory_shape::{LINE_BYTES, Line};
use crate::line_array::LineArray;
use crate::page_directory::{
    Directory, PAGE_DEPTH, RECORD_TABLE_BITS, RECORDS, RECORDS_PER_LINE, SpaceId, VPN_BITS,
    check_vpn, decode_at,
};
use crate::page_record::PageRecord;
use crate::radix_table::{ENTRIES, ENTRIES_PER_LINE, Entry, Slot, TABLE_BITS, Tables};
use casemate_core::violation::{Refusal, Violation};

const ZERO_LINE: Line = [0; LINE_BYTES];
const ALL_PAGES: u64 = 1 << VPN_BITS;

/// Virtual pages from `first` up to and without `end`.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u64,
    end: u64,
}

impl Range {
    const ALL: Range = Range { first: 0, end: ALL_PAGES };

    fn checked(first: u64, pages: u64) -> Result<Range, Violation> {
        let end = first.saturating_add(pages);
        check_vpn(first)?;
        if end > ALL_PAGES {
            return Err(Refusal::VpnOutOfRange(end).into());
        }
        Ok(Range { first, end })
    }

    fn overlaps(self, other: Range) -> bool {
        self.first < other.end && other.first < self.end
    }

    fn contains(self, vpn: u64) -> bool {
        self.first <= vpn && vpn < self.end
    }

    /// Of `slots` slots that cover `1 << bits` pages each from `base` on: those that meet the
    /// range.
    fn slots(self, base: u64, bits: u32, slots: usize) -> std::ops::Range<usize> {
        let first = self.first.saturating_sub(base) >> bits;
        let end = self.end.saturating_sub(base).div_ceil(1 << bits);
        (first.min(slots as u64) as usize)..(end.min(slots as u64) as usize)
    }
}

/// Pages, as a power of two, that an entry of a table at `depth` covers.
fn entry_bits(depth: usize) -> u32 {
    RECORD_TABLE_BITS + TABLE_BITS * (PAGE_DEPTH - 1 - depth) as u32
}

impl<P: DirectoryPort, A: LineArray<P>> Directory<P, A> {
    /// Makes `child` a copy of `parent`. `visit` sees every copied record.
    ///
    /// The child must not exist. Ciphertexts are shared, not copied: a seed contains no address
    /// and no process (AISE, section 4.5).
    pub fn fork(
        &mut self,
        parent: SpaceId,
        child: SpaceId,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<(), Violation> {
        self.begin()?;
        let from = self.root(parent)?;
        if self.root_if_any(child)?.is_some() {
            return Err(Refusal::SpaceExists(child.0).into());
        }
        // Enough for a copy of everything there is, hence of one space.
        self.tables.blocks.check_available(self.tables.blocks.in_use())?;
        self.create_space(child)?;
        let to = self.root(child)?;
        let epochs = &mut self.epochs;
        self.tables.copy_table(from, to, 0, &mut |record| {
            epochs.add(&record);
            visit(record);
        })
    }

    /// Removes a range of pages. `visit` sees every removed record.
    pub fn remove_range(
        &mut self,
        space: SpaceId,
        first_vpn: u64,
        pages: u64,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<(), Violation> {
        self.begin()?;
        let range = Range::checked(first_vpn, pages)?;
        let root = self.root(space)?;
        self.forget_walks();
        self.clear(root, range, visit)
    }

    /// Moves a range of pages (mremap). The ranges must not overlap; the destination must be empty.
    pub fn move_range(
        &mut self,
        space: SpaceId,
        from_vpn: u64,
        to_vpn: u64,
        pages: u64,
    ) -> Result<(), Violation> {
        self.begin()?;
        let from = Range::checked(from_vpn, pages)?;
        let to = Range::checked(to_vpn, pages)?;
        if from.overlaps(to) {
            return Err(Refusal::RangesOverlap.into());
        }
        let root = self.root(space)?;
        if let Some((vpn, _)) = self.tables.first_record(root, to)? {
            return Err(Refusal::DestinationOccupied(vpn).into());
        }
        // A moved record table meets at most two others, each with a path of its own.
        let tables = (pages / RECORDS + 2).min(2 * self.tables.blocks.in_use());
        self.tables.blocks.check_available(PAGE_DEPTH as u64 * tables)?;
        self.forget_walks();
        let mut rest = from;
        while let Some((vpn, entry)) = self.tables.first_record(root, rest)? {
            let target = to.first + (vpn - from.first);
            let whole = Range { first: vpn & !(RECORDS - 1), end: (vpn | (RECORDS - 1)) + 1 };
            let aligned = vpn % RECORDS == target % RECORDS;
            if aligned && whole.first >= from.first && whole.end <= from.end {
                self.tables.move_table(root, entry, vpn, target)?;
                self.forget_walks();
                rest.first = whole.end;
            } else {
                let record = self.replace(space, vpn, None)?;
                self.replace(space, target, record)?;
                rest.first = vpn + 1;
            }
        }
        Ok(())
    }

    /// Removes a space and all its pages. `visit` sees every removed record.
    pub fn drop_space(
        &mut self,
        space: SpaceId,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<(), Violation> {
        self.begin()?;
        let root = self.root(space)?;
        self.forget_walks();
        self.clear(root, Range::ALL, visit)?;
        self.remove_space(space)
    }

    fn clear(
        &mut self,
        root: TableBlock,
        range: Range,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<(), Violation> {
        let epochs = &mut self.epochs;
        self.tables.clear_range(root, 0, 0, range, &mut |record| {
            epochs.remove(&record);
            visit(record);
        })?;
        Ok(())
    }

    /// Visits a range of pages in order.
    pub fn for_each(
        &mut self,
        space: SpaceId,
        first_vpn: u64,
        pages: u64,
        visit: &mut dyn FnMut(u64, PageRecord),
    ) -> Result<(), Violation> {
        self.begin()?;
        let range = Range::checked(first_vpn, pages)?;
        let root = self.root(space)?;
        self.tables.visit_range(root, 0, 0, range, visit)
    }

    /// Adds the records of the first `most` pages from `first_vpn` on that have one, in order.
    pub fn records_from(
        &mut self,
        space: SpaceId,
        first_vpn: u64,
        most: usize,
        records: &mut Vec<(u64, PageRecord)>,
    ) -> Result<(), Violation> {
        self.begin()?;
        let mut rest = Range::checked(first_vpn, ALL_PAGES - first_vpn.min(ALL_PAGES))?;
        let root = self.root(space)?;
        let before = records.len();
        while records.len() - before < most
            && let Some((vpn, _)) = self.tables.first_record(root, rest)?
        {
            let end = (vpn | (RECORDS - 1)) + 1;
            let table = Range { first: vpn, end };
            let visit = &mut |vpn, record| records.push((vpn, record));
            self.tables.visit_range(root, 0, 0, table, visit)?;
            rest.first = end;
        }
        records.truncate(before + most);
        Ok(())
    }
}

impl<P: DirectoryPort, A: LineArray<P>> Tables<P, A> {
    /// Copies a pointer table at `depth`, and all beneath, into an empty one.
    fn copy_table(
        &mut self,
        from: TableBlock,
        to: TableBlock,
        depth: usize,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<(), Violation> {
        for line in 0..BLOCK_LINES {
            let entries = *self.line(first_line(from) + line)?;
            for (at, entry) in Entry::all_in(&entries).enumerate() {
                if entry.is_none() {
                    continue;
                }
                let child = self.allocate()?;
                let slot = Slot { table: to, entry: line as usize * ENTRIES_PER_LINE + at };
                self.set_entry(slot, Entry { child, ..entry })?;
                if depth + 1 < PAGE_DEPTH {
                    self.copy_table(entry.child, child, depth + 1, visit)?;
                } else {
                    self.copy_records(entry.child, child, visit)?;
                }
            }
        }
        Ok(())
    }

    fn copy_records(
        &mut self,
        from: TableBlock,
        to: TableBlock,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<(), Violation> {
        for line in 0..BLOCK_LINES {
            let (index, records) = self.record_line(from, line)?;
            if records == ZERO_LINE {
                continue;
            }
            for (_, record) in self.records_in(index, &records)?.into_iter().flatten() {
                visit(record);
            }
            self.amend(first_line(to) + line, |copy| *copy = records)?;
        }
        Ok(())
    }

    /// Clears what the range covers of a pointer table at `depth` whose pages start at `base`.
    /// Returns how many of its entries went.
    fn clear_range(
        &mut self,
        table: TableBlock,
        depth: usize,
        base: u64,
        range: Range,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<u32, Violation> {
        let bits = entry_bits(depth);
        let mut gone = 0;
        let mut slots = range.slots(base, bits, ENTRIES);
        while let Some((slot, entry)) = self.next_child(table, &mut slots)? {
            let child_base = base + ((slot.entry as u64) << bits);
            let fewer = if depth + 1 < PAGE_DEPTH {
                self.clear_range(entry.child, depth + 1, child_base, range, visit)?
            } else {
                self.clear_records(entry.child, child_base, range, visit)?
            };
            if fewer > 0 {
                self.count_down(&[slot], fewer)?;
                gone += u32::from(fewer == entry.count);
            }
        }
        Ok(gone)
    }

    fn clear_records(
        &mut self,
        table: TableBlock,
        base: u64,
        range: Range,
        visit: &mut dyn FnMut(PageRecord),
    ) -> Result<u32, Violation> {
        let mut gone = 0;
        for line in range.slots(base, 2, BLOCK_LINES as usize) {
            let (index, mut records) = self.record_line(table, line as u64)?;
            let line_base = base + (line * RECORDS_PER_LINE) as u64;
            let before = gone;
            for (at, record) in self.records_in(index, &records)?.into_iter().flatten() {
                if range.contains(line_base + at as u64) {
                    visit(record);
                    records[at * PageRecord::BYTES..][..PageRecord::BYTES].fill(0);
                    gone += 1;
                }
            }
            if gone > before {
                self.amend(index, |stored| *stored = records)?;
            }
        }
        Ok(gone)
    }

    fn visit_range(
        &mut self,
        table: TableBlock,
        depth: usize,
        base: u64,
        range: Range,
        visit: &mut dyn FnMut(u64, PageRecord),
    ) -> Result<(), Violation> {
        let bits = entry_bits(depth);
        let mut slots = range.slots(base, bits, ENTRIES);
        while let Some((slot, entry)) = self.next_child(table, &mut slots)? {
            let child_base = base + ((slot.entry as u64) << bits);
            if depth + 1 < PAGE_DEPTH {
                self.visit_range(entry.child, depth + 1, child_base, range, visit)?;
                continue;
            }
            for line in range.slots(child_base, 2, BLOCK_LINES as usize) {
                let (index, records) = self.record_line(entry.child, line as u64)?;
                let line_base = child_base + (line * RECORDS_PER_LINE) as u64;
                for (at, record) in self.records_in(index, &records)?.into_iter().flatten() {
                    let vpn = line_base + at as u64;
                    if range.contains(vpn) {
                        visit(vpn, record);
                    }
                }
            }
        }
        Ok(())
    }

    /// The first page in the range that has a record, and the entry of its record table.
    fn first_record(
        &mut self,
        root: TableBlock,
        range: Range,
    ) -> Result<Option<(u64, Entry)>, Violation> {
        self.first_record_in(root, 0, 0, range)
    }

    fn first_record_in(
        &mut self,
        table: TableBlock,
        depth: usize,
        base: u64,
        range: Range,
    ) -> Result<Option<(u64, Entry)>, Violation> {
        let bits = entry_bits(depth);
        let mut slots = range.slots(base, bits, ENTRIES);
        while let Some((slot, entry)) = self.next_child(table, &mut slots)? {
            let child_base = base + ((slot.entry as u64) << bits);
            if depth + 1 < PAGE_DEPTH {
                let found = self.first_record_in(entry.child, depth + 1, child_base, range)?;
                if found.is_some() {
                    return Ok(found);
                }
                continue;
            }
            for line in range.slots(child_base, 2, BLOCK_LINES as usize) {
                let (index, records) = self.record_line(entry.child, line as u64)?;
                let line_base = child_base + (line * RECORDS_PER_LINE) as u64;
                let present = self.records_in(index, &records)?.into_iter().flatten();
                let mut vpns = present.map(|(at, _)| line_base + at as u64);
                if let Some(vpn) = vpns.find(|vpn| range.contains(*vpn)) {
                    return Ok(Some((vpn, entry)));
                }
            }
        }
        Ok(None)
    }

    /// Moves a whole record table from one page group to another, which must be absent.
    fn move_table(
        &mut self,
        root: TableBlock,
        entry: Entry,
        from_vpn: u64,
        to_vpn: u64,
    ) -> Result<(), Violation> {
        let to = self.make_path::<PAGE_DEPTH>(root, to_vpn >> RECORD_TABLE_BITS)?;
        self.set_entry(to[PAGE_DEPTH - 1], entry)?;
        self.count_up(&to[..PAGE_DEPTH - 1])?;
        let from = self.make_path::<PAGE_DEPTH>(root, from_vpn >> RECORD_TABLE_BITS)?;
        self.set_entry(from[PAGE_DEPTH - 1], Entry::NONE)?;
        self.count_down(&from[..PAGE_DEPTH - 1], 1)
    }

    /// The next entry of a table with a child, among `slots`, which moves past it.
    fn next_child(
        &mut self,
        table: TableBlock,
        slots: &mut std::ops::Range<usize>,
    ) -> Result<Option<(Slot, Entry)>, Violation> {
        while slots.start < slots.end {
            let line = (slots.start / ENTRIES_PER_LINE) as u64;
            let line_end = ((line as usize + 1) * ENTRIES_PER_LINE).min(slots.end);
            let skip = slots.start % ENTRIES_PER_LINE;
            let entries = Entry::all_in(self.line(first_line(table) + line)?);
            let mut candidates = (slots.start..line_end).zip(entries.skip(skip));
            if let Some((at, entry)) = candidates.find(|(_, entry)| !entry.is_none()) {
                slots.start = at + 1;
                return Ok(Some((Slot { table, entry: at }, entry)));
            }
            slots.start = line_end;
        }
        Ok(None)
    }

    /// A copy of one line of a record table, and its index.
    fn record_line(&mut self, table: TableBlock, line: u64) -> Result<(u64, Line), Violation> {
        let index = first_line(table) + line;
        Ok((index, *self.line(index)?))
    }

    /// The records of a line, with their position in it.
    #[allow(clippy::type_complexity)]
    fn records_in(
        &mut self,
        index: u64,
        line: &Line,
    ) -> Result<[Option<(usize, PageRecord)>; RECORDS_PER_LINE], Violation> {
        let mut records = [None; RECORDS_PER_LINE];
        for (at, record) in records.iter_mut().enumerate() {
            match decode_at(line, at * PageRecord::BYTES) {
                Ok(found) => *record = found.map(|found| (at, found)),
                Err(_) => return Err(self.malformed(index)),
            }
        }
        Ok(records)
    }
}
