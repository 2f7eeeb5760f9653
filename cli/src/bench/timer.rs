//! Phases of the load and how they are timed.

use std::fs;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use casemate_core::random::Random;

/// The phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Every page is written for the first time, whole.
    FirstWrite,
    /// One word of every page, in order.
    SequentialRead,
    /// The same, from the last page to the first.
    ReverseRead,
    /// The same, every [`STRIDE_PAGES`]th page, and those between when the end is reached.
    StridedRead,
    /// One word of pages chosen at random.
    RandomRead,
    /// A load and a store to pages chosen at random.
    RandomModify,
    /// The program that fits the Clear.
    Fits,
}

/// Pages from one access to the next where they are at equal distances.
pub const STRIDE_PAGES: usize = 8;

impl Phase {
    /// The page of access `i` to `pages` pages, where its order is not left to chance.
    pub fn page(self, i: usize, pages: usize) -> usize {
        let i = i % pages;
        let rows = pages / STRIDE_PAGES;
        match self {
            Phase::ReverseRead => pages - 1 - i,
            Phase::StridedRead if i < rows * STRIDE_PAGES => i % rows * STRIDE_PAGES + i / rows,
            _ => i,
        }
    }
}

/// What a phase took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Which.
    pub phase: Phase,
    /// Accesses, over all threads.
    pub accesses: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// The share of accesses that did not find their page in memory.
    pub miss_rate: f64,
    /// Faults as getrusage(2) counts them, minor and major.
    pub faults: [u64; 2],
    /// zram's original and compressed bytes, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zram_bytes: Option<[u64; 2]>,
    /// A sum over what was computed; the same under every system.
    pub checksum: u64,
}

/// How a phase is timed.
pub struct Timer {
    /// Threads that share the accesses.
    pub threads: usize,
    /// Accesses over all threads.
    pub accesses: usize,
    /// Seed of random choices.
    pub seed: u64,
}

impl Timer {
    /// Calls `access` with 0, 1, 2, ...; every thread has a run of neighbours.
    pub fn time(
        &self,
        phase: Phase,
        access: impl Fn(usize, &mut Random) -> Result<u64> + Sync,
    ) -> Result<Line> {
        let part = |thread: usize| -> Result<u64> {
            let mut rng = Random::new(self.seed ^ ((phase as u64) << 32) ^ ((thread as u64) << 40));
            let from = self.accesses * thread / self.threads;
            let to = self.accesses * (thread + 1) / self.threads;
            let mut sum = 0_u64;
            for i in from..to {
                sum = sum.wrapping_add(access(i, &mut rng)?);
            }
            Ok(sum)
        };
        let before = faults();
        let start = Instant::now();
        // The clock runs while the threads start: some 50 µs of a phase of many milliseconds.
        let checksum = if self.threads == 1 {
            part(0)?
        } else {
            std::thread::scope(|scope| {
                let part = &part;
                let threads: Vec<_> =
                    (0..self.threads).map(|thread| scope.spawn(move || part(thread))).collect();
                threads.into_iter().try_fold(0_u64, |sum, thread| match thread.join() {
                    Ok(part) => part.map(|part| sum.wrapping_add(part)),
                    Err(_) => bail!("a thread of the load panicked"),
                })
            })?
        };
        let seconds = start.elapsed().as_secs_f64();
        let after = faults();
        Ok(Line {
            phase,
            accesses: self.accesses as u64,
            seconds,
            miss_rate: 1.0,
            faults: [after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1])],
            zram_bytes: None,
            checksum,
        })
    }
}

/// Minor and major faults of this process so far, from /proc/self/stat.
pub fn faults() -> [u64; 2] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold blanks; the fields count from after it.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    let field = |n: usize| fields.get(n).and_then(|text| text.parse().ok()).unwrap_or(0);
    [field(7), field(9)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_by_every_page_once() {
        let of = |phase: Phase, pages| (0..pages).map(|i| phase.page(i, pages)).collect::<Vec<_>>();
        assert_eq!(of(Phase::ReverseRead, 4), [3, 2, 1, 0]);
        assert_eq!(
            of(Phase::StridedRead, 19),
            [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 16, 17, 18]
        );
        assert_eq!(of(Phase::SequentialRead, 3), [0, 1, 2]);
        assert_eq!(of(Phase::StridedRead, 5), [0, 1, 2, 3, 4]);
    }
}
