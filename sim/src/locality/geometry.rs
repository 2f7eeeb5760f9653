//! Which caches, under which rules.

use crate::machine::ConfigError;
use crate::machine::cache::{CacheConfig, Replacement, Ways};

/// First-level caches of each core, and one last level below all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Instructions, of each core.
    pub instruction: CacheConfig,
    /// Data, of each core.
    pub data: CacheConfig,
    /// Both, of all cores.
    pub last: CacheConfig,
    /// How many cores; thread *t* runs on core *t* modulo that.
    pub cores: usize,
}

/// What a reference does to caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Write-back and write-allocate at both levels, as the simulated machine. A reference that
    /// crosses lines is one lookup of each. Stores take a line out of other cores' caches; loads
    /// leave it there, clean.
    WriteBack,
    /// Those of Valgrind's cachegrind: a reference that crosses lines is one lookup and at most one
    /// miss; an instruction that loads and stores one place is a load; what exceeds a line is cut
    /// to one; nothing is ever written back.
    Cachegrind,
}

/// The most cores.
const MAX_CORES: u64 = 64;

impl Geometry {
    /// 32 KiB, 8 ways, for instructions and for data, and 1 MiB, 8 ways, below: lines of 64 bytes,
    /// LRU.
    pub const COMMON: Geometry = Geometry {
        instruction: lru(32 << 10, 8, 64),
        data: lru(32 << 10, 8, 64),
        last: lru(1 << 20, 8, 64),
        cores: 1,
    };

    /// Checks the number of cores.
    pub(super) fn cores(&self) -> Result<usize, ConfigError> {
        crate::machine::error::within("cores", self.cores as u64, 1, MAX_CORES)?;
        Ok(self.cores)
    }
}

/// A cache with LRU.
#[must_use]
pub const fn lru(size_bytes: u64, ways: u64, block_bytes: u64) -> CacheConfig {
    CacheConfig { size_bytes, ways: Ways::Set(ways), block_bytes, replacement: Replacement::Lru }
}
