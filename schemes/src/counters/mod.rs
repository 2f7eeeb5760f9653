//! Counter organisations: how the counters of several blocks share one 64-byte line.
//!
//! A block's counter makes its seed unique in time. The organisations differ in how many counters
//! they put into a line, and in what happens when a small one overflows:
//!
//! 1. [`monolithic`]: whole counters, nothing shared;
//! 2. [`split`]: a shared major and small minors; overflow takes the next major;
//! 3. [`aise`]: the same with a logical page identifier for a major (AISE/BMT 4.3, Figure 3);
//! 4. [`delta`]: a shared reference and small differences to it (Delta/ECC 4);
//! 5. [`dual_length`]: the same with extra bits for the group that needs them (Delta/ECC 4.3);
//! 6. [`sgx`]: eight whole counters and their MAC, a node of SGX's tree;
//! 7. [`vault`]: VAULT's three split nodes of different arity, with their MAC;
//! 8. [`morphable`]: Morphable Counters, 128 in a line, with their MAC.
//!
//! This file is their catalogue: [`Organisation::ALL`] lists them, and everything that goes over
//! all of them (names on the command line, tests, tables) asks it.
//!
//! Bit i of a line is bit i mod 8 of byte i / 8; fields are little-endian. SPEC.md lists every
//! layout. Lines are read from untrusted memory before they are verified, so reading is total: any
//! 64 bytes give some counter and nothing panics. A counter that cannot grow any more is
//! [`Exhausted`], never wrapped.

pub mod aise;
mod bits;
pub mod delta;
pub mod dual_length;
pub mod monolithic;
pub mod morphable;
mod organisation;
pub mod sgx;
pub mod split;
pub mod vault;

pub use organisation::{
    CounterBytes, CounterLayout, Events, Exhausted, FreshLpid, Increment, LARGEST_56, LINE_BYTES,
    Organisation, zeros,
};

impl Organisation {
    /// All organisations.
    pub const ALL: [Self; 11] = [
        Self::MONOLITHIC_56,
        Self::MONOLITHIC_64,
        Self::SPLIT,
        Self::AISE,
        Self::DELTA,
        Self::DUAL_LENGTH,
        Self::SGX,
        Self::VAULT_LEAF,
        Self::VAULT_32,
        Self::VAULT_16,
        Self::MORPHABLE,
    ];
}
