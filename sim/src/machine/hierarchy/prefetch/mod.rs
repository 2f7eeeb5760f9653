//! Prefetchers of the second level: which lines are asked for before they are needed.
//!
//! A prefetcher sees what the second level is asked for by the cores, in that order. What it wants
//! lies in the page of what was asked, since physical addresses say nothing of the page beyond.
//!
//! In reading order: what there is and how it is set; `stride`, the table of one; prefetches on
//! their way.

mod stride;

use serde::{Deserialize, Serialize};

use super::level::Found;
use super::rests::Rests;
use crate::machine::Cycle;
use crate::machine::backing::PAGE_BYTES;
use crate::machine::core::Purpose;
use crate::machine::error::{ConfigError, power_of_two, within};
use stride::Strides;

/// Which prefetcher the second level has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetcherName {
    /// None.
    None,
    /// After a miss, and after the first use of a line that was prefetched, the lines that follow
    /// (tagged prefetching: A. J. Smith, Cache Memories, ACM Computing Surveys 14 (3), 1982).
    NextLine,
    /// The lines to which the stride of an instruction leads (J.-L. Baer and T.-F. Chen,
    /// Supercomputing 1991).
    Stride,
}

/// The prefetcher and its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchConfig {
    /// Which.
    pub prefetcher: PrefetcherName,
    /// Lines that it wants at a time.
    pub degree_lines: u64,
    /// Entries of the table of `stride`, a power of two.
    pub table_entries: u64,
}

impl PrefetchConfig {
    /// None.
    pub const NONE: PrefetchConfig =
        PrefetchConfig { prefetcher: PrefetcherName::None, degree_lines: 1, table_entries: 256 };

    /// Checks it.
    ///
    /// # Errors
    /// A number is impossible; the key is named.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("prefetch_degree_lines", self.degree_lines, 1, 64)?;
        within("prefetch_table_entries", self.table_entries, 1, 1 << 20)?;
        power_of_two("prefetch_table_entries", self.table_entries)
    }
}

/// What became of prefetches. Of the lines that were asked for, each is useful, late, useless, on
/// its way, or there and unused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrefetchStatistics {
    /// Lines that were asked for.
    pub issued: u64,
    /// Those that were there when they were needed first.
    pub useful: u64,
    /// Those that were needed while they were on their way.
    pub late: u64,
    /// Those that left the second level unused.
    pub useless: u64,
    /// Lines that were wanted and not asked for, since misses needed the miss registers.
    pub dropped: u64,
}

impl PrefetchStatistics {
    /// With another level's.
    pub(super) fn and(self, other: PrefetchStatistics) -> PrefetchStatistics {
        PrefetchStatistics {
            issued: self.issued + other.issued,
            useful: self.useful + other.useful,
            late: self.late + other.late,
            useless: self.useless + other.useless,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// What the second level was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) core: u32,
    pub(super) purpose: Purpose,
    /// The instruction's address; 0 if the trace does not say it.
    pub(super) pc: u64,
    /// Virtual address of the line of the first level.
    pub(super) line: u64,
    /// Its physical address.
    pub(super) frame_address: u64,
    pub(super) found: Found,
}

/// A second level's prefetcher.
#[derive(Clone, Debug)]
pub(super) struct Prefetcher {
    degree_lines: i64,
    line_bytes: i64,
    /// None for `next-line`.
    strides: Option<Strides>,
}

impl Prefetcher {
    /// The prefetcher of a level with such lines, if it has one.
    pub(super) fn new(config: &PrefetchConfig, line_bytes: u64) -> Option<Prefetcher> {
        let strides = match config.prefetcher {
            PrefetcherName::None => return None,
            PrefetcherName::NextLine => None,
            PrefetcherName::Stride => Some(Strides::new(config.table_entries)),
        };
        // Both are small by their keys' bounds.
        let (degree_lines, line_bytes) = (config.degree_lines as i64, line_bytes as i64);
        Some(Prefetcher { degree_lines, line_bytes, strides })
    }

    /// Learns from what was asked; appends the lines that are wanted, the nearest first.
    pub(super) fn observe(&mut self, asked: &Asked, wanted: &mut Vec<u64>) {
        let step_bytes = match &mut self.strides {
            None if asked.found.is_there && !asked.found.is_first_use => return,
            None => self.line_bytes,
            Some(_) if asked.purpose == Purpose::Fetch => return,
            Some(strides) => {
                let Some(stride) = strides.learn(asked) else { return };
                // A step within a line leads to the next one.
                if stride.abs() < self.line_bytes {
                    self.line_bytes * stride.signum()
                } else {
                    stride
                }
            }
        };
        let in_line = !(self.line_bytes as u64 - 1);
        let page = asked.frame_address / PAGE_BYTES;
        for step in 1..=self.degree_lines {
            let address = asked.frame_address.wrapping_add_signed(step * step_bytes);
            if address / PAGE_BYTES != page {
                return;
            }
            wanted.push(address & in_line);
        }
    }
}

/// A prefetch on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefetch {
    /// Physical address of the second level's line, or [`NO_LINE`].
    pub(super) line: u64,
    /// When the last level asked memory for it.
    pub(super) memory_asked_at: Cycle,
    /// Whether a request waits for it by now.
    is_needed: bool,
}

/// Of a prefetch that has come.
const NO_LINE: u64 = u64::MAX;

/// A prefetcher at work beside its cache, and what becomes of its prefetches. In tokens and miss
/// registers they have the numbers of flights, from [`FIRST`](Self::FIRST) on.
#[derive(Clone, Debug)]
pub(super) struct Prefetching {
    pub(super) prefetcher: Prefetcher,
    prefetches: Vec<Prefetch>,
    /// For each line of the cache, whether it was prefetched and not used.
    unused: Box<[bool]>,
    pub(super) statistics: PrefetchStatistics,
}

impl Prefetching {
    /// No core has so many flights.
    const FIRST: u32 = 1 << 31;

