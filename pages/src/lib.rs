//! The protocol of the pager's pages: AES-GCM under address-independent seeds, and a directory of
//! records that a Bonsai tree keeps honest.
//!
//! No I/O, no threads, no clock. Read it top down:
//!
//! 1. [`page_protocol`]: a page in and a page out, step by step; the keeper takes these steps;
//! 2. [`page_directory`]: which page lies where under which LPID and tag, kept in untrusted memory;
//! 3. [`page_cipher`], [`page_record`], [`segment_keys`], [`keys`]: address-independent seeds
//!    (AISE, section 4.3) and AES-GCM under keys by segment and epoch (Cryptkeeper, section VI-D);
//! 4. [`flipped_bits`]: which bits of a ciphertext have flipped, where a run heals;
//! 5. [`all_or_nothing`]: a key spread over memory, of which every bit is needed to have it back;
//! 6. [`bytes`]: the [port](casemate_core::port) of the directory on real memory, and [`counts`],
//!    which only counts; [`fault_costs`] says with it what a fault costs in a memory of any size.

pub mod all_or_nothing;
mod block_allocator;
pub mod bytes;
pub mod counts;
mod directory_ranges;
pub mod directory_shape;
mod epoch_counts;
pub mod fault_costs;
pub mod flipped_bits;
pub mod heap_memory;
pub mod keys;
pub mod line_array;
mod logged_lines;
pub mod page_cipher;
pub mod page_directory;
pub mod page_protocol;
pub mod page_record;
mod radix_table;
pub mod segment_keys;

#[cfg(any(test, feature = "adversary"))]
pub mod adversary;

pub use casemate_core::PAGE_BYTES;
pub use flipped_bits::{FlipFinder, Flips};
pub use heap_memory::HeapMemory;
pub use keys::{DirectoryKeys, KeySet, PageKey};
pub use page_cipher::PageCipher;
pub use page_directory::{PageDirectory, SpaceId, Verification};
pub use page_record::{PageRecord, StorePlace, Tag};
pub use segment_keys::{NoRoot, Roots};
