//! Events: a call that changes memory waits until its event is read, and until it goes on nothing
//! is filled.

use super::uffd::Event;
use super::{Kernel, Raw, State, Wait};
use crate::scheduler;
use std::ops::Range;

impl State {
    /// An event is about to be raised: from now on nothing is filled.
    pub fn announce_event(&mut self, uffd: usize) {
        self.uffds[uffd].changing += 1;
    }

    /// The userfaultfds that are told of changes in a range, each once.
    pub fn told_of(&mut self, mm: u32, range: &Range<u64>) -> Vec<usize> {
        let parts = self.mm(mm).parts(range);
        let mut told: Vec<usize> = parts.into_iter().filter_map(|(_, m)| m.uffd).collect();
        told.dedup();
        told.retain(|&uffd| self.uffds[uffd].has_events);
        told
    }
}

impl Kernel {
    /// Raises an event that was announced and waits until it is read. Fills are refused until this
    /// thread goes on.
    pub fn raise(&self, uffd: usize, message: Raw) {
        let number = {
            let mut state = self.lock();
            let number = state.number();
            state.uffds[uffd].events.push_back(Event { number, message });
            number
        };
        scheduler::trace(|| format!("raises {message:x?}"));
        self.has_message(uffd);
        loop {
            let is_read = {
                let state = self.lock();
                !state.uffds[uffd].events.iter().any(|event| event.number == number)
            };
            if is_read {
                break;
            }
            scheduler::sleep(Wait::Event(number).into(), None);
        }
        scheduler::point();
        self.lock().uffds[uffd].changing -= 1;
        scheduler::trace(|| format!("goes on after {message:x?}"));
    }
}
