//! Requests during which the agent may need its keeper: it faults, or raises events, like any
//! thread of the program.

use crate::config::PAGE_BYTES;
use crate::hand::{Hand, Op, OpResult};
use crate::pager::Stop;
use crate::pager::agent::Broken;
use crate::pager::aside::Aside;
use crate::pager::events::Events;
use crate::pager::fault::{Served, TurnBack};
use crate::pager::space::{Space, SpaceState};
use crate::profile::{self, Phase};
use crate::sys::uffd::Message;
use std::os::fd::AsFd;
use std::sync::Arc;

/// What [`Events::run_attended`] knows of the agent's own events.
struct Attendant<'a> {
    agent: i32,
    aside: &'a mut Aside,
}

impl Events<'_> {
    /// Runs ops that may make the agent fault or raise events, which only we can serve. Events of
    /// pages that it moves aside are of our own making.
    pub(in crate::pager) fn run_attended(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        ops: &[Op],
        aside: &mut Aside,
    ) -> Result<Vec<OpResult>, Broken> {
        let mut attendant = Attendant { agent: hand.agent_pid(), aside };
        let mut failure = None;
        let mut idle = || {
            if failure.is_none()
                && let Err(stop) = self.end.or_stop(self.serve_agent(space, state, &mut attendant))
            {
                // The agent may wait for what failed: only the end of the run ends that.
                failure = Some(stop);
            }
        };
        profile::ended(Phase::Choose);
        let results = hand.run_beside(ops, space.uffd.as_fd(), &mut idle)?.to_vec();
        profile::ended(Phase::Agent);
        failure.map_or(Ok(results), |stop| Err(Broken::Stop(stop)))
    }

    /// Serves the agent's own faults and swallows its own events; everything else waits in the
    /// inbox.
    fn serve_agent(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attendant: &mut Attendant<'_>,
    ) -> Result<(), Stop> {
        let mut messages = Vec::new();
        space.uffd.read(&mut messages).map_err(|e| Stop::Internal(e.to_string()))?;
        for message in messages {
            match message {
                // A store of the agent's to a page that it has aside: it changes nothing there.
                Message::Protected { address, tid }
                    if tid == attendant.agent && attendant.aside.holds(address) =>
                {
                    // After every answer of the kernel it tries again.
                    let _ = space.uffd.protect(address, PAGE_BYTES as u64, false);
                    state.pending.wakes.push((address, PAGE_BYTES as u64));
                }
                event if attendant.aside.swallows(&event) => {}
                other => state.pending.inbox.push(other),
            }
        }
        if attendant.aside.is_empty() {
            // What the agent misses must be served as the program's latest calls left it.
            self.mirror(space, state, Vec::new())?;
        }
        // The program's own faults wait: to serve them here could take room that there is not.
        let (ours, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.pending.inbox)
            .into_iter()
            .partition(|message| match message {
                Message::Missing { tid, .. } | Message::Protected { tid, .. } => {
                    *tid == attendant.agent
                }
                _ => false,
            });
        state.pending.inbox = others;
        for message in ours {
            let served = match message {
                Message::Missing { address, write, tid } => {
                    self.asks.missing(space, state, address / PAGE_BYTES as u64, write, tid)?
                }
                Message::Protected { address, .. } => {
                    self.asks.lift(space, state, address / PAGE_BYTES as u64)?
                }
                _ => Served::Yes,
            };
            if served == Served::Back(TurnBack::Event) {
                state.pending.inbox.push(message);
            }
        }
        space.wake_all(&std::mem::take(&mut state.pending.wakes));
        Ok(())
    }
}
