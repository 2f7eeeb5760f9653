//! A first-level cache: which lines it has, and from when.
//!
//! Look-ups are in program order, also for instructions that begin out of order, and a line gets
//! its place when it misses. Hits therefore do not depend on latencies, and equal those of a
//! simulation of the cache alone.

use super::window::PENDING;
use crate::machine::cache::{Cache, Evicted};
use crate::machine::error::ConfigError;
use crate::machine::hierarchy::CacheLevelConfig;
use crate::machine::{Access, Content, Cycle};

/// In place of a cycle: the line is on its way, with the number of its flight.
const ON_ITS_WAY: u64 = 1 << 63;

/// The cache.
#[derive(Clone, Debug)]
pub(super) struct L1 {
    cache: Cache,
    /// For each line, the cycle from which it is present.
    ready: Box<[u64]>,
    pub(super) latency_cycles: u64,
    pub(super) block_bytes: u64,
}

/// What a look-up found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// It is there from this cycle on.
    From(Cycle),
    /// It is on its way.
    OnItsWay(u32),
    /// It is not there.
    Nothing,
}

impl L1 {
    pub(super) fn new(config: &CacheLevelConfig) -> Result<L1, ConfigError> {
        let cache = Cache::new(&config.cache())?;
        Ok(L1 {
            ready: vec![0; cache.lines()].into_boxed_slice(),
            cache,
            latency_cycles: config.latency_cycles,
            block_bytes: config.block_bytes,
        })
    }

    /// Looks a line up for a load or a fetch.
    #[inline]
    pub(super) fn read(&mut self, address: u64) -> Found {
        match self.cache.access_line(address, Access::Read, Content::Data) {
            Some(line) => self.found(line),
            None => Found::Nothing,
        }
    }

    /// Looks a line up for a store; also whether it was dirty before.
    #[inline]
    pub(super) fn write(&mut self, address: u64, ask_dirty: bool) -> (Found, bool) {
        let was_dirty = ask_dirty && self.is_dirty(address);
        match self.cache.access_line(address, Access::Write, Content::Data) {
            Some(line) => (self.found(line), was_dirty),
            None => (Found::Nothing, false),
        }
    }

    fn is_dirty(&self, address: u64) -> bool {
        self.cache.line_of(address).is_some_and(|line| self.cache.is_dirty(line))
    }

    #[inline]
    fn found(&self, line: usize) -> Found {
        let ready = self.ready[line];
        if ready & ON_ITS_WAY == 0 {
            Found::From(ready)
        } else {
            Found::OnItsWay((ready & !ON_ITS_WAY) as u32)
        }
    }

    /// Gives a missed line its place. Returns the place, the evicted line, and that line's flight
    /// if it was still on its way.
    pub(super) fn take_place(
        &mut self,
        address: u64,
        dirty: bool,
        flight: u32,
    ) -> (u32, Option<Evicted>, Option<u32>) {
        let (line, evicted) = self.cache.fill_line(address, dirty, Content::Data);
        let was = std::mem::replace(&mut self.ready[line], ON_ITS_WAY | u64::from(flight));
        let flying = (evicted.is_some() && was & ON_ITS_WAY != 0).then_some(was as u32);
        (line as u32, evicted, flying)
    }

    /// Puts a missed line in that is there at once. Returns the evicted line, which was there too.
    pub(super) fn put(&mut self, address: u64, dirty: bool) -> Option<Evicted> {
        let (line, evicted) = self.cache.fill_line(address, dirty, Content::Data);
        self.ready[line] = 0;
        evicted
    }

    /// A line came.
    pub(super) fn came(&mut self, line: u32, at: Cycle) {
        debug_assert_ne!(at, PENDING);
        self.ready[line as usize] = at;
    }

    /// The flight of a line that is on its way.
    pub(super) fn on_its_way(&self, address: u64) -> Option<u32> {
        match self.found(self.cache.line_of(address)?) {
            Found::OnItsWay(flight) => Some(flight),
            _ => None,
        }
    }

    /// Takes a line out, if it has a place; whether it was dirty.
    pub(super) fn take_out(&mut self, address: u64) -> Option<bool> {
        let line = self.cache.line_of(address)?;
        self.ready[line] = 0;
        self.cache.invalidate(address).map(|evicted| evicted.dirty)
    }

    /// Another core loads a line: it is clean from now on. Whether it was dirty. One that has not
    /// come yet stays as it is: it will come after that load.
    pub(super) fn share(&mut self, address: u64) -> bool {
        let there = self.cache.line_of(address).map(|line| self.found(line));
        matches!(there, Some(Found::From(_))) && self.cache.make_clean(address)
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }
}
