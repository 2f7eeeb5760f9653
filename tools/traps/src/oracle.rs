//! The oracle: several threads read, write, sweep, drop, move and fork over a seeded pattern, and
//! compare every word that they read with a compact model of what they wrote.
//!
//! A page's model is a generation and a cursor: words before the cursor stand in the next
//! generation, the rest in this one. Generation 0 is a page of zeros.

use crate::support::pattern::{explain, mix, page_base, word_of};
use crate::support::sys::{self, ANON, RW};
use crate::support::{Options, PAGE, Rng, Trouble, Verdict, WORDS, in_child};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Pages in a chunk, the unit that moves about.
const CHUNK: usize = 64;

/// A thread forks once in so many accesses, if the command line says nothing else.
pub const FORK_EVERY: u64 = 400_000;

#[derive(Clone, Copy, Default)]
struct Page {
    generation: u32,
    cursor: u32,
}

/// One thread's memory and its model.
struct Worker {
    me: u64,
    seed: u64,
    rng: Rng,
    chunks: Vec<*mut u8>,
    pages: Vec<Page>,
    accesses: u64,
    forks: u64,
    fork_at: u64,
    fork_every: u64,
    without: String,
    /// It goes on while this is there.
    sign: Option<PathBuf>,
}

impl Worker {
    fn new(options: &Options, me: u64, pages: usize) -> Result<Self, Trouble> {
        let chunks = (pages / CHUNK).max(2);
        Ok(Worker {
            me,
            seed: options.seed.wrapping_add(mix(me)),
            rng: Rng::new(options.seed.wrapping_mul(31).wrapping_add(me)),
            chunks: (0..chunks).map(|_| sys::map_pages(CHUNK)).collect::<Result<_, _>>()?,
            pages: vec![Page::default(); chunks * CHUNK],
            accesses: 0,
            forks: 0,
            fork_at: options.fork_every / 4 * (me + 1),
            fork_every: options.fork_every,
            without: options.without.clone(),
            sign: options.file.clone(),
        })
    }

    fn address(&self, page: usize) -> *mut u64 {
        self.chunks[page / CHUNK].wrapping_add(page % CHUNK * PAGE).cast()
    }

    fn expected(&self, page: usize, word: usize) -> u64 {
        let model = self.pages[page];
        let generation = model.generation + u32::from((word as u32) < model.cursor);
        match generation {
            0 => 0,
            _ => word_of(page_base(self.seed, page as u64, u64::from(generation)), word),
        }
    }

    fn read(&mut self, page: usize, word: usize) -> Verdict {
        self.accesses += 1;
        // SAFETY: within a chunk of this worker.
        let got = unsafe { self.address(page).add(word).read_volatile() };
        if got == self.expected(page, word) { Ok(()) } else { Err(self.wrong(page, word, got)) }
    }

    fn wrong(&self, page: usize, word: usize, got: u64) -> Trouble {
        let Page { generation, cursor } = self.pages[page];
        let next = u64::from(generation) + u64::from((word as u32) < cursor);
        // An older state of the page has a shorter prefix of the generation that is being written.
        let newest = page_base(self.seed, page as u64, u64::from(generation) + 1);
        let at = self.address(page);
        let prefix = (0..WORDS)
            .take_while(|&w| {
                // SAFETY: within a chunk of this worker.
                let now = unsafe { at.add(w).read_volatile() };
                now == word_of(newest, w)
            })
            .count();
        Trouble(format!(
            "mismatch at {:p} (thread {}, page {page}, word {word}, generation {generation}, cursor \
             {cursor}): expected {:#018x}, got {got:#018x} ({}; {prefix} words are of the newest \
             generation); after {} accesses; pid {}",
            self.address(page).wrapping_add(word),
            self.me,
            self.expected(page, word),
            explain(self.seed, page as u64, next, word, got),
            self.accesses,
            std::process::id()
        ))
    }

    /// Writes the word at the page's cursor.
    fn write(&mut self, page: usize) {
        self.accesses += 1;
        let model = &mut self.pages[page];
        let word = model.cursor as usize;
        let base = page_base(self.seed, page as u64, u64::from(model.generation) + 1);
        model.cursor += 1;
        if model.cursor as usize == WORDS {
            *model = Page { generation: model.generation + 1, cursor: 0 };
        }
        // SAFETY: within a chunk of this worker.
        unsafe { self.address(page).add(word).write_volatile(word_of(base, word)) };
    }

    /// Reads every word of a page.
    fn sweep(&mut self, page: usize) -> Verdict {
        self.sweep_every(page, 0, 1)
    }

    /// Reads every `step`th word of a page, with one base for each of its two generations.
    fn sweep_every(&mut self, page: usize, first: usize, step: usize) -> Verdict {
        let model = self.pages[page];
        let at = self.address(page);
        for (from, to, generation) in [
            (0, model.cursor as usize, model.generation + 1),
            (model.cursor as usize, WORDS, model.generation),
        ] {
            let base = page_base(self.seed, page as u64, u64::from(generation));
            for word in (first..WORDS).step_by(step).filter(|word| (from..to).contains(word)) {
                // SAFETY: within a chunk of this worker.
                let got = unsafe { at.add(word).read_volatile() };
                let right = if generation == 0 { 0 } else { word_of(base, word) };
                if got != right {
                    return Err(self.wrong(page, word, got));
                }
            }
        }
        self.accesses += (WORDS / step) as u64;
        Ok(())
    }

    /// Was this kind of step not excluded on the command line?
    fn may(&self, what: &str) -> bool {
        !self.without.split(',').any(|word| word == what)
    }

