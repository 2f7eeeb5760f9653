//! Batches on all cores: as many runs at a time as there are cores, in the order in which they were
//! given.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use super::batch::{self, Batch, Listener};

/// Runs that may still be started.
struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Slots {
    fn take(&self, wanted: usize) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_while(free, |free| *free < wanted);
        *waited.unwrap_or_else(PoisonError::into_inner) -= wanted;
    }

    fn give_back(&self, count: usize) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += count;
        self.freed.notify_all();
    }
}

/// Runs all batches, `jobs` runs at a time (a larger batch runs alone). Returns when all are done,
/// or soon after `stop` is set.
pub fn run(batches: Vec<Batch>, jobs: usize, stop: &AtomicBool, listener: &dyn Listener) {
    let slots = Slots { free: Mutex::new(jobs), freed: Condvar::new() };
    thread::scope(|scope| {
        for batch in batches {
            let wanted = batch.runs.len().min(jobs);
            slots.take(wanted);
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let slots = &slots;
            scope.spawn(move || {
                batch::run(batch, stop, listener);
                slots.give_back(wanted);
            });
        }
    });
}
