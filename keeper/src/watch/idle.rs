//! When pages are idle: the watcher remembers which pages each space had a while ago.
//!
//! A *look* notes what a space has, and finds what has been there for so long that it leaves. That
//! leaves by *turns*: a batch of each space, then a pause, so that the program gets its faults
//! served and its processors.

use super::sleepers::Sleepers;
use crate::hand::Stopper;
use crate::pager::evict::{IdleSince, Moment};
use crate::pager::space::{Space, SpaceState};
use crate::pager::{Pager, Stop};
use casemate_pages::SpaceId;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Looks in the time after which a page is idle.
const LOOKS: u32 = 8;
/// A turn begins no further batch after this time, and waits no longer for a space that another
/// thread has: a program that faults all the time has its space all the time.
const TURN: Duration = Duration::from_millis(1);
/// The pause after a turn, as a multiple of what the turn took.
const PAUSE_TURNS: u32 = 4;
/// The shortest and the longest such pause.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// The time until spaces are sought whose pages may be idle, where only quotas say when.
const USUAL_WAIT: Duration = Duration::from_millis(500);

/// What is known of the last while.
pub(super) struct Idle {
    /// When there is something to do again.
    due: Instant,
    pasts: HashMap<SpaceId, Past<Moment>>,
    /// What is leaving, each with the moments of the look that found it: what came later stays.
    leaving: VecDeque<(SpaceId, IdleSince)>,
}

impl Idle {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Idle { due: Instant::now(), pasts: HashMap::new(), leaving: VecDeque::new() }
    }

    /// The time until there is something to do again.
    pub fn wait(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Makes the looks that are due, and a turn. Pages are idle after the time that their program's
    /// quota says, or else `after` (none: they never are), and those of sleepers earlier.
    pub fn tick(
        &mut self,
        pager: &Pager,
        after: Option<Duration>,
        sleepers: &Sleepers,
    ) -> Result<(), Stop> {
        let begun = Instant::now();
        if begun < self.due {
            return Ok(());
        }
        self.look(pager, begun, after, sleepers);
        self.take_turn(pager)?;
        let ended = Instant::now();
        let pause = ((ended - begun) * PAUSE_TURNS).clamp(PAUSES.0, PAUSES.1);
        let next = self.pasts.values().map(|past| past.next).min();
        let next = next.map_or(ended + after.map_or(USUAL_WAIT, |after| after / LOOKS), |next| {
            next.max(ended + pause)
        });
        self.due = if self.leaving.is_empty() { next } else { ended + pause };
        Ok(())
    }

    fn look(&mut self, pager: &Pager, now: Instant, after: Option<Duration>, sleepers: &Sleepers) {
        let of_quota = |space: &Space| space.quota.as_ref().and_then(|quota| quota.idle());
        let usual = |space: &Space| of_quota(space).or(after);
        // Of a program that sleeps the room is wanted: what it shares would leave as copies, and
        // the Clear would have as much as before.
        let after = |space: &Arc<Space>| match (usual(space), sleepers.cold_after(space.id)) {
            (Some(usual), Some(asleep)) if usual <= asleep => Some((usual, false)),
            (_, Some(asleep)) => Some((asleep, true)),
            (usual, None) => usual.map(|usual| (usual, false)),
        };
        let spaces = pager.all_spaces();
        let spaces: Vec<_> =
            spaces.iter().filter_map(|space| Some((space, after(space)?))).collect();
        let is_sought = |id| spaces.iter().any(|(space, _)| space.id == id);
        self.pasts.retain(|&id, _| is_sought(id));
        self.leaving.retain(|&(id, _)| is_sought(id));
        for (space, (after, keeps_shared)) in
            spaces.into_iter().filter(|(space, _)| !space.is_gone())
        {
            let past = self.pasts.entry(space.id).or_insert_with(|| Past::from(now));
            if now < past.next {
                continue;
            }
            // If another thread has it all that time, the look stays due.
            let Some(state) = space.state.try_lock_until(now + TURN) else { continue };
            let Some((clear, grace)) = past.look(now, after, Moment::of(&state)) else {
                continue;
            };
            let since = IdleSince { clear, grace, keeps_shared };
            match self.leaving.iter_mut().find(|(id, _)| *id == space.id) {
                Some((_, before)) => *before = since,
                None => self.leaving.push_back((space.id, since)),
            }
        }
    }

    /// Takes a batch of each space, as far as the time allows.
    fn take_turn(&mut self, pager: &Pager) -> Result<(), Stop> {
        let until = Instant::now() + TURN;
        for _ in 0..self.leaving.len() {
            if Instant::now() >= until {
                break;
            }
            let Some((id, since)) = self.leaving.pop_front() else { break };
            let Some(space) = pager.space(id).filter(|space| !space.is_gone()) else { continue };
            // The next look tries again.
            if !pager.evict().can_store_idle() {
                self.leaving.clear();
                break;
            }
            if take_batch(pager, &space, since, until)? {
                self.leaving.push_back((id, since));
            }
        }
        Ok(())
    }
}

/// Takes a batch of what is idle in a space. True if there may be more.
fn take_batch(
    pager: &Pager,
    space: &Arc<Space>,
    since: IdleSince,
    until: Instant,
) -> Result<bool, Stop> {
    let Some(mut state) = space.state.try_lock_until(until) else { return Ok(true) };
    if is_agent_stopped(&state) {
        return Ok(false);
    }
    let more = pager.evict().retire_idle(space, &mut state, since)?;
    drop(state);
    pager.fault().hand_left_over(space);
    Ok(more)
}

/// Whether something has stopped the agent of a space. It is needed once there is no room, and the
/// run ends then, but nothing fails for want of it until then.
fn is_agent_stopped(state: &SpaceState) -> bool {
    state.agent.hand.as_ref().is_some_and(|hand| Stopper::of(hand.agent_pid()).is_some())
}

/// What was noted of one space.
struct Past<T> {
    /// When the next look is due.
    next: Instant,
    /// The oldest first: one for each look, and of those that are old enough the last.
    moments: VecDeque<(Instant, T)>,
}

impl<T: Copy> Past<T> {
    fn from(now: Instant) -> Self {
        Past { next: now, moments: VecDeque::new() }
    }

    /// Notes how the space is `now`. Returns how it was a time of `after` ago or before, and how at
    /// the last look.
    fn look(&mut self, now: Instant, after: Duration, moment: T) -> Option<(T, T)> {
        self.next = now + after / LOOKS;
        let last = self.moments.back().copied();
        self.moments.push_back((now, moment));
        let is_old = |&(when, _): &(Instant, T)| now - when >= after;
        while self.moments.get(1).is_some_and(is_old) {
            self.moments.pop_front();
        }
        let oldest = self.moments.front().filter(|moment| is_old(moment))?;
        Some((oldest.1, last?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_leaves_after_the_time_and_not_before() {
        let (start, after) = (Instant::now(), Duration::from_secs(8));
        let at = |ms| start + Duration::from_millis(ms);
        let mut past = Past::from(start);
        for second in 0..8 {
            assert_eq!(past.look(at(second * 1000), after, second), None);
            assert_eq!(past.next, at((second + 1) * 1000));
        }
        assert_eq!(past.look(at(7999), after, 8), None);
        assert_eq!(past.look(at(8000), after, 9), Some((0, 8)));
        // A look that comes late takes what has been there long enough by then.
        assert_eq!(past.look(at(10_999), after, 10), Some((2, 9)));
        assert_eq!(past.look(at(11_000), after, 11), Some((3, 10)));
    }
}
