//! Mappings, page tables, frames.

use super::State;
use crate::truth::Truth;
use std::collections::BTreeMap;
use std::ops::Range;

/// Access rights of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    pub read: bool,
    pub write: bool,
    pub exec: bool,
}

impl Rights {
    /// Of `PROT_` bits.
    pub fn of(prot: u64) -> Rights {
        Rights { read: prot & 1 != 0, write: prot & 2 != 0, exec: prot & 4 != 0 }
    }
}

/// A private mapping; the map that holds it knows where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub end: u64,
    pub rights: Rights,
    pub uffd: Option<usize>,
    /// `MADV_DONTFORK`, `MADV_WIPEONFORK`.
    pub not_forked: bool,
    pub wiped_on_fork: bool,
    /// How many pages further down it was mapped, if it was moved: neighbours that differ in it
    /// stay two.
    pub moved: i64,
    /// Of a file of zeros: no userfaultfd takes it, and it does not count as plaintext.
    pub of_file: bool,
}

impl Mapping {
    /// New memory, up to page `end`.
    pub fn new(end: u64, rights: Rights) -> Mapping {
        let (not_forked, wiped_on_fork, of_file) = (false, false, false);
        Mapping { end, rights, uffd: None, not_forked, wiped_on_fork, moved: 0, of_file }
    }
}

/// What a page table says of a page that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pte {
    /// The kernel's page of zeros.
    Zero { protected: bool },
    /// A frame. `exclusive`: no other address space shares it, nor did since it was last written.
    Page { frame: usize, protected: bool, exclusive: bool },
    /// A thread that touches it gets SIGBUS.
    Poison,
    /// Nothing may be here (`MADV_GUARD_INSTALL`).
    Guard,
}

/// A page of memory.
pub struct Frame {
    pub data: Box<[u8; 4096]>,
    pub maps: u32,
    /// On its way to another place: a thread that touches it waits.
    pub migrating: bool,
    /// A copy of a file's page.
    pub of_file: bool,
    /// `UFFDIO_MOVE` has moved it: it is not pinned, and no program can find it to pin it.
    pub moved: bool,
}

/// An address space.
#[derive(Default)]
pub struct Mm {
    pub mappings: BTreeMap<u64, Mapping>,
    pub ptes: BTreeMap<u64, Pte>,
    /// Threads and agents.
    pub users: u32,
    pub readers: u32,
    pub writers: u32,
    /// Pages of the heap, up to the break.
    pub heap_pages: u64,
    pub truth: Truth,
}

impl Mm {
    pub fn find(&self, vpn: u64) -> Option<(u64, &Mapping)> {
        let (start, mapping) = self.mappings.range(..=vpn).next_back()?;
        (vpn < mapping.end).then_some((*start, mapping))
    }

    fn split(&mut self, vpn: u64) {
        if let Some((start, mapping)) = self.find(vpn)
            && start < vpn
        {
            let upper = mapping.clone();
            self.mappings.get_mut(&start).expect("just found").end = vpn;
            self.mappings.insert(vpn, upper);
        }
    }

    /// The parts of mappings in a range.
    pub fn parts(&self, range: &Range<u64>) -> Vec<(Range<u64>, Mapping)> {
        let begin = self.find(range.start).map_or(range.start, |(start, _)| start);
        self.mappings
            .range(begin..range.end)
            .map(|(start, m)| ((*start).max(range.start)..m.end.min(range.end), m.clone()))
            .collect()
    }

    /// Changes all mappings of a range, which are split at its ends.
    pub fn change(&mut self, range: &Range<u64>, mut how: impl FnMut(&mut Mapping)) {
        self.split(range.start);
        self.split(range.end);
        self.mappings.range_mut(range.clone()).for_each(|(_, mapping)| how(mapping));
        self.merge(range);
    }

    /// Neighbours in and around a range that do not differ become one.
    pub fn merge(&mut self, range: &Range<u64>) {
        let around = range.start.saturating_sub(1)..range.end + 1;
        for (part, mapping) in self.parts(&around) {
            let Some((start, before)) = self.mappings.range(..part.start).next_back() else {
                continue;
            };
            if before.end == part.start
                && (Mapping { end: mapping.end, ..before.clone() }) == mapping
            {
                let start = *start;
                self.mappings.remove(&part.start);
                self.mappings.get_mut(&start).expect("just found").end = mapping.end;
            }
        }
    }

    /// Whether all of a range is mapped.
    pub fn is_mapped(&self, range: &Range<u64>) -> bool {
        let mapped: u64 = self.parts(range).iter().map(|(part, _)| part.end - part.start).sum();
        mapped == range.end - range.start
    }

    /// Whether nothing is mapped in a range.
    pub fn is_free(&self, range: &Range<u64>) -> bool {
        self.parts(range).is_empty()
    }

    /// The lowest place from `from` on for so many pages.
    pub fn gap(&self, from: u64, pages: u64) -> u64 {
        let mut at = from;
        while let Some((_, last)) = self.parts(&(at..at + pages)).last() {
            at = last.end;
        }
        at
    }
}

impl State {
    pub fn new_frame(&mut self, data: Option<&[u8; 4096]>, of_file: bool) -> usize {
        let data = Box::new(data.copied().unwrap_or([0; 4096]));
        let frame = Frame { data, maps: 1, migrating: false, of_file, moved: false };
        self.resident += u64::from(!of_file);
        self.resident_peak = self.resident_peak.max(self.resident);
        match self.free.pop() {
            Some(at) => {
                self.frames[at] = frame;
                at
            }
            None => {
                self.frames.push(frame);
                self.frames.len() - 1
            }
        }
    }

    pub fn unmap_frame(&mut self, at: usize) {
        self.frames[at].maps -= 1;
        if self.frames[at].maps == 0 {
            self.frames[at].migrating = false;
            self.free.push(at);
            self.resident -= u64::from(!self.frames[at].of_file);
        }
    }

    /// Drops what a page table says of a page.
    pub fn zap(&mut self, mm: u32, vpn: u64) -> Option<Pte> {
        let pte = self.mm(mm).ptes.remove(&vpn)?;
        if let Pte::Page { frame, .. } = pte {
            self.unmap_frame(frame);
        }
        Some(pte)
    }

    pub fn zap_range(&mut self, mm: u32, range: &Range<u64>) {
        let there: Vec<u64> = self.mm(mm).ptes.range(range.clone()).map(|(vpn, _)| *vpn).collect();
        for vpn in there {
            let _ = self.zap(mm, vpn);
        }
    }

    /// Unmaps a range and all that is in it.
    pub fn unmap(&mut self, mm: u32, range: &Range<u64>) {
        self.zap_range(mm, range);
        let space = self.mm(mm);
        space.split(range.start);
        space.split(range.end);
        let gone: Vec<u64> = space.mappings.range(range.clone()).map(|(at, _)| *at).collect();
        for start in gone {
            space.mappings.remove(&start);
        }
        space.truth.clear(range);
    }
}
