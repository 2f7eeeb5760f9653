//! What a descriptor says is read, events are mirrored first, then each fault is served.

use super::turn_back::TurnBack;
use super::{Fault, Served};
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState};
use crate::profile::{self, Phase};
use crate::sys::clock::Instant;
use crate::sys::sched;
use crate::sys::uffd::{BATCH_MESSAGES, Message};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Rounds that a space is served in before others that wait on the same CPU have their turn.
const ROUNDS: u32 = 16;

impl Fault<'_> {
    /// Reads and serves what waits in `space` until nothing does. `after` learns which thread
    /// faulted last and how many faults were served, so that the handler can stay near it.
    pub fn attend(
        &self,
        space: &Arc<Space>,
        after: &mut dyn FnMut(&Arc<Space>, i32, u64),
    ) -> Result<(), Stop> {
        self.attend_for(ROUNDS, space, after)
    }

    /// The same, for so many rounds in which there are faults.
    fn attend_for(
        &self,
        most_rounds: u32,
        space: &Arc<Space>,
        after: &mut dyn FnMut(&Arc<Space>, i32, u64),
    ) -> Result<(), Stop> {
        let mut attended = Attended::default();
        let mut rounds = 0;
        while !space.is_gone() && !self.end.has_come() {
            let round = {
                let mut state = space.state.lock();
                profile::ended(Phase::Lock);
                // A holder of the lock that failed has ended the run before it released the lock.
                if self.end.has_come() || space.is_gone() {
                    break;
                }
                let round = self.attend_once(space, &mut state, &mut attended);
                self.end.or_stop(round)?
            };
            let Some(Round { wakes, started, faults, drained }) = round else { break };
            // Only now that the lock is free: a woken thread may take this CPU at once.
            let latency = started.elapsed();
            (0..faults).for_each(|_| self.counts.served(latency));
            if attended.tid != 0 {
                after(space, attended.tid, faults);
            }
            profile::ended(Phase::Lists);
            space.wake_all(&wakes);
            profile::ended(Phase::Wake);
            // What comes after that read rings the descriptor again. But the program has had this
            // CPU meanwhile, and likely misses its next page already: to look is cheaper than to be
            // told.
            rounds += 1;
            if !drained || faults > 0 && rounds < most_rounds {
                continue;
            }
            // If there is no room now, the thread that sees to waiting faults tries again.
            if faults > 0 || !space.waits.load(Relaxed) || !self.asks.take_from_others(space)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads once and serves what was read; none if nothing waits.
    fn attend_once(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attended: &mut Attended,
    ) -> Result<Option<Round>, Stop> {
        let waiting = std::mem::take(&mut state.faults.waiting);
        state.pending.inbox.extend(waiting);
        space.waits.store(false, Relaxed);
        let read = space.uffd.read(&mut state.pending.inbox).map_err(|e| {
            Stop::Internal(format!("reading the faults of space {}: {e}", space.id.0))
        })?;
        profile::ended(Phase::Read);
        if state.pending.inbox.is_empty() && state.pending.wakes.is_empty() {
            return Ok(None);
        }
        let started = Instant::now();
        let faults = self.serve_inbox(space, state, attended)?;
        let drained = read < BATCH_MESSAGES && state.pending.inbox.is_empty();
        Ok(Some(Round {
            wakes: std::mem::take(&mut state.pending.wakes),
            started,
            faults,
            drained,
        }))
    }

    /// Serves every message of the inbox: events first, for the kernel refuses to fill pages while
    /// one is pending, and the faults behind it mean the space as the event left it.
    fn serve_inbox(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attended: &mut Attended,
    ) -> Result<u64, Stop> {
        let mut faults = ToServe { messages: std::mem::take(&mut state.pending.inbox), done: 0 };
        self.take_events(space, state, faults.rest())?;
        let mut served = 0;
        while let Some(fault) = faults.next() {
            // A step may have ended the run that failed for another thread's sake.
            if self.end.has_come() {
                break;
            }
            let done = match *fault {
                _ if self.waits_for_agent(space, state, fault) => Served::Back(TurnBack::Room),
                Message::Missing { address, write, tid } => {
                    attended.tid = tid;
                    self.missing(space, state, address / PAGE_BYTES as u64, write, tid)?
                }
                Message::Protected { address, tid } => {
                    self.written(space, state, address / PAGE_BYTES as u64, tid)?
                }
                ref other => {
                    return Err(Stop::Internal(format!("an unknown message: {other:?}")));
                }
            };
            if done == Served::Back(TurnBack::Event) && !space.is_gone() {
                let rest = faults.rest();
                space.uffd.read(rest).map_err(|e| Stop::Internal(e.to_string()))?;
                self.take_events(space, state, rest)?;
                sched::give_way();
                continue;
            }
            let fault = faults.take();
            if done == Served::Back(TurnBack::Room) {
                state.faults.put_off(fault);
                if !space.waits.swap(true, Relaxed) {
                    self.waiting.ring();
                }
            } else {
                served += 1;
            }
        }
        faults.messages.clear();
        if state.pending.inbox.is_empty() {
            state.pending.inbox = faults.messages;
        }
        Ok(served)
    }

    /// Handles the events among `messages` and leaves the faults.
    fn take_events(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        messages: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        if messages.iter().all(Message::is_fault) {
            return Ok(());
        }
        let (faults, events): (Vec<_>, Vec<_>) =
            std::mem::take(messages).into_iter().partition(Message::is_fault);
        *messages = faults;
        let mirrored = self.asks.mirror(space, state, events);
        profile::ended(Phase::Events);
        mirrored
    }

    /// Serves what an eviction off the fault path read from the descriptor on the agent's behalf:
    /// no handler will be told of it again. A handler is told of what comes after that.
    pub fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop> {
        match space.waits.load(Relaxed) || has_left_over(space) == Some(true) {
            true => self.attend_for(1, space, &mut |_, _, _| {}),
            false => Ok(()),
        }
    }

    /// Has it served by another thread: one that is to look at all programs in time cannot wait for
    /// the room that faults of one of them need. That thread knows of faults that wait for room.
    pub fn hand_left_over(&self, space: &Space) {
        if !space.waits.load(Relaxed) && has_left_over(space) == Some(true) {
            self.waiting.ring();
        }
    }
}

/// Whether messages of a space were read and not served; none if another thread holds its lock.
pub fn has_left_over(space: &Space) -> Option<bool> {
    space.state.try_lock().map(|state| !state.pending.is_empty())
}

/// Messages that are served in order.
struct ToServe {
    messages: Vec<Message>,
    /// How many of them have been taken. What is left in their places stands for nothing.
    done: usize,
}

impl ToServe {
    /// The one that is served next.
    fn next(&self) -> Option<&Message> {
        self.messages.get(self.done)
    }

    /// Takes that one.
    fn take(&mut self) -> Message {
        self.done += 1;
        std::mem::replace(&mut self.messages[self.done - 1], Message::Unknown(0))
    }

    /// Those that have not been taken, to add to and to take events out of.
    fn rest(&mut self) -> &mut Vec<Message> {
        self.messages.drain(..std::mem::take(&mut self.done));
        &mut self.messages
    }
}

/// What was read off the descriptor together.
struct Round {
    /// Threads to wake: (address, bytes).
    wakes: Vec<(u64, u64)>,
    started: Instant,
    faults: u64,
    /// Nothing was left to read.
    drained: bool,
}

/// The thread that [`Fault::attend`] served last.
#[derive(Debug, Default, Clone, Copy)]
struct Attended {
    /// The thread that faulted last; 0 if none did.
    pub tid: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first waits for room, the second for an event. Events are no faults, and nor is what is
    /// left in the place of one that waits.
    #[test]
    fn no_fault_is_passed_over_when_events_are_read_behind_one_that_waits() {
        let fault = |address| Message::Missing { address, write: false, tid: 7 };
        let mut faults = ToServe { messages: vec![fault(1), fault(2), fault(3)], done: 0 };
        assert_eq!(faults.take().fault_address(), Some(1));
        let rest = faults.rest();
        rest.push(Message::Unmap { start: 0, end: 1 });
        rest.retain(Message::is_fault);
        let left: Vec<_> =
            std::iter::from_fn(|| faults.next().is_some().then(|| faults.take())).collect();
        let left: Vec<_> = left.iter().map(|fault| fault.fault_address()).collect();
        assert_eq!(left, [Some(2), Some(3)]);
    }
}
