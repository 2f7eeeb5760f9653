//! A small virtual-memory manager above a protection unit: what an operating system does with
//! pages, so that it shows which seeds can live with that (AISE/BMT, sections 4 and 5.1, Table 1).
//!
//! The manager itself is trusted, and so are its page tables; memory and the disk are not. What it
//! keeps in memory, the page root directory, goes through the unit like any other data.
//!
//! Read it in this order:
//!
//! 1. [`page_table`], [`frames`], [`translations`]: what a process sees, which frames are free,
//!    what is on chip of both;
//! 2. [`seed_names`]: which names of a page its ciphertext depends on;
//! 3. [`manager`]: allocation, fork with copy-on-write, sharing, super pages, context switches;
//! 4. [`swap`], [`page_root_directory`]: pages on disk, as they are or encrypted anew;
//! 5. [`table_1`]: AISE/BMT's Table 1, executed.

mod error;
pub mod frames;
pub mod manager;
pub mod page_root_directory;
pub mod page_table;
mod pages;
pub mod seed_names;
mod sharing;
pub mod swap;
pub mod table_1;
pub mod translations;

pub use error::VmError;
pub use manager::{Care, Counts, MemorySize, VirtualMemory};
pub use page_table::ProcessId;
pub use sharing::Sharing;
