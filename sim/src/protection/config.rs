//! What can be chosen of a protection unit, in cycles of the core and bytes.

use serde::{Deserialize, Serialize};

use crate::machine::backing::{BLOCK_BYTES, PAGE_BYTES};
use crate::machine::cache::{Cache, CacheConfig, Replacement, Ways};
use crate::machine::cycle::MAX_LATENCY_CYCLES;
use crate::machine::error::{ConfigError, power_of_two, within};
use crate::protection::plaintext::PlaintextPages;

/// A protection unit. Which scheme it runs is chosen beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectionConfig {
    /// Memory for the program's pages. Metadata lies behind it.
    pub memory_bytes: u64,
    /// Bytes on chip for the top of a tree. With 0 that is one node, or one counter.
    pub on_chip_tree_bytes: u64,
    /// When the processor may work with a block.
    pub verification: Verification,
    /// Bytes of a line: 64, 128 or 256. It is encrypted and verified at once.
    pub line_bytes: u64,
    /// Bits of all MACs, of HMAC-SHA-1 or, with 256, HMAC-SHA-256 (AISE/BMT, section 7.4); 0: the
    /// scheme's own MACs.
    pub mac_bits: u64,
    /// What a node of a hierarchical log hash covers; 0: as much as the scheme has it.
    pub subspace_bytes: u64,
    /// Lines of counters on chip.
    pub counters: MetadataCacheConfig,
    /// Tree nodes on chip.
    pub nodes: MetadataCacheConfig,
    /// Blocks of MACs on chip.
    pub macs: MetadataCacheConfig,
    /// Sequence numbers on chip, of two bytes each.
    pub sequence_numbers_bytes: u64,
    /// Sequence numbers that any one could take the place of; 0 for all.
    pub sequence_numbers_ways: u64,
    /// What brings the number of a line on chip that was never written back.
    pub sequence_numbers_enter: Enter,
    /// What the Sequence Number Cache does when another process runs.
    pub snc_on_switch: OnSwitch,
    /// How pages are encrypted that are first touched by a fetch of instructions.
    pub instruction_pages: InstructionPages,
    /// Pages that are not encrypted, where an encryption knows such pages.
    pub plaintext_pages: PlaintextPages,
    /// After each so many instructions another process runs, and this one goes on; 0: never.
    pub switch_interval_instructions: u64,
    /// Words of time stamps on chip, of eight bytes each.
    pub time_stamp_cache_blocks: u64,
    /// Of these words, those that any one could take the place of; 0 for all.
    pub time_stamp_cache_ways: u64,
    /// Blocks that can wait for their verification at once; 0 for as many as it takes.
    pub hash_buffer_blocks: u64,
    /// Fetches of metadata that can be under way at once; 0 for as many as it takes.
    pub metadata_mshr_registers: u64,
    /// Logs are compared after so many reads and write-backs; 0: not before time stamps run out.
    pub log_check_interval_accesses: u64,
    /// How long things take.
    pub timing: UnitTiming,
}

/// When a sequence number comes on chip for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enter {
    /// With its line's first write-back (OTP/SNC, section 4.2).
    FirstWriteBack,
    /// With its page's first touch.
    FirstTouch,
}

/// What a Sequence Number Cache does when another process runs (OTP/SNC, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnSwitch {
    /// As the scheme has it.
    Scheme,
    /// All of it goes to memory, encrypted.
    Flush,
    /// Its entries are tagged with their process, and stay.
    Tag,
}

/// How pages of instructions are encrypted, where an encryption knows such pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionPages {
    /// As all others.
    AsData,
    /// Under seeds that are their addresses, without sequence numbers (OTP/SNC, section 3.4.1).
    ConstantSeeds,
}

/// When the processor may work with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verification {
    /// Once all is verified that it depends on.
    Precise,
    /// Once it is decrypted: it is verified at once, but not waited for (AISE/BMT, section 6:
    /// timely but non-precise).
    Timely,
}

/// Where a kind of metadata is kept on chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldIn {
    /// In a cache of its own.
    Own,
    /// In the cache that lines of counters are in.
    WithCounters,
    /// In the last-level cache, beside data.
    LastLevel,
    /// Nowhere: each use is an access to memory. Only MACs can do without.
    Nowhere,
}

