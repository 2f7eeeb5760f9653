//! Events are read until none is on its way, and mirrored in what the pager knows.
//!
//! Reading an event lets the program's call go on; the state is brought up to date under the same
//! lock, so no fault is served from an older one.

use super::Events;
use super::order::touches_page;
use crate::checks::{self, Check};
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Until, Vpn, in_pages};
use crate::sys::sched;
use crate::sys::uffd::{Message, Refusal, Userfault};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

impl Events<'_> {
    /// Mirrors `events`, and all others that are on their way.
    pub(in crate::pager) fn mirror(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        mut events: Vec<Message>,
    ) -> Result<(), Stop> {
        self.gather(space, state, &mut events)?;
        self.apply(space, state, events)
    }

    /// Waits until no event of the space is on its way: one that was raised before a range was
    /// registered, and arrives later, would speak of what was there before.
    pub(in crate::pager) fn settle(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<(), Stop> {
        let mut events = Vec::new();
        self.gather(space, state, &mut events)?;
        self.apply(space, state, events)
    }

    /// [`Events::settle`], unless an event that is on its way touches one of `pages`. Whether none
    /// did.
    pub(in crate::pager) fn settle_beside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        mut pages: impl Iterator<Item = Vpn>,
    ) -> Result<bool, Stop> {
        let mut events = Vec::new();
        self.gather(space, state, &mut events)?;
        if pages.any(|vpn| touches_page(&events, vpn)) {
            return Ok(false);
        }
        self.apply(space, state, events)?;
        Ok(true)
    }

    /// Reads until no event of the space is on its way. Faults go to the inbox.
    pub(in crate::pager::events) fn gather(
        &self,
        space: &Space,
        state: &mut SpaceState,
        events: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        let (faults, read): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.pending.inbox).into_iter().partition(Message::is_fault);
        state.pending.inbox = faults;
        events.extend(read);
        let unregistered = state.mapped.unregistered_address();
        match read_until_quiet(&space.uffd, unregistered, &mut state.pending.inbox, events) {
            Ok(true) => Ok(()),
            Ok(false) => {
                space.mark_gone(self.attention);
                Ok(())
            }
            Err(error) => Err(Stop::Internal(format!("reading events: {error}"))),
        }
    }

    /// Brings what is known of the space up to date with events that no call of the agent raised.
    pub(in crate::pager::events) fn apply(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
    ) -> Result<(), Stop> {
        self.are_in_order(space, state, &events)?;
        let mut replaced = None;
        let mut events = VecDeque::from(events);
        while let Some(event) = events.front() {
            let is_awaited = match (event, state.calls.in_flight.as_ref().map(|call| &call.until)) {
                (Message::Fork(_), Some(Until::Fork)) => true,
                // The call is over, and may have failed all the same.
                (Message::Unmap { .. }, Some(Until::Replaced(range))) => {
                    replaced = Some(range.clone());
                    events.pop_front();
                    continue;
                }
                (_, Some(Until::Left)) => true,
                _ => false,
            };
            if state.agent.hand.is_some() && !is_awaited {
                add(&self.counts.unannounced_changes, 1);
            }
            match *event {
                // The pages go when the call goes on, which is now.
                Message::Remove { start, end } => state.calls.note_removal(in_pages(start, end)),
                Message::Unmap { start, end } if checks::is_made(Check::Unmapped) => {
                    let range = in_pages(start, end);
                    if self.has_stayed(space, state, &range, is_awaited, &mut events)? {
                        events.pop_front();
                        continue;
                    }
                }
                _ => {}
            }
            if let Some(event) = events.pop_front() {
                self.change(space, state, event)?;
            }
        }
        if let Some(range) = replaced {
            state.calls.in_flight = None;
            self.look_again(space, state, &range)?;
        }
        Ok(())
    }
}

/// Reads until no event is on its way. False if the address space is gone.
fn read_until_quiet(
    uffd: &Userfault,
    unregistered: u64,
    faults: &mut Vec<Message>,
    events: &mut Vec<Message>,
) -> io::Result<bool> {
    loop {
        match uffd.quiet(unregistered) {
            Err(Refusal::EventPending) => {
                let mut messages = Vec::new();
                uffd.read(&mut messages)?;
                let (missed, more): (Vec<_>, Vec<_>) =
                    messages.into_iter().partition(Message::is_fault);
                faults.extend(missed);
                events.extend(more);
                sched::give_way();
            }
            other => return Ok(other != Err(Refusal::SpaceGone)),
        }
    }
}
