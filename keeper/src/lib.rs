//! The keeper: a Linux pager that holds a program's memory encrypted and verified.
//!
//! Bottom to top: [`sys`] wraps the kernel; [`store`] and [`metadata`] hold what is untrusted;
//! [`secret`] holds keys; [`hand`] is the agent inside a program; [`pager`] serves faults and
//! evicts; [`handlers`] and [`watch`] are its threads, `profile` their account of time; [`front`]
//! and `keeper` its two processes, `panics` the end of the second by an error of its own;
//! [`control`] the door by which a run is changed, [`lock`] what it is locked under; `scrub`
//! verifies what is stored, `rotate` gives it new keys, `deferred` checks the log hash, and
//! `held_output` is what waits for that.
#![warn(missing_docs)]

mod adversary;
mod announcer;
mod attention;
pub mod budget;
mod checks;
pub mod config;
pub mod control;
mod deferred;
pub mod event_counts;
pub mod front;
pub mod hand;
pub mod handlers;
mod held_output;
pub mod hiding;
mod keeper;
pub mod lock;
pub mod metadata;
pub mod outcome;
pub mod pager;
mod panics;
mod pause;
mod profile;
mod program;
pub mod ranges;
pub mod readahead;
mod rotate;
mod scrub;
pub mod secret;
mod secrets;
pub mod store;
pub mod sys;
pub mod watch;

pub use config::{
    AutoSize, Bound, CLEAR_ALLOWANCE_BYTES, CheckEvery, ClearSize, Config, OnViolation, PAGE_BYTES,
    ProgramRule, Share,
};
pub use front::{inside_run, run};
pub use outcome::{
    Ending, FailingFrame, FaultLatency, Outcome, OutputDigest, ProgramUse, Statistics,
    UnprotectedKind, UnprotectedMemory,
};
pub use profile::Profile;
