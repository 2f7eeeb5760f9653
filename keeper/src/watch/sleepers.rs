//! Programs that sleep while another lacks room. A fault takes room from its own space first: what
//! a process has that waits for its child, or for input, would stay in the Clear for as long as
//! it waits.

use super::family::Family;
use crate::pager::Pager;
use crate::sys::{process, procfs};
use casemate_pages::SpaceId;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The time between two looks.
const PERIOD: Duration = Duration::from_millis(100);
/// A program lacks room if so many pages come from the store in that time: about a hundredth of it
/// goes into them.
const MISSES: u64 = 100;
/// Who has done next to nothing for so long sleeps.
const SLEPT: Duration = Duration::from_millis(500);
/// What a sleeper has had for so long leaves.
const COLD_AFTER: Duration = Duration::from_millis(500);
/// A process that does next to nothing has processors for no more than this part of the time: many
/// runtimes have a thread that wakes for a moment 20 to 100 times a second.
const LITTLE: u32 = 50;
/// And no more pages than these come to its space between two looks. Who waits for faults has few
/// processors, too.
const FEW: u32 = 32;

/// What a process had done at a look.
#[derive(Clone, Copy)]
struct Work {
    /// The time for which it had processors.
    ran: Duration,
    /// Pages that had come into the Clear of its space.
    came: u32,
    /// Whether it was running, or waited for a processor.
    is_runnable: bool,
}

impl Work {
    /// Of a process of a space; none where that cannot be seen now: it has ended, or another thread
    /// sees to the space.
    fn of(pager: &Pager, pid: i32, space: SpaceId) -> Option<Self> {
        let came = pager.space(space)?.state.try_lock()?.clear.last_stamp();
        let (state, _) = procfs::state_and_parent(pid)?;
        Some(Work { ran: process::processor_time(pid)?, came, is_runnable: state == 'R' })
    }

    /// Whether next to nothing was done until `now`, within that time.
    fn is_little_until(&self, now: &Work, within: Duration) -> bool {
        now.ran.saturating_sub(self.ran) <= within / LITTLE
            && now.came.wrapping_sub(self.came) <= FEW
            && !now.is_runnable
    }
}

/// Which programs sleep, as long as one lacks room.
#[derive(Default)]
pub(super) struct Sleepers {
    looked: Option<Instant>,
    /// Pages that had come from the store at the last look.
    misses: u64,
    /// What each process had done at the last look, and since when it was little.
    seen: HashMap<i32, (Work, Instant)>,
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
            self.seen.clear();
            self.asleep.clear();
            return;
        }
        let living = family.processes.values().filter(|process| !process.has_ended());
        let in_spaces = living.filter_map(|process| Some((process.pid, process.space?)));
        self.look(now, since, in_spaces, |pid, space| Work::of(pager, pid, space));
    }

    fn look(
        &mut self,
        now: Instant,
        since: Duration,
        processes: impl Iterator<Item = (i32, SpaceId)>,
        work_of: impl Fn(i32, SpaceId) -> Option<Work>,
    ) {
        let before = std::mem::take(&mut self.seen);
        let mut last_worked: HashMap<SpaceId, Instant> = HashMap::new();
        for (pid, space) in processes {
            let mut worked = now;
            if let Some(work) = work_of(pid, space) {
                let known = before.get(&pid);
                let known = known.filter(|(before, _)| before.is_little_until(&work, since));
                worked = known.map_or(now, |(_, worked)| *worked);
                self.seen.insert(pid, (work, worked));
            }
            let last = last_worked.entry(space).or_insert(worked);
            *last = worked.max(*last);
        }
        let asleep = last_worked.into_iter().filter(|(_, worked)| now - *worked >= SLEPT);
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

    /// Of a process that had processors for so many ms.
    fn ran(ms: u64) -> Work {
        Work { ran: Duration::from_millis(ms), came: 0, is_runnable: false }
    }

    #[test]
    fn a_space_sleeps_when_all_of_its_processes_do() {
        let start = Instant::now();
        let mut sleepers = Sleepers::default();
        // Processes 1 and 2 have the first space. One is busy.
        let mut look = |nth: u64, busy: i32| {
            let processes = [(1, SpaceId(7)), (2, SpaceId(7)), (3, SpaceId(8))];
            let work_of = |pid, _| Some(ran(if pid == busy { 50 * nth } else { 0 }));
            let now = start + PERIOD * nth as u32;
            sleepers.look(now, PERIOD, processes.into_iter(), work_of);
            [7, 8].map(|id| sleepers.cold_after(SpaceId(id)).is_some())
        };
        for nth in 0..5 {
            assert_eq!(look(nth, 2), [false, false]);
        }
        assert_eq!(look(5, 2), [false, true]);
        for nth in 6..10 {
            assert_eq!(look(nth, 3), [false, false], "{nth}");
        }
        assert_eq!(look(10, 3), [true, false]);
    }

    #[test]
    fn who_wakes_for_a_moment_or_misses_a_few_pages_does_little() {
        let (little, before) = (PERIOD / LITTLE, ran(5));
        let is_little = |work: Work| before.is_little_until(&work, PERIOD);
        assert!(is_little(Work { ran: before.ran + little, came: FEW, ..before }));
        let more = Duration::from_nanos(1);
        assert!(!is_little(Work { ran: before.ran + little + more, ..before }));
        assert!(!is_little(Work { came: FEW + 1, ..before }));
        assert!(!is_little(Work { is_runnable: true, ..before }));
    }

    #[test]
    fn what_cannot_be_seen_works() {
        let (start, one) = (Instant::now(), || [(1, SpaceId(7))].into_iter());
        let mut sleepers = Sleepers::default();
        for nth in 0..20 {
            let work = (nth % 4 != 0).then(|| ran(0));
            sleepers.look(start + PERIOD * nth, PERIOD, one(), |_, _| work);
            assert!(!sleepers.any());
        }
    }

    #[test]
    fn who_waits_for_few_pages_does_not_lack_room() {
        assert!(lacks_room(MISSES, PERIOD) && !lacks_room(MISSES - 1, PERIOD));
        assert!(lacks_room(10 * MISSES, 10 * PERIOD) && !lacks_room(10 * MISSES, 11 * PERIOD));
    }
}
