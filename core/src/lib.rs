//! What every protection protocol of Casemate stands on: verified lines in untrusted memory.
//!
//! No I/O, no threads, no clock. Who trusts `casemate run` with a secret reads this crate and
//! `casemate-pages`, which is the protocol of the pager's pages over it. `casemate-schemes` has the
//! schemes of the papers over the same tree.
//!
//! Read it top down:
//!
//! 1. [`port`]: the operations that a protocol needs, whatever interprets it: bytes (real MACs,
//!    real violations) or cycles (ready times, occupied units); [`on_bytes`] is the first;
//! 2. [`verified_tree`]: what keeps untrusted memory honest, whatever links a line to its parent;
//!    [`geometry`] says which line is the parent of which, [`node_cache`] is what it keeps on chip;
//!    [`hash_tree`] is the tree of MACs, after the Bonsai Merkle Tree of Rogers et al., MICRO 2007,
//!    section 5.2;
//!    [`log_hash`] is the other way: hashes of what was read and written, compared from time to
//!    time (LHash, section 4.2);
//! 3. [`untrusted_memory`]: where lines lie; [`unverified`]: what was read and not yet compared;
//!    [`violation`]: what a comparison found;
//! 4. [`gpc`]: where every logical page identifier comes from (section 4.3);
//! 5. [`checks`]: which comparisons are made, so that a test can leave one out; [`random`]: seeded
//!    numbers for tests and attacks.

pub mod checks;
pub mod geometry;
pub mod gpc;
pub mod hash_tree;
#[cfg(any(test, feature = "hostile-memory"))]
pub mod hostile_memory;
pub mod key_derivation;
pub mod log_hash;
pub mod node_cache;
pub mod on_bytes;
pub mod port;
pub mod random;
pub mod untrusted_memory;
pub mod unverified;
pub mod verified_tree;
pub mod violation;

pub use gpc::{GlobalPageCounter, Lpid};
pub use untrusted_memory::UntrustedMemory;
pub use unverified::Unverified;
pub use violation::{Refusal, Violation};

/// Bytes of a block: what a processor caches, encrypts and verifies at once.
pub const BLOCK_BYTES: usize = 64;
/// A block.
pub type Block = [u8; BLOCK_BYTES];
/// Bytes of a page: what is moved, swapped and mapped at once.
pub const PAGE_BYTES: usize = 4096;