    pub(super) fn new(prefetcher: Prefetcher, cache_lines: usize) -> Prefetching {
        Prefetching {
            prefetcher,
            prefetches: Vec::new(),
            unused: vec![false; cache_lines].into_boxed_slice(),
            statistics: PrefetchStatistics::default(),
        }
    }

    /// Whether a number is a prefetch's.
    #[inline]
    pub(super) fn is_one(flight: u32) -> bool {
        (Self::FIRST..Rests::FIRST).contains(&flight)
    }

    /// A prefetch sets out; its number.
    pub(super) fn start(&mut self, line: u64) -> u32 {
        self.statistics.issued += 1;
        let prefetch = Prefetch { line, memory_asked_at: 0, is_needed: false };
        let spare = self.prefetches.iter().position(|prefetch| prefetch.line == NO_LINE);
        let at = spare.unwrap_or(self.prefetches.len());
        if spare.is_none() {
            self.prefetches.push(prefetch);
        }
        self.prefetches[at] = prefetch;
        // As many as the level has miss registers.
        Self::FIRST + at as u32
    }

    pub(super) fn get(&self, flight: u32) -> &Prefetch {
        &self.prefetches[(flight - Self::FIRST) as usize]
    }

    pub(super) fn get_mut(&mut self, flight: u32) -> &mut Prefetch {
        &mut self.prefetches[(flight - Self::FIRST) as usize]
    }

    /// It came.
    pub(super) fn end(&mut self, flight: u32) {
        self.get_mut(flight).line = NO_LINE;
    }

    /// A request waits for a line that is on its way.
    pub(super) fn needs(&mut self, line: u64) {
        let prefetch = self.prefetches.iter_mut().find(|prefetch| prefetch.line == line);
        if let Some(prefetch) = prefetch.filter(|prefetch| !prefetch.is_needed) {
            prefetch.is_needed = true;
            self.statistics.late += 1;
        }
    }

    /// Whether a line that comes was prefetched and no miss waits for it.
    pub(super) fn brings(&self, line: u64) -> bool {
        self.prefetches.iter().any(|prefetch| prefetch.line == line && !prefetch.is_needed)
    }

    /// A line of the cache is used; whether it was prefetched and this is its first use.
    pub(super) fn uses(&mut self, cache_line: usize) -> bool {
        let is_first_use = std::mem::take(&mut self.unused[cache_line]);
        self.statistics.useful += u64::from(is_first_use);
        is_first_use
    }

    /// A line of the cache is given to a block.
    pub(super) fn fills(&mut self, cache_line: usize, is_unused: bool) {
        let was_unused = std::mem::replace(&mut self.unused[cache_line], is_unused);
        self.statistics.useless += u64::from(was_unused);
    }
}
