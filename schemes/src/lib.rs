//! The architect's library: the published schemes that protect a processor's memory, on real bytes,
//! over the tree of [`casemate_core`].
//!
//! No I/O, no threads, no clock. The simulator interprets the same protocols in cycles.
//!
//! Read it top down:
//!
//! 1. [`catalogue`]: the schemes by name, and combinations of their parts;
//! 2. [`unit`](mod@unit): protection units, an encryption and an integrity composed;
//! 3. [`counter_tree`]: trees whose nodes hold counters instead of MACs;
//! 4. [`counters`], [`primitives`], [`ecc`], [`recency`]: what they are made of.

pub mod catalogue;
pub mod counter_tree;
pub mod counters;
pub mod ecc;
pub mod primitives;
pub mod recency;
pub mod unit;
