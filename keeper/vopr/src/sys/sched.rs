//! `sys::sched` over the simulated scheduler.

pub use crate::scheduler::give_way;

pub fn hurry(_pid: i32) {}
