//! What a range of pages must hold and allow, kept beside it page by page.

use super::files::PatternFile;
use crate::support::pattern::{page_base, word_of};
use crate::support::sys;
use crate::support::{PAGE, Rng, Trouble, Verdict, WORDS};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a child gets of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// A copy.
    Copy,
    /// Nothing: `MADV_DONTFORK`.
    Nothing,
    /// Zeros: `MADV_WIPEONFORK`.
    Zeros,
}

/// One page. What it holds is told by the base of its pattern, 0 for zeros.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rights, as `mmap` has them.
    pub prot: i32,
    /// What it holds.
    pub holds: u64,
    /// It may hold zeros instead, since it was given back by `MADV_FREE`.
    pub freed: bool,
    /// What it holds once it has been given back: the file's page, or zeros.
    pub below: u64,
    /// Is it private memory of no file?
    pub anonymous: bool,
    /// Does touching it raise a signal?
    pub guard: bool,
    /// What a child gets.
    pub inherit: Inherit,
}

impl Page {
    /// Newly mapped.
    pub fn new(prot: i32, file: Option<u64>) -> Self {
        let below = file.unwrap_or(0);
        Page {
            prot,
            holds: below,
            freed: false,
            below,
            anonymous: file.is_none(),
            guard: false,
            inherit: Inherit::Copy,
        }
    }

    /// Gives its contents back.
    pub fn drop_contents(&mut self) {
        (self.holds, self.freed) = (self.below, false);
    }

    fn allows(&self, prot: i32) -> bool {
        !self.guard && self.prot & prot == prot
    }
}

/// A range of addresses, and what must be at each page of it.
pub struct Mapped {
    base: *mut u8,
    /// Nothing where nothing is mapped.
    pub pages: Vec<Option<Page>>,
    seed: u64,
    written: u64,
    pipe: (i32, i32),
}

// SAFETY: an address and what is known of it; one thread at a time works on it.
unsafe impl Send for Mapped {}

/// How many ranges there are.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Far below where the kernel puts what may lie anywhere: else that would come into the gaps of a
/// range.
const FIRST: usize = 0x1000_0000_0000;
const APART: usize = 1 << 32;

impl Mapped {
    /// So many pages of address space, nothing in it.
    pub fn new(pages: usize, seed: u64) -> Result<Self, Trouble> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = (FIRST + number as usize * APART) as *mut u8;
        let flags = sys::ANON | libc::MAP_FIXED_NOREPLACE;
        let got = sys::map(base, pages * PAGE, libc::PROT_NONE, flags)?;
        sys::same("where a range was mapped", base, got)?;
        sys::unmap(base, pages * PAGE)?;
        let written = number << 40;
        Ok(Mapped { base, pages: vec![None; pages], seed, written, pipe: sys::pipe()? })
    }

    /// Address of a page.
    pub fn at(&self, page: usize) -> *mut u8 {
        self.base.wrapping_add(page * PAGE)
    }

    /// What page `page` of a pattern file holds.
    pub fn of_file(&self, page: usize) -> u64 {
        page_base(self.seed, page as u64, 1)
    }

    /// Writes a page if it may be written; reads and writes as its rights allow, by a store or by a
    /// system call.
    pub fn write(&mut self, page: usize, file: &PatternFile) -> Verdict {
        let Some(known) = self.pages[page] else { return Ok(()) };
        if !known.allows(sys::RW) {
            return Ok(());
        }
        self.written += 1;
        let new = if self.written.is_multiple_of(16) {
            let from = (self.written / 16) as usize % file.pages;
            self.read_file(page, from, file)?;
            self.of_file(from)
        } else {
            let new = page_base(self.seed ^ 0x3a99ed, self.written, 0);
            let at = self.at(page).cast::<u64>();
            for i in 0..WORDS {
                // SAFETY: the page is mapped, may be written, and is this thread's.
                unsafe { at.add(i).write_volatile(word_of(new, i)) };
            }
            new
        };
        self.pages[page] = Some(Page { holds: new, freed: false, ..known });
        Ok(())
    }

    /// The kernel writes the page.
    fn read_file(&self, page: usize, from: usize, file: &PatternFile) -> Verdict {
        use std::os::fd::AsRawFd;
        // SAFETY: the page is mapped, may be written, and is this thread's.
        let got = unsafe {
            let offset = (from * PAGE) as i64;
            libc::pread(file.file.as_raw_fd(), self.at(page).cast(), PAGE, offset)
        };
        sys::same("pread into a page", PAGE as i64, sys::check("pread", got as i64)?)
    }

    /// Checks some words of a page, or all; one that may not be read is tried by a system call.
    pub fn check(&self, page: usize, rng: &mut Rng, all: bool) -> Verdict {
        let Some(known) = self.pages[page].filter(|known| known.allows(libc::PROT_READ)) else {
            return self.unreadable(page);
        };
        let at = self.at(page).cast::<u64>();
        // SAFETY: the page is mapped and may be read.
        let zero = known.freed && unsafe { at.read_volatile() } == 0;
        let base = if zero { 0 } else { known.holds };
        let count = if all { WORDS } else { 6 };
        for step in 0..count {
            let i = if all { step } else { rng.below(WORDS) };
            let right = if base == 0 { 0 } else { word_of(base, i) };
            // SAFETY: as above.
            let got = unsafe { at.add(i).read_volatile() };
            if got != right {
                return Err(Trouble(format!(
                    "page {page} at {at:p}, word {i}: expected {right:#x}, got {got:#x}; {known:?}; pid {}",
                    std::process::id()
                )));
            }
        }
        Ok(())
    }

    /// The kernel cannot read the page for us either.
    fn unreadable(&self, page: usize) -> Verdict {
        // SAFETY: the kernel looks whether this can be read.
        let got = unsafe { libc::write(self.pipe.1, self.at(page).cast(), 8) };
        if got == -1 && sys::errno() == libc::EFAULT {
            return Ok(());
        }
        Err(Trouble(format!(
            "page {page} at {:p} can be read ({got}, {}), but it is {:?}",
            self.at(page),
            sys::errno_text(),
            self.pages[page]
        )))
    }

    /// Checks every word of every page.
    pub fn check_all(&self, rng: &mut Rng) -> Verdict {
        (0..self.pages.len()).try_for_each(|page| self.check(page, rng, true))
    }

    /// What a child of fork must see.
    pub fn become_child(&mut self) {
        self.written += 1 << 32;
        for place in &mut self.pages {
            match place.map(|page| page.inherit) {
                Some(Inherit::Nothing) => *place = None,
                Some(Inherit::Zeros) => {
                    if let Some(page) = place {
                        // Guards are among what is wiped.
                        (page.holds, page.freed, page.guard) = (0, false, false);
                    }
                }
                _ => {}
            }
        }
    }
}
