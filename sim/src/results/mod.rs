//! Results: what runs counted, and where it comes from.
//!
//! In reading order:
//!
//! - [`tree`]: trees of counters, and their differences;
//! - [`statistics`]: all counters of a machine, and what was counted between two moments;
//! - [`derived`]: ratios of counters;
//! - [`interval`], [`estimates`]: what windows of a region say of all of it;
//! - [`mod@mix`]: what programs of a mix do to each other;
//! - [`provenance`]: everything that a run depends on;
//! - [`document`]: the result of a run, as it is written;
//! - [`table`], [`mod@parquet`]: results as rows and columns;
//! - [`compare`], [`series`], [`mod@index`]: results beside each other.

pub mod compare;
pub mod derived;
pub mod document;
pub mod estimates;
pub mod index;
pub mod interval;
pub mod mix;
pub mod parquet;
pub mod provenance;
pub mod series;
pub mod statistics;
pub mod table;
pub mod tree;
