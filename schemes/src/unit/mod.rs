//! The protection unit of a secure processor: what sits between its last-level cache and a memory
//! that an attacker may read and change.
//!
//! The unit is asked for 64-byte blocks: [`ProtectionUnit::read`] when the cache misses,
//! [`ProtectionUnit::write`] when it writes a dirty block back. It is put together from an
//! [encryption] and an [integrity] scheme, which meet in one place: a block's MAC binds whatever
//! its encryption says makes it fresh (a [`Binding`](port::Binding)).
//!
//! Read it in this order:
//!
//! 1. [`place`]: a block's names, and where in untrusted memory things lie;
//! 2. [`port`]: the operations that a unit needs; [`bytes`] answers with real ciphertext and real
//!    MACs;
//! 3. [`seed`]: what makes a pad unique: the addresses, counters and identifiers of the papers;
//! 4. [`encryption`]: none, direct, counter mode, one-time pad with a Sequence Number Cache;
//! 5. [`integrity`]: none, addressed MAC, Merkle tree, Bonsai Merkle tree, trees of counters, log
//!    hashes;
//! 6. [`page_move`]: how a page leaves memory as it is, and comes back elsewhere;
//! 7. [`compartments`]: plaintext on chip, tagged with its compartment;
//! 8. [`crate::ecc`]: the MAC in the ECC bits, a placement of data MACs.

pub mod anatomy;
pub mod associative;
pub mod bytes;
pub mod compartments;
pub mod encryption;
pub mod extents;
pub mod integrity;
pub mod log_port;
pub mod memory;
pub mod metadata_cache;
pub mod node_layout;
pub mod page_move;
pub mod page_table;
pub mod place;
pub mod port;
pub mod protection_unit;
mod reboot;
pub mod scheme;
mod scrub;
pub mod seed;
pub mod time_stamps;

pub use casemate_core::{BLOCK_BYTES, Block};
pub use place::{BlockAddress, PageAddress};
pub use protection_unit::ProtectionUnit;
pub use scheme::Scheme;

/// Blocks of a 4 KiB page.
pub const PAGE_BLOCKS: u64 = (casemate_core::PAGE_BYTES / BLOCK_BYTES) as u64;
