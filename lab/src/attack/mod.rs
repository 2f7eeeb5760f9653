//! What an attacker can do to a protection unit's memory, and whether the unit notices.
//!
//! An epoch is a fresh unit, some random traffic with an oracle beside it, one strike at a random
//! point, and then reads of everything that the strike concerned. Nothing here can be reached from
//! a protected program's run: the keeper knows nothing of units.
//!
//! 1. [`memory`]: untrusted memory that remembers, for an adversary who replays;
//! 2. [`strike`]: the attacks; `tampering`: what they do to memory; `targets`: which schemes have
//!    what they are aimed at;
//! 3. [`epoch`]: traffic and a strike; `ambush`: strikes while an operation goes on; `looks`:
//!    attackers who compare what memory has of values that they know; [`verdict`]: what came of it;
//!    [`governor`]: which lines of metadata stay on chip meanwhile;
//! 4. `paging`: the same with processes, forks and swap, and strikes at the disk;
//! 5. [`promise`]: what the papers promise and admit; [`tally`]: what came of many epochs, and the
//!    letter for it;
//! 6. [`matrix`]: schemes against attacks; [`selection`]: a part of it, run on all processors.

mod ambush;
pub mod epoch;
pub mod governor;
mod looks;
pub mod matrix;
pub mod memory;
mod paging;
pub mod promise;
pub mod selection;
pub mod strike;
pub mod tally;
mod tampering;
mod targets;
pub mod unit;
pub mod verdict;
