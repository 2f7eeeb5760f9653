//! Which lines of metadata stay on chip: in caches of their own, or in the last level beside data.
//!
//! The engine keeps the values of all lines that are on chip and says which are used; here is
//! decided which have to go. A line that has to go is thrown out between two operations, never
//! within one.

use std::collections::VecDeque;

use casemate_core::port::Use;
use casemate_schemes::unit::place::Region;

use super::config::{HeldIn, ProtectionConfig};
use super::statistics::MetadataLookups;
use crate::machine::Content;
use crate::machine::backing::MetadataUse;
use crate::machine::cache::Cache;
use crate::machine::error::ConfigError;
use crate::machine::numbers::NumberMap;

/// Kinds of metadata that may be on chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines of counters.
    Counters,
    /// Tree nodes.
    Nodes,
    /// Blocks of MACs.
    Macs,
}

impl Kind {
    /// What a region's lines are.
    #[must_use]
    pub fn of(region: Region) -> Kind {
        match region {
            Region::Nodes(_) => Kind::Nodes,
            Region::Macs => Kind::Macs,
            _ => Kind::Counters,
        }
    }
}

/// What holds a kind on chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Cache(usize),
    LastLevel,
    Nobody,
}

/// The caches.
pub struct OnChip {
    caches: Vec<Cache>,
    holders: [Holder; 3],
    latency_cycles: [u64; 3],
    lookups: [MetadataLookups; 3],
    /// What caches of their own threw out.
    victims: VecDeque<(usize, u64)>,
    /// What the last level has to be told.
    uses: Vec<MetadataUse>,
    /// What is in the last level, as far as it was told.
    in_last_level: NumberMap<()>,
}

impl OnChip {
    /// Empty caches.
    ///
    /// # Errors
    /// There can be no such cache.
    pub fn new(config: &ProtectionConfig) -> Result<OnChip, ConfigError> {
        let mut caches = Vec::new();
        let kinds = [config.counters, config.nodes, config.macs];
        let mut holders = [Holder::Nobody; 3];
        for (number, kind) in kinds.iter().enumerate() {
            holders[number] = match kind.held_in {
                HeldIn::Own => {
                    caches.push(kind.build()?);
                    Holder::Cache(caches.len() - 1)
                }
                HeldIn::WithCounters => holders[0],
                HeldIn::LastLevel => Holder::LastLevel,
                HeldIn::Nowhere => Holder::Nobody,
            };
        }
        Ok(OnChip {
            caches,
            holders,
            latency_cycles: kinds.map(|kind| kind.latency_cycles),
            lookups: [MetadataLookups::default(); 3],
            victims: VecDeque::new(),
            uses: Vec::new(),
            in_last_level: NumberMap::default(),
        })
    }

    /// How long a look-up takes.
    #[inline]
    pub(super) fn latency_cycles(&self, kind: Kind) -> u64 {
        self.latency_cycles[kind as usize]
    }

    /// Whether lines of a kind can be on chip at all.
    pub(super) fn is_cached(&self, kind: Kind) -> bool {
        self.holders[kind as usize] != Holder::Nobody
    }

    /// Counts of a kind.
    pub(super) fn lookups(&self, kind: Kind) -> MetadataLookups {
        self.lookups[kind as usize]
    }

    /// A line is used.
    #[inline]
    pub(super) fn used(&mut self, kind: Kind, address: u64, how: Use) {
        let lookups = &mut self.lookups[kind as usize];
        match how {
            Use::Hit => lookups.hits += 1,
            Use::BroughtIn => lookups.misses += 1,
            Use::Amended => lookups.amended += 1,
        }
        let dirty = how == Use::Amended;
        match self.holders[kind as usize] {
            Holder::Cache(number) => {
                // A line that had to go within this operation comes back if it is used again.
                let evicted = self.caches[number].fill(address, dirty, Content::Metadata);
                self.victims.extend(evicted.map(|evicted| (number, evicted.address)));
            }
            Holder::LastLevel => self.tell(address, how),
            Holder::Nobody => {}
        }
    }

    fn tell(&mut self, address: u64, how: Use) {
        let (dirty, brought_in) = (how == Use::Amended, how == Use::BroughtIn);
        if brought_in {
            self.in_last_level.insert(address, ());
        }
        match self.uses.last_mut() {
            Some(last) if last.address == address => {
                last.dirty |= dirty;
                last.brought_in |= brought_in;
            }
            _ => self.uses.push(MetadataUse { address, dirty, brought_in }),
        }
    }

    /// Whether a line is on chip by the caches' choice.
    pub(super) fn holds(&self, kind: Kind, address: u64) -> bool {
        match self.holders[kind as usize] {
            Holder::Cache(number) => self.caches[number].contains(address),
            Holder::LastLevel => self.in_last_level.contains_key(&address),
            Holder::Nobody => false,
        }
    }

    /// The next line that a cache of its own threw out.
    #[inline]
    pub(super) fn next_victim(&mut self) -> Option<u64> {
        loop {
            let (number, address) = self.victims.pop_front()?;
            if !self.caches[number].contains(address) {
                return Some(address);
            }
        }
    }

    /// A line is thrown out.
    pub(super) fn thrown_out(&mut self, kind: Kind, address: u64) {
        self.lookups[kind as usize].evictions += 1;
        if self.holders[kind as usize] == Holder::LastLevel {
            self.in_last_level.remove(&address);
        }
    }

    /// What the last level has not been told yet.
    pub(super) fn take_uses(&mut self, out: &mut Vec<MetadataUse>) {
        out.append(&mut self.uses);
    }
}
