//! The agent makes calls in the program's stead.

use crate::config::PAGE_BYTES;
use crate::hand::{Action, HandError, Op, OpResult};
use crate::pager::Stop;
use crate::pager::agent::{Broken, agent_is_gone};
use crate::pager::aside::Aside;
use crate::pager::events::Events;
use crate::pager::fault::{Served, TurnBack};
use crate::pager::space::{Space, SpaceState};
use crate::sys::process;
use crate::sys::uffd::Message;
use std::os::fd::AsFd;
use std::sync::Arc;

/// What the agent's calls came to, and the events that they raised.
pub(in crate::pager::events) struct Made {
    pub results: Vec<OpResult>,
    pub events: Vec<Message>,
}

impl Events<'_> {
    /// Has the agent make calls, and reads the events that they raise: they cannot end before that.
    pub(super) fn make(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        ops: &[Op],
    ) -> Result<Made, Stop> {
        let Some(mut hand) = state.agent.hand.take() else {
            return Err(Stop::Internal(
                "a call is to be made by an agent that is not there".into(),
            ));
        };
        let agent = hand.agent_pid();
        // Others may change its limits as well, unheard.
        let limited = state.processes.pids.first().copied().filter(|&pid| process::is_limited(pid));
        if let Some(pid) = limited {
            let own = hand.owned_ranges().iter().map(|range| range.end - range.start).sum();
            process::copy_limits(pid, agent, own);
        }
        let (mut events, mut failure) = (Vec::new(), None);
        let mut idle = || {
            if failure.is_none()
                && let Err(stop) =
                    self.end.or_stop(self.read_beside(space, state, agent, &mut events))
            {
                failure = Some(stop);
            }
        };
        let done = hand.run_beside(ops, space.uffd.as_fd(), &mut idle).map(<[OpResult]>::to_vec);
        state.agent.hand = Some(hand);
        if limited.is_some() {
            process::lift_limits(agent);
        }
        match (failure, done) {
            (Some(stop), _) => Err(stop),
            (None, Ok(results)) => Ok(Made { results, events }),
            (None, Err(HandError::Gone)) => Err(agent_is_gone(state)),
            (None, Err(error)) => Err(Stop::Internal(error.to_string())),
        }
    }

    /// Has the agent make one call, and takes what it has changed on. Returns its result, or minus
    /// an error number.
    pub(super) fn make_one(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        action: Action,
    ) -> Result<i64, Stop> {
        let made = self.make(space, state, &[action.into()])?;
        let result = made.results[0].result;
        self.change_all(space, state, made.events)?;
        Ok(result)
    }

    /// Has the agent make calls that touch pages, which may be protected or missing.
    pub(super) fn make_attended(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        ops: &[Op],
    ) -> Result<(), Stop> {
        let Some(mut hand) = state.agent.hand.take() else {
            return Err(Stop::Internal(
                "a page is to be written by an agent that is not there".into(),
            ));
        };
        let done = self.run_attended(space, state, &mut hand, ops, &mut Aside::default());
        state.agent.hand = Some(hand);
        match done {
            Ok(_) => Ok(()),
            Err(Broken::Stop(stop)) => Err(stop),
            Err(Broken::AgentGone) => Err(agent_is_gone(state)),
        }
    }

    /// Reads what the program's descriptor says while the agent makes a call: its events, and
    /// faults, of which the agent's own are served at once.
    pub(super) fn read_beside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        agent: i32,
        events: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        let mut messages = std::mem::take(&mut state.pending.inbox);
        space.uffd.read(&mut messages).map_err(|e| Stop::Internal(e.to_string()))?;
        for message in messages {
            match message {
                Message::Missing { address, write, tid } if tid == agent => {
                    let vpn = address / PAGE_BYTES as u64;
                    let served = self.asks.missing(space, state, vpn, write, tid)?;
                    if served == Served::Back(TurnBack::Event) {
                        state.pending.inbox.push(message);
                    }
                }
                fault if fault.is_fault() => state.pending.inbox.push(fault),
                event => events.push(event),
            }
        }
        space.wake_all(&std::mem::take(&mut state.pending.wakes));
        Ok(())
    }

    /// The events of a call that has succeeded.
    pub(super) fn change_all(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
    ) -> Result<(), Stop> {
        events.into_iter().try_for_each(|event| self.change(space, state, event))
    }
}
