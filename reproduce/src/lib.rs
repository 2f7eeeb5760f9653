//! The figures and claims of the four hardware papers, on our workloads.

pub mod data;
pub mod draw;
pub mod report;
