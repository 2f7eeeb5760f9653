//! The figures and claims of the four hardware papers, on our workloads, and of Cryptkeeper, on the
//! machine at hand.
//!
//! In the order in which they are used:
//!
//! - [`papers`]: the folders of `papers/`, compiled in;
//! - [`spec`] with [`assumption`], and [`claims`] with [`experiment`] and [`cell`]: what they say;
//! - [`plan`]: the runs that figures need, each once;
//! - [`traces`]: what they are of, recorded where it is missing;
//! - [`job`]: a paper's runs done, and made figures and claims of;
//! - [`metric`]: numbers of runs; [`estimate`]: how sure they are;
//! - [`assemble`] and [`compute`]: figures, of results or of the engine;
//! - [`data`]: what comes out;
//! - [`draw`] with [`words`], and [`report`]: plots, tables, pages; [`files`]: where they are
//!   written;
//! - [`measured`]: the paper that is not simulated;
//! - [`published`]: figures read again from those tables, and drawn anew.

pub mod assemble;
pub mod assumption;
pub mod cell;
pub mod claims;
pub mod compute;
pub mod data;
pub mod draw;
pub mod estimate;
pub mod experiment;
pub mod files;
pub mod job;
pub mod measured;
pub mod metric;
pub mod papers;
pub mod plan;
pub mod published;
pub mod report;
pub mod spec;
pub mod traces;
pub mod words;
