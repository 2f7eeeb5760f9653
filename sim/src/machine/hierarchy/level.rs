//! A level below the first: a cache and its misses.

use std::collections::VecDeque;

use super::config::CacheLevelConfig;
use super::prefetch::{PrefetchConfig, Prefetcher, Prefetching};
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
    pub(super) prefetching: Option<Box<Prefetching>>,
}

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) is_there: bool,
    /// Whether it is there since it was prefetched, and this is its first use.
    pub(super) is_first_use: bool,
}

impl Level {
    pub(super) fn new(
        config: &CacheLevelConfig,
        prefetch: &PrefetchConfig,
    ) -> Result<Level, ConfigError> {
        let cache = Cache::new(&config.cache())?;
        let prefetcher = Prefetcher::new(prefetch, config.block_bytes);
        let prefetching = prefetcher.map(|one| Box::new(Prefetching::new(one, cache.lines())));
        Ok(Level {
            cache,
            prefetching,
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

    /// Looks a line up for a core.
    #[inline]
    pub(super) fn look_up(&mut self, line: u64) -> Found {
        if self.prefetching.is_some() {
            return self.look_up_marked(line);
        }
        let is_there = self.cache.access(line, Access::Read, Content::Data);
        Found { is_there, is_first_use: false }
    }

    #[cold]
    fn look_up_marked(&mut self, line: u64) -> Found {
        let found = self.cache.access_line(line, Access::Read, Content::Data);
        let is_first_use = match (found, &mut self.prefetching) {
            (Some(cache_line), Some(prefetching)) => prefetching.uses(cache_line),
            _ => false,
        };
        Found { is_there: found.is_some(), is_first_use }
    }

    /// Puts a line in, which was prefetched or not. Returns the line that had to go for it.
    #[inline]
    pub(super) fn fill(
        &mut self,
        line: u64,
        dirty: bool,
        content: Content,
        is_prefetched: bool,
    ) -> Option<Evicted> {
        if self.prefetching.is_some() {
            return self.fill_marked(line, dirty, content, is_prefetched);
        }
        self.cache.fill(line, dirty, content)
    }

    #[cold]
    fn fill_marked(
        &mut self,
        line: u64,
        dirty: bool,
        content: Content,
        is_prefetched: bool,
    ) -> Option<Evicted> {
        let was_there = self.cache.contains(line);
        let (cache_line, evicted) = self.cache.fill_line(line, dirty, content);
        if let Some(prefetching) = self.prefetching.as_mut().filter(|_| !was_there) {
            prefetching.fills(cache_line, is_prefetched);
        }
        evicted
    }

    /// Takes a changed line from above. Returns the line that had to go for it.
    pub(super) fn take(&mut self, line: u64) -> Option<Evicted> {
        if self.cache.access(line, Access::Write, Content::Data) {
            return None;
        }
        self.fill(line, true, Content::Data, false)
    }

    /// Whether a line is neither there nor on its way.
    pub(super) fn lacks(&self, line: u64) -> bool {
        !self.cache.contains(line) && !self.mshrs.is_pending(line)
    }

    /// Whether a line that comes was prefetched and no miss waits for it.
    pub(super) fn comes_unneeded(&self, line: u64) -> bool {
        self.prefetching.as_ref().is_some_and(|prefetching| prefetching.brings(line))
    }

    /// A request has to wait for a line that is on its way.
    pub(super) fn needs(&mut self, line: u64) {
        if let Some(prefetching) = &mut self.prefetching {
            prefetching.needs(line);
        }
    }

    /// Whether it has a miss register for a prefetch: no miss waits for one, and one is left.
    pub(super) fn has_room_for_prefetch(&self) -> bool {
        self.refused.is_empty() && self.mshrs.free_registers() > 1
    }
}
