//! How requests to a space's agent break off.

use super::Stop;
use super::space::SpaceState;
use crate::hand::HandError;

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
