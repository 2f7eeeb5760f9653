//! Which lines of metadata stay on chip: in caches of their own, or in the last level beside data.
//!
//! The engine keeps the values of all lines that are on chip and says which are used; here is
//! decided which have to go. A line that has to go is thrown out between two operations, never
//! within one.
//!
//! The engine names lines by their places, and so do the caches here; addresses only choose a
//! line's set. The last level is the machine's, which knows addresses alone.

use std::collections::VecDeque;

use casemate_core::port::Use;
use casemate_schemes::unit::place::{Place, Region};

use super::config::{HeldIn, ProtectionConfig};
use super::statistics::MetadataLookups;
use crate::machine::Content;
use crate::machine::backing::MetadataUse;
use crate::machine::cache::{Cache, Evicted};
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
    None,
}

/// A cache, and which place is in each of its lines.
struct Lines {
    cache: Cache,
    places: Vec<Place>,
}

/// A line that a cache had no room for.
struct Victim {
    /// Of which cache.
    cache: usize,
    address: u64,
    place: Place,
}

/// The caches.
pub struct OnChip {
    caches: Vec<Lines>,
    holders: [Holder; 3],
    latency_cycles: [u64; 3],
    lookups: [MetadataLookups; 3],
    /// What caches of their own threw out.
    victims: VecDeque<Victim>,
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
        let mut holders = [Holder::None; 3];
        for (number, kind) in kinds.iter().enumerate() {
            holders[number] = match kind.held_in {
                HeldIn::Own => {
                    let cache = kind.build(config.line_bytes)?;
                    let places = vec![Place::new(Region::Data, 0); cache.lines()];
                    caches.push(Lines { cache, places });
                    Holder::Cache(caches.len() - 1)
                }
                HeldIn::WithCounters => holders[0],
                HeldIn::LastLevel => Holder::LastLevel,
                HeldIn::Nowhere => Holder::None,
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
        self.holders[kind as usize] != Holder::None
    }

    /// Counts of a kind.
    pub(super) fn lookups(&self, kind: Kind) -> MetadataLookups {
        self.lookups[kind as usize]
    }

    /// A line is used, which lies at an address.
    #[inline]
    pub(super) fn used(&mut self, place: Place, address: u64, how: Use) {
        let kind = Kind::of(place.region);
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
                let Lines { cache, places } = &mut self.caches[number];
                let (line, evicted) = cache.fill_line(address, dirty, Content::Metadata);
                let before = std::mem::replace(&mut places[line], place);
                if let Some(evicted) = evicted {
                    let address = evicted.address;
                    self.victims.push_back(Victim { cache: number, address, place: before });
                }
            }
            Holder::LastLevel => self.tell(address, how),
            Holder::None => {}
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
            Holder::Cache(number) => self.caches[number].cache.contains(address),
            Holder::LastLevel => self.in_last_level.contains_key(&address),
            Holder::None => false,
        }
    }

    /// What each cache of its own holds. Executed by tests only.
    pub(super) fn held(&self) -> Vec<Vec<Evicted>> {
        self.caches.iter().map(|lines| lines.cache.held()).collect()
    }

    /// The next line that a cache of its own threw out.
    #[inline]
    pub(super) fn next_victim(&mut self) -> Option<Place> {
        loop {
            let Victim { cache, address, place } = self.victims.pop_front()?;
            if !self.caches[cache].cache.contains(address) {
                return Some(place);
            }
        }
    }

    /// A line of a kind is thrown out.
    pub(super) fn thrown_out(&mut self, kind: Kind) {
        self.lookups[kind as usize].evictions += 1;
    }

    /// The last level throws a line out.
    pub(super) fn left_last_level(&mut self, address: u64) {
        self.in_last_level.remove(&address);
    }

    /// What the last level has not been told yet.
    pub(super) fn take_uses(&mut self, out: &mut Vec<MetadataUse>) {
        out.append(&mut self.uses);
    }
}
