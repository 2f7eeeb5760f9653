//! Every loaded value is held against what the program's own processor saw.
//!
//! A trace with values says what each load of a real program returned. Here the same references go
//! through a cache whose contents live below it under a protection unit, encrypted and verified:
//! what a load finds on chip must be what the trace says, byte for byte, however often the block
//! was thrown out and fetched again in between. Timing has no part in this; the blocks that a unit
//! is asked for are those of the cache.
//!
//! Executed by tests and the example `lockstep` only.
//!
//! In reading order:
//!
//! - [`mod@unit`]: what is asked of a protection unit that keeps the bytes;
//! - [`pages`]: what is on chip, and which bytes are known;
//! - [`shadow`]: loads, stores and the kernel's changes on chip; blocks that come and go through
//!   the unit;
//! - [`machine`]: a cache above it, which a trace drives;
//! - [`error`]: what can come out.

pub mod error;
pub mod machine;
pub mod pages;
pub mod shadow;
pub mod unit;

pub use error::LockstepError;
pub use machine::{Lockstep, LockstepConfig};
pub use shadow::{Compared, Shadow};
pub use unit::BlockUnit;