/// A cache of metadata, or another one that does for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataCacheConfig {
    /// Where.
    pub held_in: HeldIn,
    /// Its size, if it is a cache of its own.
    pub size_bytes: u64,
    /// Lines of a set, or "full".
    pub ways: Ways,
    /// Which line goes when a set is full.
    pub replacement: Replacement,
    /// From the beginning of a look-up to its end, wherever that is.
    pub latency_cycles: u64,
}

/// How long things take, and how often they can begin. An interval of 0 has no limit to its
/// throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitTiming {
    /// One block of the cipher's own size (16 bytes of AES, 8 of DES), from beginning to end.
    pub cipher_latency_cycles: u64,
    /// From the beginning of one to that of the next.
    pub cipher_interval_cycles: u64,
    /// One MAC over a block.
    pub mac_latency_cycles: u64,
    /// From the beginning of one to that of the next.
    pub mac_interval_cycles: u64,
    /// One element of a log hash: address, block and time stamp.
    pub log_hash_latency_cycles: u64,
    /// From the beginning of one to that of the next.
    pub log_hash_interval_cycles: u64,
    /// A block XOR its pad.
    pub xor_cycles: u64,
    /// To find a counter in its line where it has to be computed: deltas and Morphable Counters.
    pub counter_decode_cycles: u64,
}

/// Four blocks.
const MOST_LINE_BYTES: u64 = 4 * BLOCK_BYTES;

/// As much as addresses and tables of frames are made for.
const MOST_MEMORY_BYTES: u64 = 1 << 46;

impl ProtectionConfig {
    /// AISE/BMT, section 6: 1 GB of memory, a 32 KB counter cache with 16 ways, nodes in the L2 (10
    /// cycles), MACs not cached (section 5.2), AES in 16 stages and 80 cycles, MACs in 80 cycles.
    /// The paper says nothing of their throughput: as that of AES here.
    pub const AISE_BMT: ProtectionConfig = ProtectionConfig {
        memory_bytes: 1 << 30,
        on_chip_tree_bytes: 0,
        verification: Verification::Timely,
        line_bytes: BLOCK_BYTES,
        mac_bits: 0,
        subspace_bytes: 0,
        counters: MetadataCacheConfig {
            held_in: HeldIn::Own,
            size_bytes: 32 << 10,
            ways: Ways::Set(16),
            replacement: Replacement::Lru,
            latency_cycles: 0,
        },
        nodes: MetadataCacheConfig {
            held_in: HeldIn::LastLevel,
            size_bytes: 32 << 10,
            ways: Ways::Set(8),
            replacement: Replacement::Lru,
            latency_cycles: 10,
        },
        macs: MetadataCacheConfig {
            held_in: HeldIn::Nowhere,
            size_bytes: 32 << 10,
            ways: Ways::Set(8),
            replacement: Replacement::Lru,
            latency_cycles: 0,
        },
        sequence_numbers_bytes: 64 << 10,
        sequence_numbers_ways: 0,
        sequence_numbers_enter: Enter::FirstWriteBack,
        snc_on_switch: OnSwitch::Scheme,
        instruction_pages: InstructionPages::AsData,
        plaintext_pages: PlaintextPages::NONE,
        switch_interval_instructions: 0,
        time_stamp_cache_blocks: 32,
        time_stamp_cache_ways: 0,
        hash_buffer_blocks: 0,
        metadata_mshr_registers: 0,
        log_check_interval_accesses: 0,
        timing: UnitTiming {
            cipher_latency_cycles: 80,
            cipher_interval_cycles: 5,
            mac_latency_cycles: 80,
            mac_interval_cycles: 5,
            log_hash_latency_cycles: 160,
            log_hash_interval_cycles: 10,
            xor_cycles: 1,
            counter_decode_cycles: 0,
        },
    };

