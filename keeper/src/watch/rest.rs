//! The watcher's rest. When every process of the run is under the pager and announces its calls, no
//! memory can grow unseen. The watcher then needs to look only after an event, and every event
//! makes a descriptor readable.

use super::Watcher;
use super::family::Family;
use super::process::Process;
use super::required::Required;
use crate::pager::Pager;
use crate::pager::space::Space;
use crate::sys::poll;
use crate::sys::process;
use crate::sys::procfs::{self, CurrentCall};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The time between two looks while processes are under the pager, but some of them can grow
/// unseen.
const ARMED_PAUSE: Duration = Duration::from_millis(2);
/// The shortest time between two looks that is worth its cost.
const SHORTEST_PAUSE: Duration = Duration::from_micros(250);
/// Looks without a fault or other event after which the watcher looks less often.
const QUIET_TICKS: u64 = 20;
/// Ticks after the last growth for which the shortest pause is kept.
const GROWING_TICKS: u64 = 128;
/// The longest rest: after it the pager's records are compared with the kernel in any case.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

impl Watcher {
    /// How long to sleep: the time for which the Clear certainly suffices, or the bound on how long
    /// new memory may stay unseen. None if nothing can grow unseen.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        let faults = self.pager.counts.faults.load(Relaxed);
        self.quiet_ticks = if faults == self.faults_seen { self.quiet_ticks + 1 } else { 0 };
        self.faults_seen = faults;
        let stirs = self.pager.attention.stirs();
        self.calm_ticks = if stirs == self.stirs_seen { self.calm_ticks + 1 } else { 0 };
        self.stirs_seen = stirs;
        let waits = self.pager.all_spaces().iter().any(|space| space.waits.load(Relaxed));
        let locks = self.lock.is_under_way();
        if waits || locks || self.arming.is_pending() || self.brake.is_on() {
            return Some(Duration::from_micros(200));
        }
        if !self.haste.is_on() && !self.pager.spaces.ended.is_empty() {
            return Some(SHORTEST_PAUSE);
        }
        let paced = self.pace.pause(self.pager.budget.free());
        let until_full = self.until_full().min(paced).max(SHORTEST_PAUSE);
        if !self.family.any_armed() {
            return Some(until_full.min(Duration::from_millis(20)));
        }
        let is_growing = self.steady_ticks < GROWING_TICKS;
        match (is_growing, self.quiet_ticks > QUIET_TICKS) {
            (true, _) => Some(until_full.min(Duration::from_millis(1))),
            (false, false) => Some(Duration::from_millis(1)),
            (false, true) if self.calm_ticks <= QUIET_TICKS => Some(ARMED_PAUSE),
            (false, true) => None,
        }
    }

    /// The time for which the Clear certainly suffices.
    pub(super) fn until_full(&self) -> Duration {
        Duration::from_micros(self.pager.budget.free() / self.pages_per_us / 2)
    }

    /// Sleeps until the bell is rung, the run is stopped, the program has ended, or `wait` has
    /// passed.
    pub(super) fn sleep(&mut self, wait: Option<Duration>, stirs: u64) {
        let rest = if wait.is_none() { Rest::of(&self.pager, &self.family) } else { None };
        let longest = if rest.is_some() { LONGEST } else { ARMED_PAUSE };
        // In haste these are not looked to.
        let is_whole = !self.haste.is_on();
        let looks_for_idle = is_whole && self.looks_for_idle();
        let idle = if looks_for_idle { self.idle.wait() } else { Duration::MAX };
        let required = self.required.as_ref().filter(|_| is_whole);
        let required = required.map_or(Duration::MAX, Required::wait);
        let wait = wait.unwrap_or(longest).min(idle).min(required).min(self.resize.wait());
        // After the program's end its other processes are waited for, which may end at any moment.
        let is_light = rest.is_some() || self.main_end.is_some();
        if is_light && !self.pager.attention.rest(stirs) {
            self.pager.attention.wake();
            return;
        }
        if rest.is_some() {
            self.note_peaks();
        }
        // poll(2) ignores a negative descriptor.
        let main = if self.main_end.is_none() { self.main_process.as_raw_fd() } else { -1 };
        let own = [self.pager.attention.as_raw_fd(), self.pager.stopped.as_raw_fd(), main];
        let others = rest.iter().flat_map(Rest::descriptors);
        let (is_rung, happened) = poll::any_readable(own.into_iter().chain(others), wait);
        self.pager.attention.wake();
        if is_rung {
            self.pager.attention.silence();
        }
        if happened && rest.is_some() {
            (self.quiet_ticks, self.calm_ticks) = (0, 0);
        }
    }
}

/// The descriptors that end a rest.
pub(super) struct Rest {
    spaces: Vec<Arc<Space>>,
    /// Descriptors of processes and agents, readable when they have ended, and of stagings,
    /// readable when a thread waits for a page of one.
    others: Vec<OwnedFd>,
}

impl Rest {
    /// The descriptors that would end a rest now; none if the watcher must look again soon.
    pub fn of(pager: &Pager, family: &Family) -> Option<Rest> {
        if pager.attention.was_executing(&mut is_in_exec)
            || pager.budget.free() < pager.budget.low()
        {
            return None;
        }
        let living = || family.processes.values().filter(|process| !process.has_ended());
        let is_known = |process: &Process| {
            process.space.and_then(|id| pager.space(id)).is_some_and(|space| space.registers_new())
        };
        if !living().all(is_known) || !family.unheard(pager).is_empty() {
            return None;
        }
        let pidfds = living().map(|process| process::pidfd(process.pid).ok());
        let mut others = pidfds.collect::<Option<Vec<_>>>()?;
        let spaces = pager.all_spaces();
        for space in &spaces {
            let state = space.state.try_lock()?;
            let has_work = space.is_gone()
                || space.waits.load(Relaxed)
                || state.processes.pids.is_empty()
                || !state.pending.is_empty();
            let hand = state.agent.hand.as_ref().filter(|_| !has_work)?;
            others.push(hand.agent_pidfd().try_clone_to_owned().ok()?);
            others.push(hand.staging_descriptor().try_clone_to_owned().ok()?);
        }
        Some(Rest { spaces, others })
    }

    /// The descriptors that end it.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        let spaces = self.spaces.iter().map(|space| space.uffd.as_fd().as_raw_fd());
        spaces.chain(self.others.iter().map(AsRawFd::as_raw_fd))
    }
}

/// Whether a thread that has announced an `execve` is in it still.
fn is_in_exec(tid: i32) -> Option<bool> {
    match procfs::current_call(tid) {
        CurrentCall::Gone | CurrentCall::Outside => Some(false),
        CurrentCall::In { number, .. } => {
            Some(matches!(number, libc::SYS_execve | libc::SYS_execveat))
        }
        CurrentCall::Unknown => None,
    }
}
