//! The program that is measured: the same one under every system.
//!
//! It maps a region, goes through the phases, times them itself, and prints one JSON line each on
//! stdout. It checks every page that it reads, so that a wrong byte ends the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use casemate_keeper::PAGE_BYTES;
use clap::Args;

use super::WRONG;
use super::args::Content;
use super::cgroup;
use super::floor;
use super::timer::{Line, Phase, Timer, faults};
use crate::output;
use crate::sys::region::{PAGE_WORDS, PageWords, Region};
use casemate_core::random::Random;

/// Different page contents; few, so that they stay in the processor's cache.
const CONTENTS: usize = 16;
/// Random accesses, outside the timed phase, by which the share of misses is found.
const SAMPLE: usize = 4096;

/// `casemate bench-load`.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// Bytes of the region
    #[arg(long)]
    pub bytes: u64,
    /// Threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// What pages are filled with
    #[arg(long, value_enum, default_value_t = Content::Half)]
    pub content: Content,
    /// Be the floor: a handler on the same CPU copies a ready page for every fault
    #[arg(long)]
    pub floor: bool,
    /// Be the program that fits: this many accesses within the region
    #[arg(long)]
    pub fits: Option<u64>,
    /// Go through this phase only, once all is written
    #[arg(long, value_enum)]
    pub only: Option<Phase>,
    /// Accesses of that phase
    #[arg(long, default_value_t = 0)]
    pub accesses: usize,
    /// Join this cgroup first
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
    /// Report this device's mm_stat once all is written
    #[arg(long)]
    pub zram: Option<PathBuf>,
    /// Seed of the order of accesses
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Runs the load.
pub fn main(args: &LoadArgs) -> Result<u8> {
    if args.threads == 0 || args.bytes < (PAGE_BYTES * args.threads) as u64 {
        bail!("bench-load needs a thread and a page for each");
    }
    if let Some(group) = &args.cgroup {
        cgroup::join(group)?;
    }
    if args.floor {
        return floor::run(args);
    }
    let region =
        Region::anonymous(usize::try_from(args.bytes)?).context("cannot map the region")?;
    match args.fits {
        // A plain run may use huge pages if this machine gives them: that is what it would do.
        Some(accesses) => print(&fits(&region, accesses))?,
        None => {
            region.no_huge_pages();
            phases(args, &region)?;
        }
    }
    Ok(0)
}

/// Prints one line.
pub fn print(line: &Line) -> Result<()> {
    output::stdout(&format!("{}\n", serde_json::to_string(line)?))
}

fn phases(args: &LoadArgs, region: &Region) -> Result<()> {
    let contents = contents(args.content, args.seed);
    let pages = region.pages();
    let load = Timer { threads: args.threads, accesses: pages, seed: args.seed };

    let mut line = load.time(Phase::FirstWrite, |page, _| {
        write(region, page, &contents);
        Ok(0)
    })?;
    line.zram_bytes = args.zram.as_ref().and_then(|device| zram_bytes(device));
    print(&line)?;

    if let Some(phase) = args.only {
        let load = Timer { accesses: args.accesses, ..load };
        return print(&access(&load, region, phase)?);
    }
    for phase in [Phase::SequentialRead, Phase::ReverseRead, Phase::StridedRead] {
        print(&access(&load, region, phase)?)?;
    }
    for phase in [Phase::RandomRead, Phase::RandomModify] {
        let mut line = access(&load, region, phase)?;
        line.miss_rate = miss_rate(region, args.seed)?;
        print(&line)?;
    }

    // Not timed: nothing that was written may be lost, and nothing else may have changed.
    let mut counted = 0;
    for page in 0..pages {
        check(region, page)?;
        counted += region.word(page * PAGE_BYTES + COUNTER * 8).load(Ordering::Relaxed);
        let last = region.word(page * PAGE_BYTES + PAGE_BYTES - 8).load(Ordering::Relaxed);
        if last != contents[page % CONTENTS][PAGE_WORDS - 1] {
            bail!("{WRONG}: the end of page {page} is not what was written");
        }
    }
    if counted != pages as u64 {
        bail!("{WRONG}: {counted} of {pages} increments are there");
    }
    Ok(())
}

/// A phase over pages that have been written.
fn access(load: &Timer, region: &Region, phase: Phase) -> Result<Line> {
    let pages = region.pages();
    load.time(phase, |i, rng| match phase {
        Phase::RandomRead => check(region, rng.index(pages)),
        Phase::RandomModify => {
            let page = rng.index(pages);
            region.word(page * PAGE_BYTES + COUNTER * 8).fetch_add(1, Ordering::Relaxed);
            Ok(page as u64)
        }
        in_order => check(region, in_order.page(i, pages)),
    })
}

/// The word of a page that is incremented.
const COUNTER: usize = 8;

/// What the first word of a page must be: its number, scrambled so that none is zero.
fn stamp(page: usize) -> u64 {
    (page as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Writes a page whole: its number in the first word, one of the ready contents after that.
pub fn write(region: &Region, page: usize, contents: &[PageWords]) {
    let mut content = contents[page % CONTENTS];
    content[0] = stamp(page);
    content[COUNTER] = 0;
    region.write_page(page, &content);
}

/// Reads a page's first word.
///
/// # Errors
/// It is not the page's number as [`write()`] left it there.
pub fn check(region: &Region, page: usize) -> Result<u64> {
    let found = region.word(page * PAGE_BYTES).load(Ordering::Relaxed);
    if found != stamp(page) {
        bail!("{WRONG}: page {page} does not begin with what was written");
    }
    Ok(page as u64)
}

/// The ready page contents.
pub fn contents(content: Content, seed: u64) -> Vec<PageWords> {
    let mut rng = Random::new(seed);
    let page = |rng: &mut Random| {
        let mut words: PageWords = [0; PAGE_WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            // Half of every 64 bytes: words 0 to 3 of each 8.
            if content == Content::Random || i % 8 < 4 {
                *word = rng.next();
            }
        }
        words
    };
    (0..CONTENTS).map(|_| page(&mut rng)).collect()
}

/// Finds the share of misses by asking mincore(2) before each of some random accesses.
fn miss_rate(region: &Region, seed: u64) -> Result<f64> {
    let mut rng = Random::new(!seed);
    let mut missed = 0;
    for _ in 0..SAMPLE {
        let page = rng.index(region.pages());
        missed += u32::from(!region.resident(page).context("mincore failed")?);
        check(region, page)?;
    }
    Ok(f64::from(missed) / SAMPLE as f64)
}

/// A program whose memory fits: computes over the region at random, and remembers all of it.
fn fits(region: &Region, accesses: u64) -> Line {
    let words = region.bytes() / 8;
    let start = Instant::now();
    let before = faults();
    for i in 0..words {
        region.word(i * 8).store(i as u64, Ordering::Relaxed);
    }
    let mut rng = Random::new(1);
    let mut sum = 0_u64;
    for _ in 0..accesses {
        let word = region.word(rng.index(words) * 8);
        let value = word.load(Ordering::Relaxed).rotate_left(7) ^ sum;
        word.store(value, Ordering::Relaxed);
        sum = sum.wrapping_mul(0x100_0000_01b3).wrapping_add(value);
    }
    let after = faults();
    Line {
        phase: Phase::Fits,
        accesses,
        seconds: start.elapsed().as_secs_f64(),
        miss_rate: 0.0,
        faults: [after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1])],
        zram_bytes: None,
        checksum: sum,
    }
}

/// The first two numbers of mm_stat.
fn zram_bytes(device: &Path) -> Option<[u64; 2]> {
    let text = fs::read_to_string(device.join("mm_stat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}
