//! How a run ends: the first reason wins, and nothing is served afterwards.

use super::Stop;
use crate::config::OnViolation;
use crate::event_counts::{self, EventCounts};
use crate::metadata::MetadataState;
use crate::outcome::Ending;
use crate::sys::poll::Bell;
use std::sync::OnceLock;

/// What ends the run, or says that it is ending.
#[derive(Clone, Copy)]
pub(super) struct RunEnd<'a> {
    pub ending: &'a OnceLock<Ending>,
    pub noted: &'a OnceLock<Ending>,
    pub stopped: &'a Bell,
    pub metadata: &'a MetadataState,
    pub counts: &'a EventCounts,
    /// What the policy makes of a page that did not verify.
    pub on_violation: OnViolation,
}

impl RunEnd<'_> {
    /// Ends the run; the first reason wins. Nothing is served afterwards, so nothing wrong is read.
    pub fn stop(self, why: Stop) {
        // A line for which there was no room does not verify either.
        let why = match why {
            Stop::Violation(_) => self.metadata.trouble().map_or(why, Stop::Store),
            other => other,
        };
        let ending = match why {
            Stop::Violation(what) => {
                event_counts::add(&self.counts.violations, 1);
                Ending::Violation { what }
            }
            Stop::Store(e) => Ending::StoreFailed { what: e.to_string() },
            Stop::Internal(what) => Ending::KeeperFailed { what },
        };
        self.stop_as(ending);
    }

    /// Ends the run at once if `result` is an error. For a thread that holds the lock of a space:
    /// the step that failed may have left the space half changed, and the next holder must find
    /// that nothing is served any more.
    pub fn or_stop<T>(self, result: Result<T, Stop>) -> Result<T, Stop> {
        result.map_err(|stop| {
            self.stop(stop);
            Stop::Internal("the run is ending already".to_owned())
        })
    }

    /// [`RunEnd::stop`] for a reason that is none of the pager's.
    pub fn stop_as(self, ending: Ending) {
        // A second reason adds nothing: the run is ending already.
        let _ = self.ending.set(ending);
        self.stopped.ring();
    }

    /// Whether the run is ending.
    pub fn has_come(self) -> bool {
        self.ending.get().is_some()
    }

    /// Remembers a violation that leaves the program to its SIGBUS.
    pub fn note_violation(self, stop: Stop) {
        event_counts::add(&self.counts.violations, 1);
        // The first one is reported; all are counted.
        let _ = self.noted.set(Ending::Violation { what: stop.to_string() });
    }
}
