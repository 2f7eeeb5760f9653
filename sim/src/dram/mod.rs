//! The DDR model alone, under timed requests: `casemate dram`, and how its answers compare with
//! those of another simulator.
//!
//! In reading order:
//!
//! - [`stream`]: requests with the clock at which each is sent, from a file;
//! - [`streams`]: eight synthetic ones, the same as those that the reference was given;
//! - [`preset`]: which memory;
//! - [`replay`]: a stream through a memory, and what came of it;
//! - [`per_bank`]: a stream through our timing under DRAMsim3's policy;
//! - [`energy`]: the energy of the commands that were issued, from a datasheet's currents;
//! - [`sequence`]: what the commands show of the policy that chose them;
//! - [`mod@reference`]: what DRAMsim3 answered to the same streams;
//! - [`accuracy`]: both beside each other, which `docs/accuracy.md` explains;
//! - [`exchange`]: which of DRAMsim3's rules makes which difference.

pub mod accuracy;
pub mod energy;
pub mod exchange;
pub mod per_bank;
pub mod preset;
pub mod reference;
pub mod replay;
pub mod sequence;
pub mod stream;
pub mod streams;
