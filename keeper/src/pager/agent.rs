//! How requests to a space's agent break off.

use super::Stop;
use super::space::{Space, SpaceState};
use crate::hand::HandError;
use crate::sys::clock::Instant;
use crate::sys::uffd::Refusal;
use crate::sys::{procfs, sched};
use std::time::Duration;

/// How long the memory of processes that were all killed may take to be gone.
const PATIENCE_FOR_END: Duration = Duration::from_secs(1);

/// Ways in which a request to the agent breaks off.
pub(super) enum Broken {
    AgentGone,
    Stop(Stop),
}

impl From<HandError> for Broken {
    fn from(error: HandError) -> Self {
        match error {
            HandError::Gone => Broken::AgentGone,
            _ => Broken::Stop(Stop::Internal(error.to_string())),
        }
    }
}

impl From<Stop> for Broken {
    fn from(stop: Stop) -> Self {
        Broken::Stop(stop)
    }
}

/// An agent that has ended while its program lives can neither evict nor avenge: the run stops. One
/// that ended with its program is no loss.
pub fn agent_is_gone(state: &SpaceState) -> Stop {
    if let Some(found) = state.agent.hand.as_ref().and_then(|hand| hand.supervisor_found()) {
        return Stop::Internal(found.to_owned());
    }
    let pid = state.processes.pids.first().copied().unwrap_or(0);
    Stop::Internal(format!("the agent of process {pid} was killed"))
}

/// Whether an agent that has ended did so with its program: its known processes have ended, and the
/// memory is gone, so that no other has it.
pub fn ended_with_program(space: &Space, state: &SpaceState) -> bool {
    let since = Instant::now();
    while state.processes.pids.iter().all(|&pid| procfs::has_ended(pid)) {
        if space.uffd.quiet(state.mapped.unregistered_address()) == Err(Refusal::SpaceGone) {
            return true;
        }
        if since.elapsed() > PATIENCE_FOR_END {
            return false;
        }
        sched::give_way();
    }
    false
}
