//! Caches, TLBs and page frames of a machine.

use serde::{Deserialize, Serialize};

use crate::machine::backing::{BLOCK_BYTES, PAGE_BYTES};
use crate::machine::cache::{Cache, CacheConfig, Mshrs, Replacement, Ways};
use crate::machine::cycle::MAX_LATENCY_CYCLES;
use crate::machine::error::{ConfigError, power_of_two, within};
use crate::machine::frames::Frames;
use crate::machine::hierarchy::prefetch::PrefetchConfig;
use crate::machine::tlb::TlbConfig;

/// A cache, and how many of its misses can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheLevelConfig {
    /// All lines together.
    pub size_bytes: u64,
    /// Lines of a set, or "full".
    pub ways: Ways,
    /// One line.
    pub block_bytes: u64,
    /// From the beginning of a look-up to its end: in the first level to the use of what was found.
    pub latency_cycles: u64,
    /// Which line goes when a set is full.
    pub replacement: Replacement,
    /// Lines that can be on their way at once. (Of instructions there is always one.)
    pub mshr_registers: u64,
    /// Misses that can wait for one of them. (In the first level, as many as there are
    /// instructions.)
    pub mshr_waiters_per_register: u64,
}

/// All between the cores and the backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HierarchyConfig {
    /// Instruction cache of each core.
    pub l1i: CacheLevelConfig,
    /// Data cache of each core.
    pub l1d: CacheLevelConfig,
    /// Second level, for instructions and data.
    pub l2: CacheLevelConfig,
    /// Whether the cores share one second level, or each has its own.
    pub l2_shared: bool,
    /// What the second level asks for beforehand.
    pub prefetch: PrefetchConfig,
    /// A third level that all share, if there is one.
    pub l3: Option<CacheLevelConfig>,
    /// Instruction TLB of each core.
    pub itlb: TlbConfig,
    /// Data TLB of each core.
    pub dtlb: TlbConfig,
    /// How long it takes to get a line that another core changed, or to have the copies thrown away
    /// that others hold.
    pub coherence_cycles: u64,
    /// Blocks that can be on their way to memory. While they are, no line comes into the last
    /// level.
    pub write_buffer_entries: u64,
    /// Memory for the program's pages.
    pub memory_bytes: u64,
}

impl CacheLevelConfig {
    /// The cache without its timing.
    #[must_use]
    pub fn cache(&self) -> CacheConfig {
        let CacheLevelConfig { size_bytes, ways, block_bytes, replacement, .. } = *self;
        CacheConfig { size_bytes, ways, block_bytes, replacement }
    }

    /// Checks it.
    ///
    /// # Errors
    /// A number is impossible; the key is named.
    pub fn validate(&self) -> Result<(), ConfigError> {
        Cache::new(&self.cache())?;
        within("block_bytes", self.block_bytes, 8, PAGE_BYTES)?;
        within("latency_cycles", self.latency_cycles, 0, MAX_LATENCY_CYCLES)?;
        Mshrs::<()>::new(self.mshr_registers as usize, self.mshr_waiters_per_register as usize)?;
        Ok(())
    }
}

impl HierarchyConfig {
    /// LHash, Table 2. What the table does not say: LRU; 8 miss registers for the first level and
    /// 16 for the second, as machines of its time had; 16 entries in the write buffer; 1 GiB of
    /// memory.
    pub const LHASH: HierarchyConfig = HierarchyConfig {
        l1i: CacheLevelConfig { mshr_registers: 1, ..Self::LHASH_L1 },
        l1d: Self::LHASH_L1,
        l2: CacheLevelConfig {
            size_bytes: 1 << 20,
            ways: Ways::Set(4),
            block_bytes: 64,
            latency_cycles: 10,
            replacement: Replacement::Lru,
            mshr_registers: 16,
            mshr_waiters_per_register: 16,
        },
        l2_shared: true,
        prefetch: PrefetchConfig::NONE,
        l3: None,
        itlb: TlbConfig::LHASH,
        dtlb: TlbConfig::LHASH,
        coherence_cycles: 10,
        write_buffer_entries: 16,
        memory_bytes: 1 << 30,
    };

    const LHASH_L1: CacheLevelConfig = CacheLevelConfig {
        size_bytes: 64 << 10,
        ways: Ways::Set(2),
        block_bytes: 32,
        latency_cycles: 2,
        replacement: Replacement::Lru,
        mshr_registers: 8,
        mshr_waiters_per_register: 16,
    };

    /// Checks it for so many cores.
    ///
    /// # Errors
    /// A number is impossible, or parts do not go together; the key is named.
    pub fn validate(&self, cores: u64) -> Result<(), ConfigError> {
        let in_section =
            |section: &'static str| move |error: ConfigError| error.within_section(section);
        self.l1i.validate().map_err(in_section("l1i"))?;
        self.l1d.validate().map_err(in_section("l1d"))?;
        self.l2.validate().map_err(in_section("l2"))?;
        if let Some(l3) = &self.l3 {
            l3.validate().map_err(in_section("l3"))?;
        }
        self.itlb.validate().map_err(in_section("itlb"))?;
        self.dtlb.validate().map_err(in_section("dtlb"))?;
        self.validate_blocks()?;
        self.prefetch.validate()?;
        within("coherence_cycles", self.coherence_cycles, 0, MAX_LATENCY_CYCLES)?;
        within("write_buffer_entries", self.write_buffer_entries, 1, 1 << 16)?;
        Frames::new(self.memory_bytes)?;
        if cores > 1 && !self.l2_shared && self.l3.is_none() {
            return Err(ConfigError::Unfitting {
                parameter: "l2_shared",
                problem: "is false, so several cores need an l3 that they share",
            });
        }
        Ok(())
    }

    /// Whether the last level's lines are whole lines of what lies below.
    ///
    /// # Errors
    /// They are not.
    pub fn validate_lines(&self, line_bytes: u64) -> Result<(), ConfigError> {
        let last = self.l3.as_ref().unwrap_or(&self.l2);
        within("line_bytes", line_bytes, BLOCK_BYTES, last.block_bytes)
            .map_err(|error| error.within_section("protection"))
    }

    /// A level's lines are whole lines of the level above, and the last one's whole blocks of
    /// memory.
    fn validate_blocks(&self) -> Result<(), ConfigError> {
        let l1 = self.l1i.block_bytes.max(self.l1d.block_bytes);
        let least = if self.l3.is_none() { l1.max(BLOCK_BYTES) } else { l1 };
        block("l2", self.l2.block_bytes, least)?;
        match &self.l3 {
            Some(l3) => block("l3", l3.block_bytes, self.l2.block_bytes.max(BLOCK_BYTES)),
            None => Ok(()),
        }
    }
}

fn block(section: &'static str, bytes: u64, least: u64) -> Result<(), ConfigError> {
    power_of_two("block_bytes", bytes)
        .and_then(|()| within("block_bytes", bytes, least, PAGE_BYTES))
        .map_err(|error| error.within_section(section))
}
