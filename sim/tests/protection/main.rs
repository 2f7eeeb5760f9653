//! Protection units in cycles: held against the same units on bytes, and against cycles computed by hand.

mod bandwidth;
mod common;
mod differential;
mod latencies;
mod verification;
