//! A level below the first: a cache and its misses.

use std::collections::VecDeque;

use super::config::CacheLevelConfig;
use crate::machine::cache::{Cache, Evicted, Mshrs};
use crate::machine::error::ConfigError;
use crate::machine::{Access, Content};

/// A flight of a core that waits for a line of this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) core: u32,
    pub(super) flight: u32,
}

/// The level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) cache: Cache,
    pub(super) latency_cycles: u64,
    pub(super) block_bytes: u64,
    pub(super) mshrs: Mshrs<Waiter>,
    /// Misses without a miss register, oldest first.
    pub(super) refused: VecDeque<Waiter>,
}

impl Level {
    pub(super) fn new(config: &CacheLevelConfig) -> Result<Level, ConfigError> {
        Ok(Level {
            cache: Cache::new(&config.cache())?,
            latency_cycles: config.latency_cycles,
            block_bytes: config.block_bytes,
            mshrs: Mshrs::new(
                config.mshr_registers as usize,
                config.mshr_waiters_per_register as usize,
            )?,
            refused: VecDeque::new(),
        })
    }

    /// The line that an address is in.
    #[inline]
    pub(super) fn line(&self, frame_address: u64) -> u64 {
        frame_address & !(self.block_bytes - 1)
    }

    /// Takes a changed line from above. Returns the line that had to go for it.
    pub(super) fn take(&mut self, line: u64) -> Option<Evicted> {
        if self.cache.access(line, Access::Write, Content::Data) {
            return None;
        }
        self.cache.fill(line, true, Content::Data)
    }
}
