//! The pages that a program refers to, in order.

use std::collections::HashMap;

use casemate_replacement::Page;

use crate::machine::backing::PAGE_BYTES;
use crate::trace::{Extent, Instruction, Kind, Source, TraceError};

/// Numbers the pages that a program stores to, from 0 in the order of their first stores.
///
/// A page counts from its first store on, by the program or by the kernel for it. Before that it is
/// a page of zeros or of a file, which takes no room in the Clear.
#[derive(Debug, Default)]
pub struct PageNumbers {
    numbers: HashMap<u64, Page>,
    /// The page that was told last.
    last: Option<u64>,
    /// The page without a number that was loaded from last: most are at once loaded from again.
    last_without: Option<u64>,
}

impl PageNumbers {
    /// Tells `refer` the page of each load and store of an instruction, then of what the kernel
    /// stored for it. A page that is referred to again before any other is told once: no policy can
    /// tell the difference.
    pub fn take(&mut self, instruction: &Instruction, mut refer: impl FnMut(Page)) {
        for reference in &instruction.references {
            let size_bytes = u64::from(reference.size_bytes.max(1));
            let extent = Extent { address: reference.address, size_bytes };
            self.all(extent, reference.kind == Kind::Store, &mut refer);
        }
        for changed in instruction.changed.iter().filter(|all| **all != Extent::EVERYTHING) {
            self.all(*changed, true, &mut refer);
        }
    }

    /// How many pages have numbers.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.numbers.len() as u32
    }

    fn all(&mut self, extent: Extent, is_store: bool, refer: &mut impl FnMut(Page)) {
        let end = extent.address.saturating_add(extent.size_bytes.saturating_sub(1));
        for page in extent.address / PAGE_BYTES..=end / PAGE_BYTES {
            self.one(page, is_store, refer);
        }
    }

    fn one(&mut self, page: u64, is_store: bool, refer: &mut impl FnMut(Page)) {
        if self.last == Some(page) || (self.last_without == Some(page) && !is_store) {
            return;
        }
        let next = self.count();
        let number = match is_store {
            true => Some(*self.numbers.entry(page).or_insert(next)),
            false => self.numbers.get(&page).copied(),
        };
        let Some(number) = number else {
            self.last_without = Some(page);
            return;
        };
        self.last = Some(page);
        self.last_without = self.last_without.filter(|without| *without != page);
        refer(number);
    }
}

/// References to pages, as [`PageNumbers`] tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceString {
    references: Vec<Page>,
    pages: u32,
}

impl ReferenceString {
    /// Stores to these pages.
    pub fn of(pages: impl IntoIterator<Item = u64>) -> Self {
        let (mut numbers, mut references) = (PageNumbers::default(), Vec::new());
        for page in pages {
            numbers.one(page, true, &mut |page| references.push(page));
        }
        ReferenceString { references, pages: numbers.count() }
    }

    /// Those of a trace, or of its first `most` instructions.
    ///
    /// # Errors
    /// The trace is malformed, damaged or cannot be read.
    pub fn read(trace: &mut (impl Source + ?Sized), most: Option<u64>) -> Result<Self, TraceError> {
        let (mut numbers, mut references) = (PageNumbers::default(), Vec::new());
        let (mut instruction, mut taken) = (Instruction::default(), 0);
        while most.is_none_or(|most| taken < most) && trace.next(&mut instruction)? {
            taken += instruction.instructions();
            numbers.take(&instruction, |page| references.push(page));
        }
        Ok(ReferenceString { references, pages: numbers.count() })
    }

    /// The pages, in order.
    #[must_use]
    pub fn references(&self) -> &[Page] {
        &self.references
    }

    /// How many different ones there are: they are `0..pages`.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }
}
