//! Decides whether an agent can still answer a request.
use super::meeting::Parts;
use super::{HandError, sys};
use crate::sys::{process, procfs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The time without an answer after which the agent's state is checked, and between further checks.
const SILENT: Duration = Duration::from_millis(400);
/// More processor time than any request takes: the page tables of a terabyte are freed in less.
const LONGEST_WORK: Duration = Duration::from_secs(10);
/// Consecutive checks, one every [`SILENT`], at all of which a working agent would not be found
/// asleep.
const LONGEST_SLEEP_LOOKS: u32 = 25;

/// What keeps a process from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopper {
    /// SIGSTOP, or another signal of its kind.
    Signal,
    /// A debugger.
    Tracer,
}

impl std::fmt::Display for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stopper::Signal => "a signal",
            Stopper::Tracer => "a debugger",
        })
    }
}

impl Stopper {
    /// What has stopped process `pid`, if anything but the keeper has: a supervised agent stops at
    /// each of its calls.
    pub(crate) fn of(pid: i32) -> Option<Stopper> {
        match procfs::state_and_parent(pid)?.0 {
            'T' => Some(Stopper::Signal),
            't' if procfs::tracer(pid).is_some_and(process::is_own_thread) => None,
            't' => Some(Stopper::Tracer),
            _ => None,
        }
    }
}

/// The time since a request was posted that is not answered yet.
pub(super) struct Silence {
    /// When the agent's state is checked next.
    look: Instant,
    /// What had stopped it at the last check.
    seen: Option<Stopper>,
    /// Its processor time at the first check.
    worked: Option<Duration>,
    /// Consecutive checks at which it slept.
    asleep: u32,
}

impl Silence {
    pub(super) fn begun() -> Self {
        Silence { look: Instant::now() + SILENT, seen: None, worked: None, asleep: 0 }
    }

    /// Returns an error if no answer can come. An agent that waits for a processor, or for a lock
    /// (`D`), is not stopped; one that was stopped at two checks in a row will not continue by
    /// itself. No request takes an agent [`LONGEST_WORK`], and none keeps it asleep at all those
    /// checks, since the keeper serves everything that it may wait for.
    pub(super) fn judge(&mut self, parts: &Parts) -> Result<(), HandError> {
        if sys::pidfd_ended(parts.pidfd.as_fd(), Duration::ZERO) {
            return Err(HandError::Gone);
        }
        let now = Instant::now();
        if now < self.look {
            return Ok(());
        }
        self.look = now + SILENT;
        let before = std::mem::replace(&mut self.seen, Stopper::of(parts.agent));
        if let (Some(_), Some(by)) = (before, self.seen) {
            return Err(HandError::Stopped { agent: parts.agent, by });
        }
        let Some(now) = process::processor_time(parts.agent) else { return Ok(()) };
        let worked = now.saturating_sub(*self.worked.get_or_insert(now));
        let state = procfs::state_and_parent(parts.agent);
        let sleeps = state.is_some_and(|(state, _)| matches!(state, 'S' | 't'));
        self.asleep = if sleeps { self.asleep + 1 } else { 0 };
        match worked > LONGEST_WORK || self.asleep > LONGEST_SLEEP_LOOKS {
            true => Err(HandError::Silent { agent: parts.agent }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hand::tracee::{Look, Seccomp, Tracee};
    use std::process::Command;

    #[test]
    fn who_stands_still_for_us_is_not_stopped_by_a_debugger() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let pid = child.id() as i32;
        let mut tracee = Tracee::seize(pid, pid, Seccomp::None).expect("our child");
        tracee.interrupt().expect("it lives");
        let end = Instant::now() + Duration::from_secs(20);
        while tracee.look() != Look::Event {
            assert!(Instant::now() < end, "it does not stop");
        }
        let state = procfs::state_and_parent(pid).map(|(state, _)| state);
        assert_eq!((state, Stopper::of(pid)), (Some('t'), None));
        tracee.detach(0).expect("it stands still");
        sys::kill(pid, libc::SIGSTOP);
        while Stopper::of(pid) != Some(Stopper::Signal) {
            assert!(Instant::now() < end, "it does not stop");
        }
        child.kill().expect("our child");
        child.wait().expect("our child");
    }
}
