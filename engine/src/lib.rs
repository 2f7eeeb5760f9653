//! Protection protocols, written once and interpreted.
//!
//! This crate holds protocols, cryptography and verified data structures. It performs no I/O,
//! starts no threads and reads no clock.
//!
//! It has two homes for one set of protocols: the pager's pages, and the protection units of processors.
//!
//! Read it top down:
//!
//! 1. [`port`]: what a protocol asks of the world, and the two interpretations of it,
//!    [`bytes`] (real MACs, real violations) and [`cycles`] (ready times and occupied units);
//! 2. [`page_protocol`]: a page in and a page out, the whole protocol in two functions;
//! 3. [`page_directory`]: which page lies where under which LPID and tag, kept in untrusted memory;
//! 4. [`hash_tree`]: what keeps that memory honest, after the Bonsai Merkle Tree of
//!    Rogers et al., MICRO 2007, section 5.2;
//! 5. [`page_cipher`], [`gpc`], [`keys`]: address-independent seeds (section 4.3) and AES-GCM;
//! 6. [`unit`](mod@unit): the schemes of the hardware papers, over the same tree;
//! 7. [`virtual_memory`]: processes, pages and swap above a unit, and what its seeds allow;
//! 8. [`counters`], [`primitives`], [`ecc`], [`recency`]: what they are made of;
//! 9. [`attack`], [`storage`]: what they detect, and what they cost;
//! 10. [`processor`], [`distribution`]: a processor's own keys, and programs that only it can read;
//! 11. [`certified`]: programs whose results it signs, if their memory was not tampered with.

pub mod attack;
mod block_allocator;
pub mod bytes;
pub mod certified;
pub mod checks;
pub mod counter_tree;
pub mod counters;
pub mod cycles;
mod directory_ranges;
pub mod directory_shape;
pub mod distribution;
pub mod ecc;
pub mod gpc;
pub mod hash_tree;
mod key_derivation;
pub mod keys;
mod node_cache;
pub mod page_cipher;
pub mod page_directory;
pub mod page_protocol;
pub mod page_record;
pub mod port;
pub mod primitives;
pub mod processor;
mod radix_table;
pub mod recency;
pub mod storage;
pub mod unit;
pub mod untrusted_memory;
mod unverified;
pub mod violation;
pub mod virtual_memory;

#[cfg(any(test, feature = "adversary"))]
pub mod adversary;

pub use gpc::GlobalPageCounter;
pub use keys::{DirectoryKeys, KeySet, PageKey};
pub use page_cipher::{PAGE_BYTES, PageCipher};
pub use page_directory::{PageDirectory, SpaceId};
pub use page_record::{Lpid, PageRecord, Place, Tag};
pub use untrusted_memory::{HeapMemory, UntrustedMemory};
pub use unverified::Unverified;
pub use violation::{Refusal, Violation};
