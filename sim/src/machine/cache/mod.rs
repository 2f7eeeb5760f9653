//! A set-associative cache, write-back and write-allocate, without contents.
//!
//! In reading order:
//!
//! - [`replacement`]: the policies, one short file each;
//! - [`statistics`]: what is counted;
//! - [`mshr`]: misses that wait for memory;
//! - [`write_buffer`]: write-backs that wait for memory.
//!
//! A lookup and the fill that may follow are two calls, since memory answers cycles later.

pub mod mshr;
pub mod replacement;
pub mod statistics;
mod tags;
pub mod write_buffer;
mod written;

pub use mshr::Mshrs;
pub use replacement::Replacement;
pub use statistics::CacheStatistics;
pub use write_buffer::WriteBuffer;

use super::error::{ConfigError, power_of_two, within};
use super::{Access, Content};
use tags::{NO_BLOCK, Tags};

/// The largest cache that can be configured: 2^24 lines, less than a gigabyte of state.
const MAX_LINES: u64 = 1 << 24;

/// The size, the sets and the policy of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// All blocks together.
    pub size_bytes: u64,
    /// Blocks of a set.
    pub ways: Ways,
    /// One block: a power of two, from 2 bytes (a sequence number of OTP/SNC, section 5.1).
    pub block_bytes: u64,
    /// Which block goes when a set is full.
    pub replacement: Replacement,
}

/// How many blocks a set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// So many.
    Set(u64),
    /// All of them: one set, fully associative.
    Full,
}

/// A block that left the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Its first byte.
    pub address: u64,
    /// Whether it must be written back.
    pub dirty: bool,
    /// What it holds.
    pub content: Content,
}

/// A cache's state: which blocks it holds.
#[derive(Clone, Debug)]
pub struct Cache {
    block_bits: u32,
    sets: u64,
    /// Whether the set is a number of bits of the address.
    masked: bool,
    ways: usize,
    /// For each set, the block that was used last, and its line. To use it again changes nothing
    /// under any policy, so most hits need neither search nor policy.
    recent: Vec<(u64, u32)>,
    tags: Tags,
    policy: replacement::State,
    /// For each set, its empty ways in `[..empty_ways[set]]`, the next to be filled last.
    empty: Vec<u32>,
    empty_ways: Vec<u32>,
    occupancy_lines: [u64; 2],
    statistics: CacheStatistics,
}

impl CacheConfig {
    /// Checks it; the number of sets and ways.
    fn sets_and_ways(&self) -> Result<(u64, u64), ConfigError> {
        within("block_bytes", self.block_bytes, 2, 1 << 20)?;
        power_of_two("block_bytes", self.block_bytes)?;
        within("size_bytes", self.size_bytes, self.block_bytes, MAX_LINES * self.block_bytes)?;
        let lines = self.size_bytes / self.block_bytes;
        let ways = match self.ways {
            Ways::Set(ways) => ways,
            Ways::Full => lines,
        };
        within("ways", ways, 1, lines)?;
        let unit = ways * self.block_bytes;
        if !self.size_bytes.is_multiple_of(unit) {
            return Err(ConfigError::NotAMultiple {
                parameter: "size_bytes",
                value: self.size_bytes,
                unit,
                of: "the product of ways and block_bytes",
            });
        }
        Ok((self.size_bytes / unit, ways))
    }
}

impl Cache {
    /// An empty cache.
    ///
    /// # Errors
    /// The size is impossible or the policy does not go with it; the parameter is named.
    pub fn new(config: &CacheConfig) -> Result<Self, ConfigError> {
        let (sets, ways) = config.sets_and_ways()?;
        let (set_count, ways) = (sets as usize, ways as usize);
        let empty = (0..set_count).flat_map(|_| (0..ways as u32).rev()).collect();
        Ok(Cache {
            block_bits: config.block_bytes.trailing_zeros(),
            sets,
            masked: sets.is_power_of_two(),
            ways,
            recent: vec![(NO_BLOCK, 0); set_count],
            tags: Tags::new(set_count, ways),
            policy: replacement::State::new(config.replacement, set_count, ways)?,
            empty,
            empty_ways: vec![ways as u32; set_count],
            occupancy_lines: [0; 2],
            statistics: CacheStatistics::default(),
        })
    }

    /// Looks a block up for a read or a write; whether it was there. A write that hits makes it
    /// dirty. One that misses is to be fetched and filled as dirty (write-allocate).
    pub fn access(&mut self, address: u64, access: Access, content: Content) -> bool {
        self.access_line(address, access, content).is_some()
    }

    /// [`access`](Self::access) that tells the line's number, below [`lines`](Self::lines): where a
    /// user keeps what it knows of the block. A block stays in its line until it leaves the cache.
    #[inline]
    pub fn access_line(&mut self, address: u64, access: Access, content: Content) -> Option<usize> {
        let (block, set) = self.locate(address);
        let (recent, line) = self.recent[set];
        let found =
            if recent == block { Some(line as usize) } else { self.find_and_renew(set, block) };
        if let Some(line) = found
            && access == Access::Write
        {
            self.tags.make_dirty(line);
        }
        self.statistics.count_lookup(access, content, found.is_some());
        found
    }

    fn find_and_renew(&mut self, set: usize, block: u64) -> Option<usize> {
        let way = self.tags.find(set, block)?;
        self.policy.hit(set, way);
        let line = set * self.ways + way;
        self.recent[set] = (block, line as u32);
        Some(line)
    }

