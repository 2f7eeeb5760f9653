//! Translation look-aside buffers: which pages can be used without a walk of the page table.
//!
//! LHash, Table 2: 128 entries, 4-way, a miss takes 160 cycles. The walk itself is not simulated:
//! it moves nothing over the bus, and any number of walks go on at once.

use serde::{Deserialize, Serialize};

use super::backing::PAGE_BYTES;
use super::cache::{Cache, CacheConfig, Evicted, Replacement, Ways};
use super::cycle::MAX_LATENCY_CYCLES;
use super::error::{ConfigError, within};
use super::{Access, Content};

/// The entries of a TLB, and what a miss costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbConfig {
    /// How many pages it knows. 0: every page, so that nothing misses.
    pub entries: u64,
    /// Entries of a set, or "full".
    pub ways: Ways,
    /// How much later an access that misses begins, in cycles.
    pub miss_latency_cycles: u64,
}

/// What a TLB counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlbStatistics {
    /// Look-ups that found their page.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
}

impl TlbConfig {
    /// LHash, Table 2.
    pub const LHASH: TlbConfig =
        TlbConfig { entries: 128, ways: Ways::Set(4), miss_latency_cycles: 160 };

    /// Checks it.
    ///
    /// # Errors
    /// A number is impossible; the key is named.
    pub fn validate(&self) -> Result<(), ConfigError> {
        Tlb::new(self).map(drop)
    }
}

/// A TLB at work.
#[derive(Clone, Debug)]
pub struct Tlb {
    /// Its "blocks" are pages. Replacement is LRU.
    pages: Option<Cache>,
    miss_latency_cycles: u64,
    /// The page that was looked up last: to look it up again changes nothing.
    last_page: u64,
    last_page_hits: u64,
}

impl Tlb {
    /// An empty one.
    ///
    /// # Errors
    /// A number is impossible; the key is named.
    pub fn new(config: &TlbConfig) -> Result<Tlb, ConfigError> {
        within("miss_latency_cycles", config.miss_latency_cycles, 0, MAX_LATENCY_CYCLES)?;
        within("entries", config.entries, 0, 1 << 20)?;
        if config.entries > 0
            && let Ways::Set(ways) = config.ways
        {
            within("ways", ways, 1, config.entries)?;
            if !config.entries.is_multiple_of(ways) {
                let (value, unit) = (config.entries, ways);
                return Err(ConfigError::NotAMultiple {
                    parameter: "entries",
                    value,
                    unit,
                    of: "ways",
                });
            }
        }
        let pages = (config.entries > 0).then(|| {
            Cache::new(&CacheConfig {
                size_bytes: config.entries * PAGE_BYTES,
                ways: config.ways,
                block_bytes: PAGE_BYTES,
                replacement: Replacement::Lru,
            })
        });
        Ok(Tlb {
            pages: pages.transpose()?,
            miss_latency_cycles: config.miss_latency_cycles,
            last_page: u64::MAX,
            last_page_hits: 0,
        })
    }

    /// Looks an address's page up and remembers it: by how much the access is late.
    #[inline]
    pub fn delay_cycles(&mut self, virtual_address: u64) -> u64 {
        let page = virtual_address / PAGE_BYTES;
        if page == self.last_page {
            self.last_page_hits += 1;
            return 0;
        }
        self.last_page = page;
        self.look_up(virtual_address)
    }

    fn look_up(&mut self, virtual_address: u64) -> u64 {
        let Some(pages) = &mut self.pages else { return 0 };
        if pages.access_line(virtual_address, Access::Read, Content::Data).is_some() {
            return 0;
        }
        pages.fill(virtual_address, false, Content::Data);
        self.miss_latency_cycles
    }

    /// The pages that it knows. Executed by tests only.
    #[must_use]
    pub fn held(&self) -> Vec<Evicted> {
        self.pages.as_ref().map(Cache::held).unwrap_or_default()
    }

    /// What happened so far.
    #[must_use]
    pub fn statistics(&self) -> TlbStatistics {
        let Some(pages) = &self.pages else { return TlbStatistics::default() };
        let counts = pages.statistics().of(Content::Data);
        TlbStatistics { hits: counts.hits() + self.last_page_hits, misses: counts.misses() }
    }
}