    /// Eight random reads; after every other one a few words are written, at times the whole page.
    fn touch(&mut self, page: usize) -> Verdict {
        for _ in 0..8 {
            let word = self.rng.below(WORDS);
            self.read(page, word)?;
        }
        match self.rng.below(16) {
            0 => (self.pages[page].cursor as usize..WORDS).for_each(|_| self.write(page)),
            1..8 => (0..1 + self.rng.below(32)).for_each(|_| self.write(page)),
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self) -> Verdict {
        let pages = self.pages.len();
        match self.rng.below(1000) {
            0..600 => {
                let page = self.rng.below(pages);
                self.touch(page)
            }
            600..970 => {
                let page = self.rng.below(pages / 16);
                self.touch(page)
            }
            970..990 => {
                let first = self.rng.below(pages - CHUNK);
                let phase = self.rng.below(8);
                (first..first + CHUNK).try_for_each(|page| self.sweep_every(page, phase, 8))
            }
            990..995 if self.may("drop") => self.drop_pages(),
            995..1000 if self.may("move") => self.move_chunk(),
            _ => Ok(()),
        }
    }

    fn drop_pages(&mut self) -> Verdict {
        let first = self.rng.below(self.pages.len());
        let room = CHUNK - first % CHUNK;
        let count = 1 + self.rng.below(room.min(8));
        sys::advise(self.address(first).cast(), count * PAGE, libc::MADV_DONTNEED)?;
        self.pages[first..first + count].fill(Page::default());
        (first..first + count).try_for_each(|page| self.read(page, page % WORDS))
    }

    fn move_chunk(&mut self) -> Verdict {
        let chunk = self.rng.below(self.chunks.len());
        let bytes = CHUNK * PAGE;
        let place = sys::map(std::ptr::null_mut(), bytes, RW, ANON)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges belong to this worker.
        let at = unsafe { libc::mremap(self.chunks[chunk].cast(), bytes, bytes, flags, place) };
        if at == libc::MAP_FAILED {
            return Err(Trouble(format!("mremap: {}", sys::errno_text())));
        }
        self.chunks[chunk] = at.cast();
        let page = chunk * CHUNK + self.rng.below(CHUNK);
        self.sweep(page)
    }

    /// A child checks a part of this worker's pages, works on them for a while, and checks them
    /// again; this side goes on writing at once.
    fn fork(&mut self) -> Verdict {
        self.forks += 1;
        self.fork_at = self.accesses + self.fork_every;
        let child = in_child(|| {
            let end = self.accesses + (self.fork_every / 4).min(20_000);
            self.fork_at = u64::MAX;
            self.rng = Rng::new(self.seed ^ self.forks);
            let first = self.rng.below(self.pages.len() - CHUNK);
            (first..first + CHUNK).try_for_each(|page| self.sweep(page))?;
            while self.accesses < end + (CHUNK * WORDS) as u64 {
                self.step()?;
            }
            (first..first + CHUNK).try_for_each(|page| self.sweep(page))
        })?;
        for _ in 0..200 {
            self.step()?;
        }
        child.wait()
    }

    fn check_all(&mut self) -> Verdict {
        (0..self.pages.len()).try_for_each(|page| self.sweep(page))
    }

    fn run(&mut self, share: u64, canary: bool, stop: &AtomicBool) -> Verdict {
        let is_to_go_on = |sign: &Option<PathBuf>| sign.as_ref().is_some_and(|sign| sign.exists());
        while (self.accesses < share || is_to_go_on(&self.sign)) && !stop.load(Ordering::Relaxed) {
            self.step()?;
            if self.accesses >= self.fork_at && self.may("fork") {
                self.fork()?;
            }
        }
        if canary && self.me == 0 {
            let page = self.rng.below(self.pages.len());
            let byte = self.address(page).cast::<u8>().wrapping_add(self.rng.below(PAGE));
            // SAFETY: within a chunk of this worker; behind the model's back, which is the point.
            unsafe { byte.write_volatile(byte.read_volatile() ^ 0x10) };
        }
        self.check_all()
    }
}

/// Runs the threads and prints what was done.
pub fn oracle(options: &Options) -> Verdict {
    let start = Instant::now();
    let share = options.accesses / options.threads as u64;
    let pages = options.pages() / options.threads;
    let (stop, accesses, forks) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (stop, accesses, forks) = (&stop, &accesses, &forks);
    println!("oracle: seed {} threads {}", options.seed, options.threads);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads as u64)
            .map(|me| {
                scope.spawn(move || -> Verdict {
                    let mut worker = Worker::new(options, me, pages)?;
                    let verdict = worker.run(share, options.canary, stop);
                    accesses.fetch_add(worker.accesses, Ordering::Relaxed);
                    forks.fetch_add(worker.forks, Ordering::Relaxed);
                    if verdict.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    verdict
                })
            })
            .collect();
        let mut verdict = Ok(());
        for thread in threads {
            let one = thread.join().map_err(|_| Trouble::from("a thread panicked"));
            verdict = verdict.and(one.and_then(|v| v));
        }
        verdict
    })?;
    let (accesses, forks) = (accesses.load(Ordering::Relaxed), forks.load(Ordering::Relaxed));
    let rate = accesses as f64 / start.elapsed().as_secs_f64();
    eprintln!("oracle: {accesses} accesses, {forks} forks, {rate:.0} accesses/s");
    if accesses < options.accesses.min(share * options.threads as u64) {
        return Err("fewer accesses than asked for".into());
    }
    Ok(())
}
