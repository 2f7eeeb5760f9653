//! The two turn-backs of a fault.
//!
//! A fault is served in one go: from the look-up of its record to the fill nothing else is done
//! under the lock of its space. Where something else has to be done first, serving is turned back
//! before it has released anything, that is done, and the fault is begun anew.

use super::{Fault, Served};
use crate::budget::Budget;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState};
use crate::sys::uffd::Refusal;
use std::sync::Arc;

/// Why serving a fault is turned back and begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pager) enum TurnBack {
    /// An event must be read first: a call that changes the address space is half done, and until
    /// it is told of, the kernel fills no page and lifts no protection. It arises in `unless_event`
    /// and ends, since such a call waits for its event to be read, and is done then: each turn lets
    /// at least one call of the program's go on. (The kernel may say so for a moment after the
    /// event was read; the thread that serves gives way meanwhile.)
    Event,
    /// Room must be made first, or the agent awaited without which none can be. Making room reads
    /// events, seals pages and serves the agent's own faults: what was looked up before may not
    /// hold after it. It arises in `Fault::needs_room`, once in an attempt: begun anew, the fault
    /// is served with the room that there is then. If there is none, and others can make some, the
    /// fault is put off; so is one of a forked child that has no agent yet. It ends, since each
    /// patience of `waits.rs` does: then the fault is served without.
    Room,
}

/// Why a fault is not served.
#[derive(Debug)]
pub(super) enum Unserved {
    Back(TurnBack),
    Stop(Stop),
}

impl From<Stop> for Unserved {
    fn from(stop: Stop) -> Self {
        Unserved::Stop(stop)
    }
}

impl From<TurnBack> for Unserved {
    fn from(back: TurnBack) -> Self {
        Unserved::Back(back)
    }
}

/// How many pages a fault is to bring in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// As many as its stream asks for.
    pub asked: u64,
    /// The same, or 1 where mappings are too small for runs.
    pub window: u64,
    /// The distance from each to the next, in pages.
    pub step: i64,
}

impl Ahead {
    /// Whether they are neighbours upwards: one run from the page that is missing on.
    pub fn is_run(self) -> bool {
        self.step == 1
    }
}

/// What is kept of a fault that was turned back for room.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    /// How far is read ahead: streams are told of a fault once.
    pub ahead: Option<Ahead>,
    /// Pages that it needs room for.
    wants: u64,
    /// Room was made for it.
    pub has_made_room: bool,
    /// Pages that it has claimed room for.
    claimed: u64,
}

impl Attempt {
    /// Claims room for up to `most` pages, of which one comes in any case.
    pub(super) fn claim_up_to(&mut self, budget: &Budget, most: u64) -> u64 {
        let claimed = budget.claim_up_to(most);
        self.claimed += claimed;
        claimed.max(1)
    }
}

impl Fault<'_> {
    /// Serves a fault by `step`, which is turned back for room once at most. A thread waits for
    /// room where there is none, but not without `tid`.
    pub(super) fn serve(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        tid: Option<i32>,
        step: impl Fn(&mut SpaceState, &mut Attempt) -> Result<Served, Unserved>,
    ) -> Result<Served, Stop> {
        let mut attempt = Attempt::default();
        loop {
            let served = step(state, &mut attempt);
            self.budget.give_back(std::mem::take(&mut attempt.claimed));
            match served {
                Ok(served) => {
                    space.note_plaintext(state);
                    return Ok(served);
                }
                Err(Unserved::Stop(stop)) => return Err(stop),
                Err(Unserved::Back(TurnBack::Event)) => return Ok(Served::Back(TurnBack::Event)),
                Err(Unserved::Back(TurnBack::Room)) => {
                    self.asks.make_room(space, state, attempt.wants)?;
                    if tid.is_some_and(|tid| self.waits_for_room(space, state, tid)) {
                        return Ok(Served::Back(TurnBack::Room));
                    }
                    attempt.has_made_room = true;
                }
            }
        }
    }

    /// Turns a fault back that needs room for `pages` unless there is room, or was made for it.
    pub(super) fn needs_room(
        &self,
        space: &Space,
        state: &mut SpaceState,
        attempt: &mut Attempt,
        pages: u64,
    ) -> Result<(), TurnBack> {
        if attempt.has_made_room {
            return Ok(());
        }
        let is_beyond_quota =
            space.most_held().is_some_and(|most| state.plaintext_pages() + pages > most);
        if is_beyond_quota || !self.budget.claim(pages, self.budget.low()) {
            attempt.wants = pages;
            return Err(TurnBack::Room);
        }
        attempt.claimed += pages;
        state.faults.waits = None;
        Ok(())
    }
}

/// What the kernel answered, unless it wants an event to be read first.
pub(super) fn unless_event<T>(answer: Result<T, Refusal>) -> Result<Result<T, Refusal>, TurnBack> {
    match answer {
        Err(Refusal::EventPending) => Err(TurnBack::Event),
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pager::space::{Tried, WaitsForRoom};
    use crate::pager::tests::pager_and_space;
    use std::cell::Cell;

    #[test]
    fn a_fault_is_turned_back_for_room_once() {
        let (pager, space) = pager_and_space();
        let mut state = SpaceState::default();
        state.faults.waits =
            Some(WaitsForRoom::begin(Tried { left: 0, in_vain: 0, beyond_help: 0 }));
        let served = |state: &mut SpaceState| {
            let attempts = Cell::new(0);
            let served = pager.fault().serve(&space, state, Some(7), |state, attempt| {
                attempts.set(attempts.get() + 1);
                pager.fault().needs_room(&space, state, attempt, 3)?;
                Ok(Served::Yes)
            });
            assert_eq!(served.expect("nothing that fails"), Served::Yes);
            attempts.get()
        };
        assert_eq!(served(&mut state), 1, "there is room");
        assert!(state.faults.waits.is_none(), "the next wait begins anew");
        // No space can give any: the fault is served all the same.
        pager.budget.track(pager.budget.free() - 2);
        assert_eq!(served(&mut state), 2);
    }

    #[test]
    fn only_an_event_turns_a_request_back() {
        assert_eq!(unless_event::<()>(Err(Refusal::EventPending)), Err(TurnBack::Event));
        assert_eq!(unless_event(Ok(3)), Ok(Ok(3)));
        for refusal in [Refusal::Present, Refusal::NoMapping, Refusal::SpaceGone] {
            assert_eq!(unless_event::<()>(Err(refusal)), Ok(Err(refusal)));
        }
    }
}
