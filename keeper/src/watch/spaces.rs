//! The spaces of the run: what each look finds out of them, and what becomes of those that have
//! ended.

use super::family::SURVEY_PATIENCE;
use super::{Watcher, heirs};
use crate::pager::Stop;
use crate::pager::agent::{agent_is_gone, ended_with_program};
use crate::pager::space::{InFlight, Space};
use crate::sys::uffd::Refusal;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A thread in a call that pages and faults wait for is stopped if it runs for longer, to find out
/// whether it has left that call.
const TIME_TO_STOP: Duration = Duration::from_millis(1);
/// The longest time that the watcher gives up what is stored of ended processes before it looks
/// again.
const DROP_PATIENCE: Duration = Duration::from_millis(1);

impl Watcher {
    /// Begins to listen to forked children, counts them in once they live on their own, and
    /// retires spaces that have ended. Which have is found out only with `lists`.
    pub(super) fn follow_spaces(&mut self, lists: bool) -> Result<(), Stop> {
        for space in self.pager.all_spaces() {
            if space.is_gone() {
                self.pager.events().retire(&space);
                // A process that still exists runs another program: it is armed again.
                self.family.left(space.id, &[]);
                continue;
            }
            if !space.heard.swap(true, Relaxed) {
                self.handlers.listen(&space);
            }
            self.pager.fault().hand_left_over(&space);
            self.end_call(&space)?;
            if lists {
                self.check_alive(&space)?;
            }
        }
        Ok(())
    }

    /// If pages of a space wait for the end of the call in flight, asks whether it is over.
    fn end_call(&self, space: &Arc<Space>) -> Result<(), Stop> {
        // Where the lock is taken for longer: at the next look.
        let is_free = || space.state.try_lock_for(SURVEY_PATIENCE).is_some();
        if space.wants_call_over.load(Relaxed) && is_free() {
            space.wants_call_over.store(false, Relaxed);
            let has_left = &mut |call: &InFlight| call.is_over(TIME_TO_STOP);
            let asked = self.pager.events().check_in_flight(space, has_left);
            self.pager.or_stop(asked)?;
        }
        Ok(())
    }

    /// Drops processes that have left a space (by exit or exec), ends the agent of a space that has
    /// no process left, and retires the space when the kernel says that it is gone.
    fn check_alive(&mut self, space: &Arc<Space>) -> Result<(), Stop> {
        let Some(mut state) = space.state.try_lock() else { return Ok(()) };
        let state = &mut *state;
        if let Some(hand) = &mut state.agent.hand {
            hand.serve_staging();
            if hand.has_ended() && !ended_with_program(space, state) {
                return Err(agent_is_gone(state));
            }
            let Some(hand) = &mut state.agent.hand else { return Ok(()) };
            let before = state.processes.pids.len();
            state.processes.pids.retain(|&pid| !self.family.is_gone(pid) && !hand.is_left_by(pid));
            if state.processes.pids.len() != before {
                self.family.left(space.id, &state.processes.pids);
            }
            if state.processes.pids.is_empty() {
                state.processes.pids = heirs::heirs(hand.agent_pid());
            }
            if state.processes.pids.is_empty() {
                // The agent would keep the address space alive after its last process has left.
                drop(state.lose_hand());
                space.agent.store(0, Relaxed);
            }
            return Ok(());
        }
        if space.uffd.quiet(state.mapped.unregistered_address()) == Err(Refusal::SpaceGone) {
            space.gone.store(true, Relaxed);
            self.pager.attention.ring();
        }
        Ok(())
    }

    /// Gives up what is stored of spaces that have ended, for a while.
    pub(super) fn drop_ended(&mut self) -> Result<(), Stop> {
        let until = Instant::now() + DROP_PATIENCE;
        while Instant::now() < until && self.pager.events().drop_ended()? {}
        self.look_time.ends("drop");
        Ok(())
    }
}
