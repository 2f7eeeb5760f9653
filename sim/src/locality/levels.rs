//! The caches, and what a reference does to them.

use super::counts::Misses;
use super::{Geometry, Rules};
use crate::machine::cache::{Cache, Evicted};
use crate::machine::{Access, ConfigError, Content};
use crate::trace::Extent;

/// The first bytes of the lines that an extent is in.
fn lines(of: Extent, line_bytes: u64) -> impl Iterator<Item = u64> + Clone {
    let end = of.address.saturating_add(of.size_bytes.saturating_sub(1));
    (of.address / line_bytes..=end / line_bytes).map(move |line| line * line_bytes)
}

struct Core {
    instruction: Cache,
    data: Cache,
    /// The line that was fetched from last. To fetch from it again changes nothing in a cache.
    fetched: Option<u64>,
}

impl Core {
    /// The cache that data, or instructions, go through.
    fn first(&mut self, is_data: bool) -> &mut Cache {
        if is_data { &mut self.data } else { &mut self.instruction }
    }
}

/// First levels of all cores, and the last one.
pub(super) struct Levels {
    rules: Rules,
    cores: Vec<Core>,
    last: Cache,
    instruction_line_bytes: u64,
    data_line_bytes: u64,
    write_backs: u64,
}

impl Levels {
    pub(super) fn new(geometry: &Geometry, rules: Rules) -> Result<Self, ConfigError> {
        let core = |_| -> Result<Core, ConfigError> {
            let instruction = Cache::new(&geometry.instruction)?;
            Ok(Core { instruction, data: Cache::new(&geometry.data)?, fetched: None })
        };
        // A line of the first level is one of the last, or a part of it.
        let least = geometry.instruction.block_bytes.max(geometry.data.block_bytes);
        let value = geometry.last.block_bytes;
        if rules == Rules::WriteBack && value < least {
            return Err(ConfigError::TooSmall { parameter: "l2.block_bytes", value, least });
        }
        Ok(Levels {
            rules,
            cores: (0..geometry.cores()?).map(core).collect::<Result<_, _>>()?,
            last: Cache::new(&geometry.last)?,
            instruction_line_bytes: geometry.instruction.block_bytes,
            data_line_bytes: geometry.data.block_bytes,
            write_backs: 0,
        })
    }

    pub(super) fn cores(&self) -> usize {
        self.cores.len()
    }

    pub(super) fn write_backs(&self) -> u64 {
        self.write_backs
    }

    pub(super) fn clear_write_backs(&mut self) {
        self.write_backs = 0;
    }

    /// Fetches an instruction.
    pub(super) fn fetch(&mut self, core: usize, extent: Extent) -> Misses {
        let line = |address: u64| address / self.instruction_line_bytes;
        let (first, end) = (line(extent.address), line(extent.address + (extent.size_bytes - 1)));
        if first == end && self.cores[core].fetched == Some(first) {
            return (0, 0);
        }
        self.cores[core].fetched = Some(end);
        self.go(core, Access::Read, extent, self.instruction_line_bytes, false)
    }

    /// Loads or stores.
    pub(super) fn refer(&mut self, core: usize, access: Access, extent: Extent) -> Misses {
        self.go(core, access, extent, self.data_line_bytes, true)
    }

    fn go(
        &mut self,
        core: usize,
        access: Access,
        extent: Extent,
        line_bytes: u64,
        is_data: bool,
    ) -> Misses {
        match self.rules {
            Rules::Cachegrind => {
                let size_bytes = extent.size_bytes.min(line_bytes);
                self.as_one(core, Extent { size_bytes, ..extent }, line_bytes, is_data)
            }
            Rules::WriteBack => lines(extent, line_bytes).fold((0, 0), |(first, last), line| {
                let missed = self.line_by_line(core, access, line, is_data);
                (first + missed.0, last + missed.1)
            }),
        }
    }

    /// Cachegrind's rules. If any line misses in the first level, all are looked up in the last.
    fn as_one(&mut self, core: usize, extent: Extent, line_bytes: u64, is_data: bool) -> Misses {
        let first = self.cores[core].first(is_data);
        if lines(extent, line_bytes).filter(|line| !touch(first, *line)).count() == 0 {
            return (0, 0);
        }
        let missed = lines(extent, line_bytes).filter(|line| !touch(&mut self.last, *line)).count();
        (1, u64::from(missed > 0))
    }

    /// The simulated machine's rules.
    fn line_by_line(&mut self, core: usize, access: Access, line: u64, is_data: bool) -> Misses {
        let hit = self.cores[core].first(is_data).access(line, access, Content::Data);
        if is_data && self.cores.len() > 1 && (access == Access::Write || !hit) {
            self.tell_others(core, access, line);
        }
        if hit {
            return (0, 0);
        }
        let last_hit = self.last.access(line, Access::Read, Content::Data);
        if !last_hit {
            self.fill_last(line, false);
        }
        let dirty = access == Access::Write;
        let evicted = self.cores[core].first(is_data).fill(line, dirty, Content::Data);
        if let Some(Evicted { address, dirty: true, .. }) = evicted {
            self.fill_last(address, true);
        }
        (1, u64::from(!last_hit))
    }

    /// Other cores lose a line that is stored to, and share one that is loaded.
    fn tell_others(&mut self, core: usize, access: Access, line: u64) {
        for other in (0..self.cores.len()).filter(|other| *other != core) {
            let cache = &mut self.cores[other].data;
            let Some(Evicted { dirty, .. }) = cache.invalidate(line) else { continue };
            if access == Access::Read {
                // Into the way that was emptied: nothing is pushed out.
                cache.fill(line, false, Content::Data);
            }
            if dirty {
                self.fill_last(line, true);
            }
        }
    }

    fn fill_last(&mut self, line: u64, dirty: bool) {
        let evicted = self.last.fill(line, dirty, Content::Data);
        self.write_backs += u64::from(evicted.is_some_and(|evicted| evicted.dirty));
    }
}

/// Looks a line up, and brings it in; whether it was there.
fn touch(cache: &mut Cache, line: u64) -> bool {
    let hit = cache.access(line, Access::Read, Content::Data);
    if !hit {
        cache.fill(line, false, Content::Data);
    }
    hit
}