    /// Checks it.
    ///
    /// # Errors
    /// A number is impossible; the key is named.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("memory_bytes", self.memory_bytes, PAGE_BYTES, MOST_MEMORY_BYTES)?;
        if !self.memory_bytes.is_multiple_of(PAGE_BYTES) {
            return Err(ConfigError::NotAMultiple {
                parameter: "memory_bytes",
                value: self.memory_bytes,
                unit: PAGE_BYTES,
                of: "the bytes of a page",
            });
        }
        power_of_two("line_bytes", self.line_bytes)?;
        within("line_bytes", self.line_bytes, BLOCK_BYTES, MOST_LINE_BYTES)?;
        within("on_chip_tree_bytes", self.on_chip_tree_bytes, 0, 1 << 30)?;
        within("sequence_numbers_bytes", self.sequence_numbers_bytes, 2, 1 << 30)?;
        if !matches!(self.mac_bits, 0 | 256) {
            within("mac_bits", self.mac_bits, 32, 160)?;
            if !self.mac_bits.is_multiple_of(8) {
                return Err(ConfigError::NotAMultiple {
                    parameter: "mac_bits",
                    value: self.mac_bits,
                    unit: 8,
                    of: "the bits of a byte",
                });
            }
        }
        let numbers = self.sequence_numbers_bytes / 2;
        within("sequence_numbers_ways", self.sequence_numbers_ways, 0, numbers)?;
        if self.sequence_numbers_ways > 0 {
            let unit = 2 * self.sequence_numbers_ways;
            if !self.sequence_numbers_bytes.is_multiple_of(unit) {
                return Err(ConfigError::NotAMultiple {
                    parameter: "sequence_numbers_bytes",
                    value: self.sequence_numbers_bytes,
                    unit,
                    of: "the product of sequence_numbers_ways and 2 bytes",
                });
            }
        }
        let words = self.time_stamp_cache_blocks;
        within("time_stamp_cache_blocks", words, 1, 1 << 24)?;
        within("time_stamp_cache_ways", self.time_stamp_cache_ways, 0, words)?;
        if self.time_stamp_cache_ways > 0 && !words.is_multiple_of(self.time_stamp_cache_ways) {
            return Err(ConfigError::NotAMultiple {
                parameter: "time_stamp_cache_blocks",
                value: words,
                unit: self.time_stamp_cache_ways,
                of: "time_stamp_cache_ways",
            });
        }
        within("hash_buffer_blocks", self.hash_buffer_blocks, 0, 1 << 20)?;
        within("metadata_mshr_registers", self.metadata_mshr_registers, 0, 1 << 20)?;
        let line = self.line_bytes;
        self.counters.validate(line, "counters.held_in", &[HeldIn::Own, HeldIn::LastLevel])?;
        let shared = [HeldIn::Own, HeldIn::WithCounters, HeldIn::LastLevel];
        self.nodes.validate(line, "nodes.held_in", &shared)?;
        let all = [HeldIn::Own, HeldIn::WithCounters, HeldIn::LastLevel, HeldIn::Nowhere];
        self.macs.validate(line, "macs.held_in", &all)?;
        self.timing.validate()
    }

    /// Page frames of memory.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.memory_bytes / PAGE_BYTES
    }
}

impl MetadataCacheConfig {
    fn validate(
        &self,
        line_bytes: u64,
        key: &'static str,
        allowed: &[HeldIn],
    ) -> Result<(), ConfigError> {
        if !allowed.contains(&self.held_in) {
            let value = format!("{:?}", self.held_in).to_lowercase();
            let known = "own, last-level; nodes and macs also with-counters, macs also nowhere";
            return Err(ConfigError::Unknown { parameter: key, value, known });
        }
        within("latency_cycles", self.latency_cycles, 0, MAX_LATENCY_CYCLES)?;
        match self.held_in {
            HeldIn::Own => self.build(line_bytes).map(|_| ()),
            HeldIn::WithCounters | HeldIn::LastLevel | HeldIn::Nowhere => Ok(()),
        }
    }

    /// A cache of its own, of such lines.
    pub(super) fn build(&self, line_bytes: u64) -> Result<Cache, ConfigError> {
        Cache::new(&CacheConfig {
            size_bytes: self.size_bytes,
            ways: self.ways,
            block_bytes: line_bytes,
            replacement: self.replacement,
        })
    }
}

impl UnitTiming {
    fn validate(&self) -> Result<(), ConfigError> {
        for (key, value) in [
            ("cipher_latency_cycles", self.cipher_latency_cycles),
            ("cipher_interval_cycles", self.cipher_interval_cycles),
            ("mac_latency_cycles", self.mac_latency_cycles),
            ("mac_interval_cycles", self.mac_interval_cycles),
            ("log_hash_latency_cycles", self.log_hash_latency_cycles),
            ("log_hash_interval_cycles", self.log_hash_interval_cycles),
            ("xor_cycles", self.xor_cycles),
            ("counter_decode_cycles", self.counter_decode_cycles),
        ] {
            within(key, value, 0, MAX_LATENCY_CYCLES)?;
        }
        Ok(())
    }
}
