//! Our own trace format, version 3. SPEC.md says which bit is where.
//!
//! A header, blocks, an index. A block is compressed and checked alone: a reader that knows where
//! one starts can begin there, and a damaged one costs its own instructions only.
//!
//! In reading order: [`varint`], [`columns`] (what the numbers of a block are), [`template`] (the
//! part of an instruction that repeats), [`predictor`] (what both sides expect next), [`encode`]
//! and [`decode`], [`frame`] (bytes around blocks), [`writer`], [`salvage`] and [`reader`], with
//! `seek`.

pub mod columns;
pub mod decode;
pub mod encode;
pub mod frame;
pub mod predictor;
pub mod reader;
pub mod salvage;
mod seek;
pub mod template;
pub mod varint;
pub mod writer;

pub use frame::{BlockEntry, Totals};
pub use reader::Reader;
pub use salvage::Damage;
pub use writer::Writer;

/// The version that is written.
pub const VERSION: u16 = 3;
/// The oldest version that is read. Version 2 is version 3 without what instructions compute, and
/// version 1 is version 2 without what the kernel changed.
pub const OLDEST_VERSION: u16 = 1;
