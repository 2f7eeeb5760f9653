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
            (0..faults).for_each(|_| self.counters.served(latency));
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
            if !drained || faults > 0 && rounds < ROUNDS {
                continue;
            }
            // Faults that wait for room are served when the watcher comes by, if there is none now.
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
        let waiting = std::mem::take(&mut state.waiting);
        state.inbox.extend(waiting);
        space.waits.store(false, Relaxed);
        let read = space.uffd.read(&mut state.inbox).map_err(|e| {
            Stop::Internal(format!("reading the faults of space {}: {e}", space.id.0))
        })?;
        profile::ended(Phase::Read);
        if state.inbox.is_empty() && state.wakes.is_empty() {
            return Ok(None);
        }
        let started = Instant::now();
        let faults = self.serve_inbox(space, state, attended)?;
        let drained = read < BATCH_MESSAGES && state.inbox.is_empty();
        Ok(Some(Round { wakes: std::mem::take(&mut state.wakes), started, faults, drained }))
    }

    /// Serves every message of the inbox: events first, for the kernel refuses to fill pages while
    /// one is pending, and the faults behind it mean the space as the event left it.
    fn serve_inbox(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attended: &mut Attended,
    ) -> Result<u64, Stop> {
        let mut faults = std::mem::take(&mut state.inbox);
        self.take_events(space, state, &mut faults)?;
        let mut served = 0;
        let mut next = 0;
        while next < faults.len() {
            let done = match faults[next] {
                ref fault if self.waits_for_agent(space, state, fault) => {
                    Served::Back(TurnBack::Room)
                }
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
                space.uffd.read(&mut faults).map_err(|e| Stop::Internal(e.to_string()))?;
                self.take_events(space, state, &mut faults)?;
                sched::give_way();
                continue;
            }
            if done == Served::Back(TurnBack::Room) {
                let message = std::mem::replace(&mut faults[next], Message::Unknown(0));
                state.put_off(message);
                if !space.waits.swap(true, Relaxed) {
                    self.waiting.ring();
                }
            } else {
                served += 1;
            }
            next += 1;
        }
        faults.clear();
        if state.inbox.is_empty() {
            state.inbox = faults;
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
    /// no handler will be told of it again.
    pub fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop> {
        let left =
            space.state.try_lock().is_some_and(|s| !s.inbox.is_empty() || !s.wakes.is_empty());
        let left = left || space.waits.load(Relaxed);
        if left { self.attend(space, &mut |_, _, _| {}) } else { Ok(()) }
    }
}

/// What was read off the descriptor together.
struct Round {
    /// Whom to wake.
    wakes: Vec<(u64, u64)>,
    started: Instant,
    faults: u64,
    /// Nothing was left to read.
    drained: bool,
}

/// Whom [`Fault::attend`] served.
#[derive(Debug, Default, Clone, Copy)]
struct Attended {
    /// The thread that faulted last; 0 if none did.
    pub tid: i32,
}
