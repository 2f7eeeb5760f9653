//! The architect's library: the published schemes that protect a processor's memory, on real bytes,
//! over the tree of [`casemate_core`].
//!
//! No I/O, no threads, no clock. The simulator interprets the same protocols in cycles.
//!
//! Read it top down:
//!
//! 1. [`catalogue`]: the schemes by name, and combinations of their parts;
//! 2. [`choice`], [`mod@nearest`]: schemes as users name them, and what is said of a wrong name;
//! 3. [`unit`](mod@unit): protection units, an encryption and an integrity composed;
//! 4. [`counter_tree`]: trees whose nodes hold counters instead of MACs;
//! 5. [`memory_line`]: what they move, encrypt and verify at once;
//! 6. [`counters`], [`primitives`], [`ecc`], [`recency`]: what they are made of.

pub mod catalogue;
pub mod choice;
pub mod counter_tree;
pub mod counters;
pub mod ecc;
pub mod memory_line;
pub mod nearest;
pub mod primitives;
pub mod recency;
pub mod unit;
