//! A request that an agent has not answered: whether an answer can still come.
use super::meeting::Parts;
use super::{HandError, sys};
use crate::sys::procfs;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// After so long without an answer it is looked whether the agent can give one, and after as long again.
const SILENT: Duration = Duration::from_millis(400);
/// Processor time that no single request takes an agent: tables of pages for a terabyte are freed in less.
const LONGEST_WORK: Duration = Duration::from_secs(10);
/// Looks, every [`SILENT`], at all of which an agent is not found asleep.
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
    /// What keeps process `pid` from going on at this moment, if anything does.
    pub(crate) fn of(pid: i32) -> Option<Stopper> {
        match procfs::state_and_parent(pid)?.0 {
            'T' => Some(Stopper::Signal),
            't' => Some(Stopper::Tracer),
            _ => None,
        }
    }
}

/// The time since a request was posted that is not answered yet.
pub(super) struct Silence {
    /// When the agent's state is looked at next.
    look: Instant,
    /// What stopped it, when it was looked at last.
    seen: Option<Stopper>,
    /// How long it had worked when it was looked at first.
    worked: Option<Duration>,
    /// Looks in a row at which it slept.
    asleep: u32,
}

impl Silence {
    pub(super) fn begun() -> Self {
        Silence { look: Instant::now() + SILENT, seen: None, worked: None, asleep: 0 }
    }

    /// Whether an answer can still come. An agent that waits for a processor, or for a lock (`D`), is not
    /// stopped; who was stopped at two looks in a row does not go on by himself. No request takes an agent
    /// [`LONGEST_WORK`], and none lets it sleep at all those looks, since we serve what it may wait for.
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
        let Some(now) = procfs::processor_time(parts.agent) else { return Ok(()) };
        let worked = now.saturating_sub(*self.worked.get_or_insert(now));
        let sleeps = procfs::state_and_parent(parts.agent).is_some_and(|(state, _)| state == 'S');
        self.asleep = if sleeps { self.asleep + 1 } else { 0 };
        match worked > LONGEST_WORK || self.asleep > LONGEST_SLEEP_LOOKS {
            true => Err(HandError::Silent { agent: parts.agent }),
            false => Ok(()),
        }
    }
}
