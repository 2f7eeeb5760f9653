//! `sys::seccomp` over the simulated kernel.

use crate::kernel::{Verdict, Wait};
use crate::scheduler;
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    pub id: u64,
    pub tid: i32,
    pub number: i64,
    pub arguments: [u64; 6],
}

/// Hears every call.
#[derive(Debug)]
pub struct Listener;

impl Listener {
    pub fn receive(&self) -> io::Result<Option<Announced>> {
        scheduler::point();
        let call = scheduler::kernel().lock().announced.pop_front();
        Ok(call.map(|(id, tid, number, arguments)| Announced { id, tid, number, arguments }))
    }

    pub fn answer(&self, call: &Announced, result: i64) {
        self.decide(call, Verdict::Result(result));
    }

    pub fn go_on(&self, call: &Announced) {
        // Until it is made it is what the thread is in.
        if let Some(task) = scheduler::kernel().lock().tasks.get_mut(&call.tid) {
            task.call = Some(call.number);
        }
        self.decide(call, Verdict::GoOn);
    }

    fn decide(&self, call: &Announced, verdict: Verdict) {
        scheduler::trace(|| format!("answers {} of {}: {verdict:?}", call.number, call.tid));
        scheduler::kernel().lock().verdicts.insert(call.id, verdict);
        scheduler::wake(Wait::Answer(call.tid).into());
    }
}
