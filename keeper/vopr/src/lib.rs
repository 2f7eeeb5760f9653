//! The pager, run against a simulated kernel by a seeded scheduler.
//!
//! The pager's sources, the announcer's and the agent's are compiled here a second time, as they
//! are. What they take from `crate::sys`, `crate::hand` and `parking_lot` is ours: a kernel whose
//! every answer and whose every order of threads depends on a seed. A seed that fails, fails again.

// The locks that the pager takes are switch points.
extern crate self as parking_lot;
use locks::RwLock;

mod arch;
mod attention;
mod calls;
mod canary;
mod checks;
mod decay;
mod hand;
mod kernel;
mod locks;
mod logged;
mod program;
mod random;
mod replay;
mod rotation;
mod scheduler;
mod secrets;
mod start;
mod sys;
mod threads;
mod truth;
mod world;

#[allow(dead_code, unused_imports)]
mod announcer;
#[allow(dead_code, unused_imports)]
mod pager;
#[allow(dead_code)]
mod profile;
#[allow(dead_code)]
mod serve;

use casemate_agent as wire;
use casemate_keeper::{budget, config, event_counts, metadata, outcome, ranges, readahead, store};

pub use canary::Canary;
pub use replay::compare;
pub use world::{Mode, Plan, Report, run};
