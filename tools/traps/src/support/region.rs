//! A range of pages that is filled with, and checked against, the seeded pattern.

use super::pattern::{explain, page_base, word_of};
use super::sys::{self, Trouble};
use super::{Options, PAGE, Verdict, WORDS};
use crate::awaited::present;

/// Pages from `base` on; page `first + i` of the pattern stands at `base + i * PAGE`.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First byte.
    pub base: *mut u8,
    /// Number of pages.
    pub pages: usize,
    /// The pattern's seed.
    pub seed: u64,
    /// The pattern's index of the first page.
    pub first: u64,
}

// SAFETY: a region is an address and a size; the trap decides which thread writes which page when.
unsafe impl Send for Region {}
// SAFETY: as above; every access is volatile.
unsafe impl Sync for Region {}

impl Region {
    /// Newly mapped private anonymous memory.
    pub fn map(pages: usize, seed: u64) -> Result<Self, Trouble> {
        Ok(Self::at(sys::map_pages(pages)?, pages, seed))
    }

    /// Memory that exists already.
    pub fn at(base: *mut u8, pages: usize, seed: u64) -> Self {
        Region { base, pages, seed, first: 0 }
    }

    /// Part of a region; its pages keep their values.
    pub fn part(&self, from: usize, pages: usize) -> Self {
        assert!(from + pages <= self.pages, "part of a region lies outside it");
        Region { base: self.page(from), pages, seed: self.seed, first: self.first + from as u64 }
    }

    /// The same pages seen at another address.
    pub fn moved_to(&self, base: *mut u8) -> Self {
        Region { base, ..*self }
    }

    /// Address of page `index`.
    pub fn page(&self, index: usize) -> *mut u8 {
        self.base.wrapping_add(index * PAGE)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.pages * PAGE
    }

    /// Writes page `index` in `generation`.
    pub fn fill_page(&self, index: usize, generation: u64) {
        let base = page_base(self.seed, self.first + index as u64, generation);
        let at = self.page(index).cast::<u64>();
        for i in 0..WORDS {
            // SAFETY: within the region, which is mapped and writable.
            unsafe { at.add(i).write_volatile(word_of(base, i)) };
        }
    }

    /// Checks every word of page `index` against `generation`.
    pub fn check_page(&self, index: usize, generation: u64) -> Verdict {
        let base = page_base(self.seed, self.first + index as u64, generation);
        let at = self.page(index).cast::<u64>();
        for i in 0..WORDS {
            // SAFETY: within the region, which is mapped and readable.
            let got = unsafe { at.add(i).read_volatile() };
            if got != word_of(base, i) {
                return Err(self.wrong(index, generation, i, got));
            }
        }
        Ok(())
    }

    fn wrong(&self, index: usize, generation: u64, i: usize, got: u64) -> Trouble {
        let page = self.first + index as u64;
        let address = self.page(index).wrapping_add(i * 8);
        let expected = word_of(page_base(self.seed, page, generation), i);
        let kind = explain(self.seed, page, generation, i, got);
        // SAFETY: within the region, which is mapped and readable.
        let again = unsafe { address.cast::<u64>().read_volatile() };
        Trouble(format!(
            "address {address:p} (page {index}, word {i}, generation {generation}): expected \
             {expected:#018x}, got {got:#018x} ({kind}); read again: {again:#018x}; pid {}",
            std::process::id()
        ))
    }

    /// Checks that page `index` reads as zeros.
    pub fn check_zero_page(&self, index: usize) -> Verdict {
        let at = self.page(index).cast::<u64>();
        for i in 0..WORDS {
            // SAFETY: within the region, which is mapped and readable.
            let got = unsafe { at.add(i).read_volatile() };
            if got != 0 {
                return Err(Trouble(format!(
                    "address {:p} (page {index}, word {i}): expected zero, got {got:#018x}",
                    at.wrapping_add(i)
                )));
            }
        }
        Ok(())
    }

    /// Writes every page.
    pub fn fill(&self, generation: u64) {
        (0..self.pages).for_each(|page| self.fill_page(page, generation));
    }

    /// Checks every page.
    pub fn check(&self, generation: u64) -> Verdict {
        (0..self.pages).try_for_each(|page| self.check_page(page, generation))
    }

    /// Checks that every page reads as zeros.
    pub fn check_zero(&self) -> Verdict {
        (0..self.pages).try_for_each(|page| self.check_zero_page(page))
    }

    /// Unmaps the region.
    pub fn unmap(self) -> Verdict {
        sys::unmap(self.base, self.bytes())
    }
}

/// Memory whose only purpose is to push everything else out of the Clear; it checks itself as well.
pub struct Ballast {
    region: Region,
    generation: u64,
}

impl Ballast {
    /// Two thirds of the working set.
    pub fn new(options: &Options) -> Result<Self, Trouble> {
        let pages = (options.pages() * 2 / 3).max(64);
        let region = Region::map(pages, options.seed ^ 0xba11_a570)?;
        region.fill(0);
        Ok(Ballast { region, generation: 0 })
    }

    /// Whether most of it is paged out.
    pub fn is_out(&self) -> Result<bool, Trouble> {
        Ok(present(self.region.base, self.region.pages)? < self.region.pages * 3 / 4)
    }

    /// Checks and rewrites all of it.
    pub fn squeeze(&mut self) -> Verdict {
        for page in 0..self.region.pages {
            self.region.check_page(page, self.generation)?;
            self.region.fill_page(page, self.generation + 1);
        }
        self.generation += 1;
        Ok(())
    }
}
