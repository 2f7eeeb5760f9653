//! Faults: what a missing or write-protected page becomes.

mod bring_in;
pub mod serve;
mod waits;
