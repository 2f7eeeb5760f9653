//! Protection units in cycles: held against the same units on bytes, and against cycles computed by
//! hand.

mod attacked;
mod bandwidth;
mod common;
mod differential;
mod first_touch;
mod latencies;
mod lines;
#[path = "../common/machine.rs"]
mod machine;
mod processes;
mod processor;
mod real_traffic;
mod time_stamp_cache;
#[allow(dead_code, missing_docs)]
#[path = "../common/tracers.rs"]
mod tracers;
mod verification;
mod warming;
