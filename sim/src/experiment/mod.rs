//! Experiments: runs of machines over traces, many at a time.
//!
//! In reading order:
//!
//! - [`machine`]: what the driver asks of a machine;
//! - [`simulated`]: the machine of a configuration;
//! - [`feed`]: a trace that is decoded once and read by several runs, in bounded memory;
//! - [`run`]: one run, with its warm-up, region of interest and samples;
//! - [`batch`]: the runs that share a trace;
//! - [`sweep`]: batches on all cores;
//! - [`store`]: the folder of results, where what was computed is found again.

pub mod batch;
pub mod feed;
pub mod machine;
pub mod run;
pub mod simulated;
pub mod store;
pub mod sweep;
