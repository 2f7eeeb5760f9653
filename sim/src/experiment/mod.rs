//! Experiments: runs of machines over traces, many at a time.
//!
//! In reading order:
//!
//! - [`machine`]: what the driver asks of a machine;
//! - [`simulated`]: the machine of a configuration;
//! - [`feed`]: a trace that is decoded once and read by several runs, in bounded memory;
//! - [`run`]: one run, with its warm-up, region of interest and samples;
//! - [`sampled`]: a run that is measured in windows;
//! - [`unseen`]: what its windows did not meet;
//! - [`mix`]: several programs at once;
//! - [`batch`]: the runs that share a trace;
//! - [`sweep`]: batches on all cores;
//! - [`store`]: the folder of results, where what was computed is found again;
//! - [`trace_file`], [`configurations`]: what runs are of;
//! - [`session`]: all runs of traces under configurations, as `casemate sim` and `reproduce` do
//!   them.

pub mod batch;
pub mod configurations;
pub mod feed;
pub mod machine;
pub mod mix;
pub mod run;
pub mod sampled;
pub mod session;
pub mod simulated;
pub mod store;
pub mod sweep;
pub mod trace_file;
pub mod unseen;
