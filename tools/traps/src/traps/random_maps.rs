//! Calls that change an address space, drawn at random and compared with a model of what they must
//! do.

use super::files::PatternFile;
use super::mapped::{Inherit, Mapped, Page};
use crate::support::sys::{self, ANON, RW};
use crate::support::{Options, PAGE, Rng, Trouble, Verdict, in_child};
use std::os::fd::AsRawFd;

const GUARD_INSTALL: i32 = 102;
const GUARD_REMOVE: i32 = 103;
/// The longest range of one call.
const LONGEST: usize = 96;
/// Calls of one thread.
const CALLS: usize = 900;

/// One thread maps, unmaps, moves, protects, advises and forks at random.
pub fn random_maps(options: &Options) -> Verdict {
    let file = PatternFile::new(options, 256, 0)?;
    Walk::new(options, &file, options.pages() / 2, options.seed)?.run(CALLS)
}

/// Four threads do so, each with its own part of the address space.
pub fn random_maps_in_threads(options: &Options) -> Verdict {
    let file = PatternFile::new(options, 256, 0)?;
    let walk = |thread: u64| {
        let pages = options.pages() / 8;
        Walk::new(options, &file, pages, options.seed ^ (thread << 32))?.run(CALLS / 2)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|thread| scope.spawn(move || walk(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

struct Walk<'a> {
    mapped: Mapped,
    file: &'a PatternFile,
    rng: Rng,
    /// Guards are not for children (they have no agent yet), nor for kernels that do not know them.
    guards: bool,
    child: bool,
}

impl<'a> Walk<'a> {
    fn new(
        options: &Options,
        file: &'a PatternFile,
        pages: usize,
        seed: u64,
    ) -> Result<Self, Trouble> {
        let probe = sys::map_pages(1)?;
        let guards = sys::advice_known(probe, PAGE, GUARD_INSTALL)?;
        sys::unmap(probe, PAGE)?;
        let mapped = Mapped::new(pages, options.seed)?;
        Ok(Walk { mapped, file, rng: Rng::new(seed), guards, child: false })
    }

    fn run(&mut self, calls: usize) -> Verdict {
        self.map(0, self.mapped.pages.len(), false)?;
        (0..self.mapped.pages.len()).try_for_each(|page| self.mapped.write(page, self.file))?;
        for call in 0..calls {
            let what = self.rng.below(100);
            self.step(what)
                .map_err(|trouble| Trouble(format!("call {call} ({what}): {trouble}")))?;
        }
        self.mapped.check_all(&mut self.rng)
    }

    fn step(&mut self, what: usize) -> Verdict {
        let from = self.rng.below(self.mapped.pages.len() - LONGEST);
        let count = 1 + self.rng.below(LONGEST);
        match what {
            0..14 => self.map(from, count, what < 3)?,
            14..19 => self.unmap(from, count)?,
            19..31 => self.protect(from, count)?,
            31..48 => self.advise(from, count)?,
            48..52 => self.pass_on(from, count)?,
            52..64 => self.move_pages(from, count)?,
            64..68 => self.shrink(from, count)?,
            68..72 => self.lock(from, count)?,
            72..74 if !self.child => self.fork()?,
            _ => {}
        }
        for _ in 0..24 {
            let page = self.rng.below(self.mapped.pages.len());
            self.mapped.check(page, &mut self.rng, false)?;
            self.mapped.write(page, self.file)?;
        }
        for page in from..from + count {
            self.mapped.check(page, &mut self.rng, false)?;
            if self.rng.below(2) == 0 {
                self.mapped.write(page, self.file)?;
            }
        }
        Ok(())
    }

    fn rights(&mut self) -> i32 {
        match self.rng.below(8) {
            0 => libc::PROT_NONE,
            1 => libc::PROT_READ,
            _ => RW,
        }
    }

    fn map(&mut self, from: usize, count: usize, of_file: bool) -> Verdict {
        let (prot, at) = (self.rights(), self.mapped.at(from));
        let first = self.rng.below(self.file.pages - count.min(self.file.pages - 1));
        if of_file {
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            let (descriptor, offset) = (self.file.file.as_raw_fd(), (first * PAGE) as i64);
            // SAFETY: the range is this walk's own.
            let got =
                unsafe { libc::mmap(at.cast(), count * PAGE, prot, flags, descriptor, offset) };
            sys::same("mmap of the file", at.cast(), got)?;
        } else {
            let further = [0, 0, libc::MAP_POPULATE, libc::MAP_NORESERVE][self.rng.below(4)];
            let prot = if count == self.mapped.pages.len() { RW } else { prot };
            let got = sys::map(at, count * PAGE, prot, ANON | libc::MAP_FIXED | further)?;
            sys::same("mmap", at, got)?;
            for page in from..from + count {
                self.mapped.pages[page] = Some(Page::new(prot, None));
            }
            return Ok(());
        }
        for page in from..from + count {
            let holds = self.mapped.of_file(first + page - from);
            self.mapped.pages[page] = Some(Page::new(prot, Some(holds)));
        }
        Ok(())
    }

    fn unmap(&mut self, from: usize, count: usize) -> Verdict {
        sys::unmap(self.mapped.at(from), count * PAGE)?;
        self.mapped.pages[from..from + count].fill(None);
        Ok(())
    }

    fn whole(&self, from: usize, count: usize, fits: impl Fn(&Page) -> bool) -> bool {
        self.mapped.pages[from..from + count].iter().all(|page| page.as_ref().is_some_and(&fits))
    }

    fn change(&mut self, from: usize, count: usize, with: impl Fn(&mut Page)) {
        self.mapped.pages[from..from + count].iter_mut().flatten().for_each(with);
    }

    fn protect(&mut self, from: usize, count: usize) -> Verdict {
        if !self.whole(from, count, |_| true) {
            return Ok(());
        }
        let prot = self.rights();
        sys::protect(self.mapped.at(from), count * PAGE, prot)?;
        self.change(from, count, |page| page.prot = prot);
        Ok(())
    }

    /// The advice does all that is mapped, and says ENOMEM if that is not everything.
    fn advice(&mut self, from: usize, count: usize, advice: i32) -> Verdict {
        let whole = self.whole(from, count, |_| true);
        // SAFETY: the range is this walk's own.
        let got = unsafe { libc::madvise(self.mapped.at(from).cast(), count * PAGE, advice) };
        let error = if got == 0 { 0 } else { sys::errno() };
        let right = if whole { 0 } else { libc::ENOMEM };
        sys::same(&format!("madvise({advice}) of {count} pages from {from} on"), right, error)
    }

    fn advise(&mut self, from: usize, count: usize) -> Verdict {
        let anonymous = self.mapped.pages[from..from + count].iter().flatten().all(|p| p.anonymous);
        match self.rng.below(8) {
            0..3 => {
                self.advice(from, count, libc::MADV_DONTNEED)?;
                self.change(from, count, Page::drop_contents);
            }
            3..5 if anonymous => {
                self.advice(from, count, libc::MADV_FREE)?;
                self.change(from, count, |page| page.freed = true);
            }
            5 => self.advice(from, count, libc::MADV_COLD)?,
            6 if self.guards && !self.child && anonymous => {
                self.advice(from, count, GUARD_INSTALL)?;
                self.change(from, count, |page| {
                    page.drop_contents();
                    page.guard = true;
                });
            }
            7 if self.guards && !self.child && anonymous => {
                self.advice(from, count, GUARD_REMOVE)?;
                self.change(from, count, |page| page.guard = false);
            }
            _ => self.advice(from, count, libc::MADV_PAGEOUT)?,
        }
        Ok(())
    }

    fn pass_on(&mut self, from: usize, count: usize) -> Verdict {
        let (advice, inherit) = match self.rng.below(4) {
            0 => (libc::MADV_DONTFORK, Inherit::Nothing),
            1 => (libc::MADV_WIPEONFORK, Inherit::Zeros),
            _ => return self.pass_on_all(from, count),
        };
        if self.whole(from, count, |page| page.anonymous && page.inherit == Inherit::Copy) {
            self.advice(from, count, advice)?;
            self.change(from, count, |page| page.inherit = inherit);
        }
        Ok(())
    }

    fn pass_on_all(&mut self, from: usize, count: usize) -> Verdict {
        if self.whole(from, count, |page| page.anonymous) {
            self.advice(from, count, libc::MADV_DOFORK)?;
            self.advice(from, count, libc::MADV_KEEPONFORK)?;
            self.change(from, count, |page| page.inherit = Inherit::Copy);
        }
        Ok(())
    }

    /// Moves pages of equal rights to where nothing is mapped; the kernel may still refuse what it
    /// keeps apart.
    fn move_pages(&mut self, from: usize, count: usize) -> Verdict {
        let Some(first) = self.mapped.pages[from] else { return Ok(()) };
        let alike = |page: &Page| {
            page.prot == first.prot
                && page.anonymous == first.anonymous
                && page.inherit == first.inherit
        };
        let to = self.rng.below(self.mapped.pages.len() - LONGEST);
        let apart = to + count <= from || from + count <= to;
        if !apart || !self.whole(from, count, alike) {
            return Ok(());
        }
        self.unmap(to, count)?;
        let stay = self.rng.below(3) == 0 && first.anonymous;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let flags = flags | if stay { libc::MREMAP_DONTUNMAP } else { 0 };
        let (old, new, bytes) = (self.mapped.at(from), self.mapped.at(to), count * PAGE);
        // SAFETY: both ranges are this walk's own.
        let got = unsafe { libc::mremap(old.cast(), bytes, bytes, flags, new) };
        if got == libc::MAP_FAILED && sys::errno() == libc::EFAULT {
            return Ok(());
        }
        sys::same("mremap", new.cast(), got)?;
        for page in 0..count {
            self.mapped.pages[to + page] = self.mapped.pages[from + page];
            let left = stay.then(|| Page { inherit: first.inherit, ..Page::new(first.prot, None) });
            self.mapped.pages[from + page] = left;
        }
        Ok(())
    }

    fn shrink(&mut self, from: usize, count: usize) -> Verdict {
        if count < 2 || !self.whole(from, count, |_| true) {
            return Ok(());
        }
        let (at, keep) = (self.mapped.at(from), 1 + self.rng.below(count - 1));
        // SAFETY: the range is this walk's own.
        let got = unsafe { libc::mremap(at.cast(), count * PAGE, keep * PAGE, 0) };
        if got == libc::MAP_FAILED && sys::errno() == libc::EFAULT {
            return Ok(());
        }
        sys::same("mremap to less", at.cast(), got)?;
        self.mapped.pages[from + keep..from + count].fill(None);
        Ok(())
    }

    /// Locks and unlocks again; where it may not, or there is nothing to read, the refusal is
    /// right.
    fn lock(&mut self, from: usize, count: usize) -> Verdict {
        let at = self.mapped.at(from).cast();
        // SAFETY: the range is this walk's own.
        unsafe {
            if self.rng.below(2) == 0 {
                libc::mlock(at, count * PAGE);
            } else {
                libc::mlock2(at, count * PAGE, libc::MLOCK_ONFAULT);
            }
            libc::munlock(at, count * PAGE);
        }
        Ok(())
    }

    /// A child sees all of it, changes what it likes, and ends; the parent goes on beside it.
    fn fork(&mut self) -> Verdict {
        let child = in_child(|| {
            self.mapped.become_child();
            self.child = true;
            self.mapped.check_all(&mut self.rng)?;
            for _ in 0..24 {
                let what = self.rng.below(100);
                self.step(what).map_err(|trouble| Trouble(format!("child's {what}: {trouble}")))?;
            }
            self.mapped.check_all(&mut self.rng)
        })?;
        for _ in 0..8 {
            let what = self.rng.below(72);
            self.step(what)?;
        }
        child.wait()
    }
}
