//! The program that is measured, Cryptkeeper's memeater (section V.A): allocates, writes, reads and
//! frees pages, takes the time of each step, and prints it as one JSON line.
//!
//! All pages are one mapping, so that allocating and freeing are a call each. A page's first word
//! is its number, and a read that finds another ends the program with [`exit_codes::VIOLATION`].

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use casemate_core::random::Random;
use casemate_keeper::PAGE_BYTES;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::bench::args::{Content, Mode};
use crate::bench::cgroup;
use crate::bench::load::{check, contents, write};
use crate::exit_codes;
use crate::failure::{Failure, sentence};
use crate::output;
use crate::sys::region::Region;

/// `casemate bench-memeater`.
#[derive(Clone, Debug, Args)]
pub struct ProgramArgs {
    /// In which order pages are read
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// How many there are
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: u64,
    /// Seed of what is read, and of what is written
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Join this cgroup first
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
}

/// What the steps took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Mapping the memory.
    pub allocate_s: f64,
    /// Writing each page once, whole.
    pub write_s: f64,
    /// Reading a word of as many pages.
    pub read_s: f64,
    /// Unmapping the memory.
    pub free_s: f64,
    /// From before the first step until after the last.
    pub total_s: f64,
}

/// Runs it.
pub fn main(args: &ProgramArgs) -> Result<u8> {
    if let Some(group) = &args.cgroup {
        cgroup::join(group)?;
    }
    let times = eat(args.mode, args.pages, args.seed)?;
    output::stdout(&format!("{}\n", serde_json::to_string(&times)?))?;
    Ok(0)
}

fn eat(mode: Mode, pages: u64, seed: u64) -> Result<Times> {
    let contents = contents(Content::Half, seed);
    let bytes = usize::try_from(pages).ok().and_then(|pages| pages.checked_mul(PAGE_BYTES));
    let bytes = bytes.context("so many pages are more than can be addressed")?;
    let begun = Instant::now();
    let (allocate_s, region) = timed(|| Region::anonymous(bytes).inspect(Region::no_huge_pages));
    let region = region.context("cannot map the pages")?;
    let (write_s, ()) =
        timed(|| (0..region.pages()).for_each(|page| write(&region, page, &contents)));
    let (read_s, outcome) = timed(|| read(mode, &region, seed));
    outcome?;
    let (free_s, ()) = timed(|| drop(region));
    Ok(Times { allocate_s, write_s, read_s, free_s, total_s: begun.elapsed().as_secs_f64() })
}

fn timed<T>(step: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let result = step();
    (begun.elapsed().as_secs_f64(), result)
}

fn read(mode: Mode, region: &Region, seed: u64) -> Result<(), Failure> {
    for page in order(mode, region.pages(), seed) {
        check(region, page)
            .map_err(|error| Failure::new(exit_codes::VIOLATION, sentence(&error)))?;
    }
    Ok(())
}

/// Which pages are read, of those numbered from 0 in the order in which they were written.
fn order(mode: Mode, pages: usize, seed: u64) -> impl Iterator<Item = usize> {
    let mut random = Random::new(seed);
    (0..pages).map(move |i| match mode {
        Mode::Stripe => i,
        Mode::Random => random.index(pages),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn stripe_reads_each_page_once_from_the_oldest_to_the_youngest() {
        let read: Vec<usize> = order(Mode::Stripe, 5, 7).collect();
        assert_eq!(read, [0, 1, 2, 3, 4]);
    }

    /// The first numbers of SplitMix64 with seed 0 (Steele et al., OOPSLA 2014, as its reference
    /// implementation prints them), each times 1000 and over 2^64, rounded down.
    #[test]
    fn random_reads_as_many_pages_as_there_are_where_the_seed_says() {
        const SPLIT_MIX: [u64; 3] =
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        let read: Vec<usize> = order(Mode::Random, 1000, 0).collect();
        assert_eq!(read.len(), 1000);
        let wanted = SPLIT_MIX.map(|n| (n as f64 / 2_f64.powi(64) * 1000.0) as usize);
        assert_eq!(wanted, [883, 431, 26], "by hand");
        assert_eq!(read[..3], wanted);
        assert_ne!(read, order(Mode::Random, 1000, 1).collect::<Vec<_>>(), "another seed");
        // Of 1000 pages, 1000 - 1000 / e = 632 are read at all, give or take some ten.
        let mut different = read;
        different.sort_unstable();
        different.dedup();
        assert!((570..700).contains(&different.len()), "{}", different.len());
    }

    #[test]
    fn a_page_that_is_not_what_was_written_ends_the_program() {
        let region = Region::anonymous(3 * PAGE_BYTES).expect("three pages");
        let contents = contents(Content::Half, 1);
        (0..3).for_each(|page| write(&region, page, &contents));
        assert!(read(Mode::Stripe, &region, 1).is_ok());
        let youngest = region.word(2 * PAGE_BYTES);
        youngest.store(youngest.load(Relaxed) ^ 1, Relaxed);
        let failure = read(Mode::Stripe, &region, 1).expect_err("a bit was changed");
        assert_eq!(failure.code, exit_codes::VIOLATION);
        assert!(failure.to_string().contains("page 2"), "{failure}");
        // What was never written, or was lost, reads as zero; no page's number does.
        (0..3).for_each(|page| region.word(page * PAGE_BYTES).store(0, Relaxed));
        assert!(read(Mode::Random, &region, 1).is_err());
    }

    #[test]
    fn the_steps_are_within_the_total() {
        let times = eat(Mode::Random, 64, 1).expect("it is right");
        let steps = [times.allocate_s, times.write_s, times.read_s, times.free_s];
        assert!(steps.iter().all(|step| *step > 0.0), "{times:?}");
        assert!(steps.iter().sum::<f64>() <= times.total_s, "{times:?}");
    }
}
