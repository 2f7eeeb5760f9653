//! Replacement policies: which line of a full set goes.
//!
//! Each is one short file with four methods; a new one is such a file, a name in [`Replacement`]
//! and an arm in `State`. The tests hold each to a naive model of its own.

mod fifo;
mod lru;
mod random;
mod tree_plru;

use std::str::FromStr;

use crate::machine::error::{ConfigError, power_of_two};

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The line that was not used for the longest time.
    Lru,
    /// The line that came first, however often it was used.
    Fifo,
    /// Any line, by a generator with this seed.
    Random {
        /// Where the generator starts.
        seed: u64,
    },
    /// The line that a tree of bits, each pointing away from the last use, leads to. Ways must be
    /// a power of two.
    TreePlru,
}

impl FromStr for Replacement {
    type Err = ConfigError;

    /// `lru`, `fifo`, `random` (seed 0), `random:SEED` or `tree-plru`.
    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let seed = name.strip_prefix("random:").and_then(|seed| seed.parse().ok());
        match (name, seed) {
            ("lru", _) => Ok(Replacement::Lru),
            ("fifo", _) => Ok(Replacement::Fifo),
            ("random", _) => Ok(Replacement::Random { seed: 0 }),
            ("tree-plru", _) => Ok(Replacement::TreePlru),
            (_, Some(seed)) => Ok(Replacement::Random { seed }),
            _ => Err(ConfigError::Unknown {
                parameter: "replacement",
                value: name.to_owned(),
                known: "lru, fifo, random, random:SEED, tree-plru",
            }),
        }
    }
}

/// What a policy does at the events of a set. A way is filled only while it is empty, and a
/// victim is asked for only while none is.
trait Policy {
    /// An empty way received a block.
    fn filled(&mut self, set: usize, way: usize);
    /// A block was hit.
    fn hit(&mut self, set: usize, way: usize);
    /// A way became empty.
    fn emptied(&mut self, set: usize, way: usize);
    /// Which way goes.
    fn victim(&mut self, set: usize) -> usize;
}

/// A policy at work.
#[derive(Clone, Debug)]
pub(super) enum State {
    Lru(lru::Lru),
    Fifo(fifo::Fifo),
    Random(random::Random),
    TreePlru(tree_plru::TreePlru),
}

impl State {
    pub(super) fn new(policy: Replacement, sets: usize, ways: usize) -> Result<Self, ConfigError> {
        Ok(match policy {
            Replacement::Lru => State::Lru(lru::Lru::new(sets, ways)),
            Replacement::Fifo => State::Fifo(fifo::Fifo::new(sets, ways)),
            Replacement::Random { seed } => State::Random(random::Random::new(ways, seed)),
            Replacement::TreePlru => {
                power_of_two("ways", ways as u64)?;
                State::TreePlru(tree_plru::TreePlru::new(sets, ways))
            }
        })
    }

    fn policy(&mut self) -> &mut dyn Policy {
        match self {
            State::Lru(policy) => policy,
            State::Fifo(policy) => policy,
            State::Random(policy) => policy,
            State::TreePlru(policy) => policy,
        }
    }

    pub(super) fn filled(&mut self, set: usize, way: usize) {
        self.policy().filled(set, way);
    }

    pub(super) fn hit(&mut self, set: usize, way: usize) {
        self.policy().hit(set, way);
    }

    pub(super) fn emptied(&mut self, set: usize, way: usize) {
        self.policy().emptied(set, way);
    }

    pub(super) fn victim(&mut self, set: usize) -> usize {
        self.policy().victim(set)
    }
}
