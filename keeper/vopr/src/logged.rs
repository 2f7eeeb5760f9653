//! The thread that checks a log hash.

use crate::kernel::Wait;
use crate::pager::Pager;
use crate::scheduler;
use casemate_keeper::event_counts::add;
use std::sync::Arc;

/// Checks again and again.
pub fn check(pager: &Arc<Pager>) {
    loop {
        scheduler::sleep(Wait::Bell(0).into(), Some(20 + scheduler::random(200)));
        match pager.check_log() {
            Ok(_) => add(&pager.counts.checks, 1),
            Err(stop) => return pager.stop(stop),
        }
    }
}
