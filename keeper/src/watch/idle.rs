//! When pages are idle: the watcher remembers which pages each space had a while ago.

use crate::pager::evict::Moment;
use crate::pager::{Pager, Stop};
use casemate_pages::SpaceId;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Looks in the time after which a page is idle.
const LOOKS: u32 = 8;
/// The longest time that one look takes out pages of one space.
const PATIENCE: Duration = Duration::from_millis(2);

/// What is known of the last while.
pub(super) struct Idle {
    after: Duration,
    next: Instant,
    /// Moments of each space, the oldest first: one for each look, and of those that are older than
    /// `after` the last.
    moments: HashMap<SpaceId, VecDeque<(Instant, Moment)>>,
}

impl Idle {
    /// Pages are idle after this time.
    pub fn after(after: Duration) -> Self {
        Idle { after, next: Instant::now(), moments: HashMap::new() }
    }

    /// Makes a look, if one is due.
    pub fn tick(&mut self, pager: &Pager) -> Result<(), Stop> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + self.after / LOOKS;
        let spaces = pager.all_spaces();
        self.moments.retain(|id, _| spaces.iter().any(|space| space.id == *id));
        for space in spaces.iter().filter(|space| !space.is_gone()) {
            // Another look comes soon.
            let Some(mut state) = space.state.try_lock() else { continue };
            let moments = self.moments.entry(space.id).or_default();
            let spared = moments.back().map(|(_, moment)| *moment);
            moments.push_back((now, Moment::of(&state)));
            while moments.get(1).is_some_and(|(when, _)| now - *when >= self.after) {
                moments.pop_front();
            }
            let came = moments.front().filter(|(when, _)| now - *when >= self.after);
            let Some((came, spared)) = came.map(|(_, moment)| *moment).zip(spared) else {
                continue;
            };
            pager.evict().retire_idle(space, &mut state, (came, spared), PATIENCE)?;
            drop(state);
            pager.fault().serve_left_over(space)?;
        }
        Ok(())
    }
}
