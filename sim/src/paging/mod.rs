//! What replacement policies make of a program's pages, without time: page-ins, soft faults, looks
//! at accessed bits.
//!
//! In reading order:
//!
//! - [`string`]: the pages that a trace refers to, one after the other;
//! - [`mod@replay`]: a policy in so much memory, fed with them;
//! - [`mod@optimum`]: the fewest page-ins that any policy could have;
//! - [`distances`]: the page-ins of LRU in every size of memory, in one pass;
//! - [`advice`]: what such sizes cost a program, and how much a program should have;
//! - [`mod@study`]: all policies in several sizes of memory, with what their work takes.
//!
//! The policies themselves are a crate of their own, `replacement`, so that the keeper runs the
//! same code.

pub mod advice;
pub mod distances;
pub mod optimum;
pub mod replay;
pub mod string;
pub mod study;

pub use advice::{Advice, Point};
pub use distances::Distances;
pub use optimum::optimum;
pub use replay::{Counts, FaultSets, replay};
pub use string::{PageNumbers, ReferenceString};
pub use study::{Cell, Costs, OPTIMUM, study};
