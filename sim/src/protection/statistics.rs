//! What a protection unit counts. All of it only grows; ratios and rates are computed from two
//! snapshots.

use casemate_schemes::unit::place::Region;
use serde::{Deserialize, Serialize};

/// Accesses to one region of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegionTraffic {
    /// Reads that were sent to memory.
    pub reads: u64,
    /// Writes that were sent to memory.
    pub writes: u64,
    /// Bytes that were asked for.
    pub read_bytes: u64,
    /// Bytes that were given.
    pub written_bytes: u64,
}

/// Traffic by region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// The program's blocks.
    pub data: RegionTraffic,
    /// Lines of counters.
    pub counters: RegionTraffic,
    /// Sequence numbers that found no room on chip.
    pub sequence_numbers: RegionTraffic,
    /// MACs in a region of their own.
    pub macs: RegionTraffic,
    /// Time stamps of log hashes.
    pub time_stamps: RegionTraffic,
    /// Nodes of trees.
    pub nodes: RegionTraffic,
}

impl Traffic {
    /// All regions, with their names.
    #[must_use]
    pub fn by_region(&self) -> [(&'static str, &RegionTraffic); 6] {
        [
            ("data", &self.data),
            ("counters", &self.counters),
            ("sequence_numbers", &self.sequence_numbers),
            ("macs", &self.macs),
            ("time_stamps", &self.time_stamps),
            ("nodes", &self.nodes),
        ]
    }

    /// All bytes, in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.by_region().iter().map(|(_, one)| one.read_bytes + one.written_bytes).sum()
    }

    pub(super) fn of_mut(&mut self, region: Region) -> &mut RegionTraffic {
        match region {
            // Words of ECC bits come with data, and are none of their own.
            Region::Data | Region::Ecc => &mut self.data,
            Region::Counters => &mut self.counters,
            Region::SequenceNumbers => &mut self.sequence_numbers,
            Region::Macs => &mut self.macs,
            Region::TimeStamps => &mut self.time_stamps,
            Region::Nodes(_) => &mut self.nodes,
        }
    }
}

/// Uses of metadata that may be on chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetadataLookups {
    /// Lines that were looked for and found.
    pub hits: u64,
    /// Lines that were looked for and fetched.
    pub misses: u64,
    /// Times that a line on chip was changed.
    pub amended: u64,
    /// Lines that were thrown out.
    pub evictions: u64,
}

/// All that a protection unit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtectionStatistics {
    /// Blocks that were read for the caches.
    pub reads: u64,
    /// Blocks that the caches wrote back.
    pub write_backs: u64,
    /// Blocks of which the unit was told that the caches dropped them unchanged.
    pub clean_drops: u64,
    /// Pages that were touched for the first time.
    pub pages_touched: u64,
    /// What was sent to memory. As all that follows, without what pages' first touches take.
    pub traffic: Traffic,
    /// Lines of counters.
    pub counters: MetadataLookups,
    /// Tree nodes.
    pub nodes: MetadataLookups,
    /// Blocks of MACs, where they are cached.
    pub macs: MetadataLookups,
    /// Sequence numbers that were found on chip.
    pub sequence_number_hits: u64,
    /// Sequence numbers that were not.
    pub sequence_number_misses: u64,
    /// Time stamps that were found in the time-stamp cache when they were needed.
    pub time_stamp_hits: u64,
    /// Time stamps that were not; the word of each is fetched.
    pub time_stamp_misses: u64,
    /// Blocks of the cipher's own size that went through it.
    pub cipher_operations: u64,
    /// MACs of blocks, lines and nodes that were computed.
    pub mac_operations: u64,
    /// Elements and nonces that were hashed for log hashes.
    pub log_hash_operations: u64,
    /// Times that a fetch or a hash found the hash buffer full.
    pub hash_buffer_waits: u64,
    /// Times that a fetch of metadata found no miss register free.
    pub metadata_mshr_waits: u64,
    /// Counters that overflowed, so that blocks were encrypted anew.
    pub overflows: u64,
    /// Blocks that were encrypted anew for that.
    pub reencrypted_blocks: u64,
    /// Lines of a tree of counters that were stored anew because a counter beside theirs
    /// overflowed.
    pub resealed_lines: u64,
    /// Comparisons of logs: one for each check, with a tree one for each node that was visited.
    pub log_comparisons: u64,
}