    /// Puts a block in; the block that had to go for it, if one had to. A block that is there
    /// already stays, and is dirty if either was.
    pub fn fill(&mut self, address: u64, dirty: bool, content: Content) -> Option<Evicted> {
        self.fill_line(address, dirty, content).1
    }

    /// [`fill`](Self::fill) that tells the line's number too.
    pub fn fill_line(
        &mut self,
        address: u64,
        dirty: bool,
        content: Content,
    ) -> (usize, Option<Evicted>) {
        let (block, set) = self.locate(address);
        if let Some(line) = self.find_and_renew(set, block) {
            if dirty {
                self.tags.make_dirty(line);
            }
            return (line, None);
        }
        let evicted = if self.empty_ways[set] == 0 {
            let way = self.policy.victim(set);
            let evicted = self.empty(set, way);
            self.statistics.count_eviction(evicted.content, evicted.dirty);
            Some(evicted)
        } else {
            None
        };
        let way = self.take_empty(set);
        self.tags.insert(set, way, block, dirty, content);
        self.policy.filled(set, way);
        self.occupancy_lines[content.index()] += 1;
        self.statistics.count_fill(content);
        let line = set * self.ways + way;
        self.recent[set] = (block, line as u32);
        (line, evicted)
    }

    /// Makes a block clean, since a level below holds its content now. Whether it was dirty.
    pub fn make_clean(&mut self, address: u64) -> bool {
        let (block, set) = self.locate(address);
        self.tags.find(set, block).is_some_and(|way| self.tags.make_clean(set * self.ways + way))
    }

    /// Whether the block in a line must be written back.
    #[must_use]
    #[inline]
    pub fn is_dirty(&self, line: usize) -> bool {
        self.tags.is_dirty(line)
    }

    /// Whether a block is there. Changes nothing and is not counted.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.line_of(address).is_some()
    }

    /// The line that a block is in. Changes nothing and is not counted.
    #[must_use]
    pub fn line_of(&self, address: u64) -> Option<usize> {
        let (block, set) = self.locate(address);
        self.tags.find(set, block).map(|way| set * self.ways + way)
    }

    /// Takes a block out, if it is there. The caller writes it back if it is dirty.
    pub fn invalidate(&mut self, address: u64) -> Option<Evicted> {
        let (block, set) = self.locate(address);
        let way = self.tags.find(set, block)?;
        Some(self.empty(set, way))
    }

    /// Takes every block out; those that must be written back, set by set.
    pub fn flush(&mut self) -> Vec<Evicted> {
        let mut dirty = Vec::new();
        for set in 0..self.sets as usize {
            for way in 0..self.ways {
                if self.tags.line(set, way).is_some() {
                    dirty.push(self.empty(set, way));
                }
            }
        }
        dirty.retain(|line| line.dirty);
        dirty
    }

    /// How many lines hold this content now.
    #[must_use]
    pub fn occupancy_lines(&self, content: Content) -> u64 {
        self.occupancy_lines[content.index()]
    }

    /// How many lines hold a block, counted one by one.
    #[must_use]
    pub fn valid_lines(&self) -> u64 {
        self.tags.valid_lines()
    }

    /// How many blocks there is room for.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.sets as usize * self.ways
    }

    /// Number of sets.
    #[must_use]
    pub fn sets(&self) -> u64 {
        self.sets
    }

    /// Blocks of a set.
    #[must_use]
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// All blocks that it holds, by their addresses. Executed by tests only.
    #[must_use]
    pub fn held(&self) -> Vec<Evicted> {
        let ways =
            (0..self.sets as usize).flat_map(|set| (0..self.ways).map(move |way| (set, way)));
        let block = |(set, way)| {
            let (block, line) = self.tags.held(set, way)?;
            let address = block << self.block_bits;
            Some(Evicted { address, dirty: line.dirty, content: line.content })
        };
        let mut held: Vec<Evicted> = ways.filter_map(block).collect();
        held.sort_unstable_by_key(|block| block.address);
        held
    }

    /// First byte of the block that an address is in. Executed by tests only.
    #[must_use]
    pub fn block_of(&self, address: u64) -> u64 {
        address >> self.block_bits << self.block_bits
    }

    /// What happened so far.
    #[must_use]
    pub fn statistics(&self) -> &CacheStatistics {
        &self.statistics
    }

    /// The number of the block and its set.
    #[inline]
    fn locate(&self, address: u64) -> (u64, usize) {
        let block = address >> self.block_bits;
        let set = if self.masked { block & (self.sets - 1) } else { block % self.sets };
        (block, set as usize)
    }

    fn take_empty(&mut self, set: usize) -> usize {
        self.empty_ways[set] -= 1;
        self.empty[set * self.ways + self.empty_ways[set] as usize] as usize
    }

    /// Empties a way that holds a block.
    fn empty(&mut self, set: usize, way: usize) -> Evicted {
        let (block, line) = self.tags.remove(set, way);
        if self.recent[set].0 == block {
            self.recent[set] = (NO_BLOCK, 0);
        }
        self.policy.emptied(set, way);
        self.empty[set * self.ways + self.empty_ways[set] as usize] = way as u32;
        self.empty_ways[set] += 1;
        self.occupancy_lines[line.content.index()] -= 1;
        Evicted { address: block << self.block_bits, dirty: line.dirty, content: line.content }
    }
}
