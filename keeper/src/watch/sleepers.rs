//! Programs that sleep while another lacks room. A fault takes room from its own space first: what
//! a process has that waits for its child, or for input, would stay in the Clear for as long as
//! it waits.

use super::family::Family;
use crate::pager::Pager;
use crate::sys::process;
use casemate_pages::SpaceId;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The time between two looks.
const PERIOD: Duration = Duration::from_millis(100);
/// A program lacks room if so many pages come from the store in that time: about a hundredth of it
/// goes into them.
const MISSES: u64 = 100;
/// Who has had no processor for so long sleeps.
const SLEPT: Duration = Duration::from_millis(500);
/// What a sleeper has had for so long leaves.
const COLD_AFTER: Duration = Duration::from_millis(500);

/// Which programs sleep, as long as one lacks room.
#[derive(Default)]
pub(super) struct Sleepers {
    looked: Option<Instant>,
    /// Pages that had come from the store at the last look.
    misses: u64,
    /// How long each process had had processors, and when that last changed.
    ran: HashMap<i32, (Duration, Instant)>,
    asleep: HashSet<SpaceId>,
}

impl Sleepers {
    /// Makes the look that is due.
    pub fn tick(&mut self, pager: &Pager, family: &Family) {
        let now = Instant::now();
        let since = self.looked.map_or(PERIOD, |looked| now - looked);
        if since < PERIOD {
            return;
        }
        let misses = pager.counts.pages_in.load(Relaxed);
        let came = misses - self.misses;
        (self.looked, self.misses) = (Some(now), misses);
        if !lacks_room(came, since) {
            self.ran.clear();
            self.asleep.clear();
            return;
        }
        let living = family.processes.values().filter(|process| !process.has_ended());
        let in_spaces = living.filter_map(|process| Some((process.pid, process.space?)));
        self.look(now, in_spaces, process::processor_time);
    }

    fn look(
        &mut self,
        now: Instant,
        processes: impl Iterator<Item = (i32, SpaceId)>,
        processor_time: impl Fn(i32) -> Option<Duration>,
    ) {
        let before = std::mem::take(&mut self.ran);
        let mut last_ran: HashMap<SpaceId, Instant> = HashMap::new();
        for (pid, space) in processes {
            let Some(time) = processor_time(pid) else { continue };
            let known = before.get(&pid).filter(|(before, _)| *before == time);
            let when = known.map_or(now, |(_, when)| *when);
            self.ran.insert(pid, (time, when));
            let last = last_ran.entry(space).or_insert(when);
            *last = when.max(*last);
        }
        let asleep = last_ran.into_iter().filter(|(_, when)| now - *when >= SLEPT);
        self.asleep = asleep.map(|(space, _)| space).collect();
    }

    /// The time after which pages of a space leave; none if it does not sleep.
    pub fn cold_after(&self, space: SpaceId) -> Option<Duration> {
        self.asleep.contains(&space).then_some(COLD_AFTER)
    }

    /// Whether one sleeps whose pages are to leave.
    pub fn any(&self) -> bool {
        !self.asleep.is_empty()
    }
}

fn lacks_room(misses: u64, within: Duration) -> bool {
    u128::from(misses) * PERIOD.as_nanos() >= u128::from(MISSES) * within.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_sleeps_when_all_of_its_processes_do() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut sleepers = Sleepers::default();
        let mut look = |ms, busy: i32| {
            let processes = [(1, SpaceId(7)), (2, SpaceId(7)), (3, SpaceId(8))];
            let time = |pid| Some(Duration::from_millis(if pid == busy { ms } else { 5 }));
            sleepers.look(at(ms), processes.into_iter(), time);
            [7, 8].map(|id| sleepers.cold_after(SpaceId(id)).is_some())
        };
        assert_eq!(look(0, 0), [false, false]);
        assert_eq!(look(250, 2), [false, false]);
        assert_eq!(look(499, 2), [false, false]);
        assert_eq!(look(500, 2), [false, true]);
        // Process 2 has run since: its time is another one.
        assert_eq!(look(900, 0), [false, true]);
        assert_eq!(look(1399, 0), [false, true]);
        assert_eq!(look(1400, 0), [true, true]);
        assert_eq!(look(1500, 3), [true, false]);
    }

    #[test]
    fn who_waits_for_few_pages_does_not_lack_room() {
        assert!(lacks_room(MISSES, PERIOD) && !lacks_room(MISSES - 1, PERIOD));
        assert!(lacks_room(10 * MISSES, 10 * PERIOD) && !lacks_room(10 * MISSES, 11 * PERIOD));
    }
}
