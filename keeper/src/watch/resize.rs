//! Another size of the Clear while the run goes on.
//!
//! A larger one is promised at once. For a smaller one room is made first, a step at a time, so
//! that no fault has to make much of it; when what is left fits, it is promised. If for a while no
//! more leaves, the old size stays.

use super::auto::Auto;
use super::family::Family;
use super::process::Process;
use crate::announcer::allows;
use crate::budget::Budget;
use crate::config::{ClearSize, PAGE_BYTES};
use crate::control::{Answer, Order};
use crate::pager::plain::grace_pages;
use crate::pager::{Pager, Stop};
use crate::sys::procfs;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// Pages that a step takes from the Clear: what a fault may have to make room for takes a
/// millisecond.
const STEP: u64 = (1 << 20) / PAGE_BYTES as u64;
/// The time after the last page that left, after which a smaller size is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the room is waited for that is kept free below any limit. Where nothing more can leave,
/// a size is kept without it.
const ROOM_PATIENCE: Duration = Duration::from_millis(500);
/// How long spaces are waited for in a look.
const LOCK_PATIENCE: Duration = Duration::from_millis(1);
/// The time between two looks.
const PAUSE: Duration = Duration::from_micros(250);
/// The time without a page that leaves, after which the kernel is asked how much there is.
const DOUBT: Duration = Duration::from_millis(50);

/// Changes of the size, one at a time.
pub(super) struct Resize {
    orders: Option<Receiver<Order>>,
    /// What decides while nothing was ordered.
    auto: Option<Auto>,
    shrinking: Option<Shrinking>,
}

/// A smaller size on its way.
struct Shrinking {
    size: ClearSize,
    answer: Option<Sender<Answer>>,
    before: u64,
    progress: Progress,
    /// When the kernel was asked last.
    asked: Option<Instant>,
}

impl Resize {
    /// By what is ordered, and until something is, by `auto`.
    pub fn by(orders: Option<Receiver<Order>>, auto: Option<Auto>) -> Self {
        Resize { orders, auto, shrinking: None }
    }

    /// Whether the size that follows the working set asks what is cold.
    pub fn wants_idle(&self, pager: &Pager) -> bool {
        self.auto.as_ref().is_some_and(|auto| auto.wants_idle(pager))
    }

    /// The time until the next look.
    pub fn wait(&self) -> Duration {
        if self.is_under_way() {
            return PAUSE;
        }
        self.auto.as_ref().map_or(Duration::MAX, Auto::wait)
    }

    /// Another size that is wanted, and who waits for it.
    fn next(
        &mut self,
        pager: &Pager,
        family: &Family,
    ) -> Option<(ClearSize, Option<Sender<Answer>>)> {
        if let Some(Order { size, answer }) = self.orders.as_ref().and_then(|o| o.try_recv().ok()) {
            self.auto = None;
            return Some((size, Some(answer)));
        }
        Some((self.auto.as_mut()?.tick(pager, family)?, None))
    }

    /// Whether the Clear is to be smaller and is not yet.
    fn is_under_way(&self) -> bool {
        self.shrinking.is_some()
    }

    /// Takes the next step, after the plaintext was counted. True if another size is promised now.
    pub fn tick(&mut self, pager: &Pager, family: &Family) -> Result<bool, Stop> {
        if self.shrinking.is_none() {
            let Some((size, answer)) = self.next(pager, family) else { return Ok(false) };
            let before = pager.budget.limit_of(pager.budget.promised());
            // What does not fit the grace list any more is among what is to leave.
            pager.plain.resize(grace_pages(size));
            let progress = Progress::from(Instant::now(), pager.budget.used());
            pager.budget.take_refusal();
            self.shrinking = Some(Shrinking { size, answer, before, progress, asked: None });
        }
        let Some(shrinking) = &mut self.shrinking else { return Ok(false) };
        let Some(is_in_force) = shrinking.step(pager, family)? else { return Ok(false) };
        if let Some(done) = self.shrinking.take() {
            done.finish(pager, family, is_in_force);
        }
        Ok(is_in_force)
    }
}

impl Shrinking {
    /// Whether the size can be promised; none if that is not known yet.
    fn step(&mut self, pager: &Pager, family: &Family) -> Result<Option<bool>, Stop> {
        let (budget, now) = (&pager.budget, Instant::now());
        let (target, used) = (budget.limit_of(self.size), budget.used());
        if target >= self.before && target >= used {
            return Ok(Some(true));
        }
        if budget.take_refusal() {
            return Ok(Some(false));
        }
        // A store that runs full ends the run: before that the size is given up.
        if used > target && !pager.evict().has_places() {
            return Ok(Some(false));
        }
        let aim = next_aim(budget.limit(), used, target);
        budget.aim_at(aim);
        // Every space is locked once after the aim is set: a fault that found room by a larger one
        // has been filled by then, and is counted.
        let fits = aim == target
            && pager.evict().fit(LOCK_PATIENCE)?
            && (self.fits_with_room(budget) || self.fits_by_kernel(pager, family, target))
            && !may_outgrow(pager, family);
        if fits {
            return Ok(Some(true));
        }
        self.progress.see(now, used);
        Ok(self.progress.has_stalled(now).then_some(false))
    }

    /// Whether what is used fits, and the room is free that is kept for what grows unseen between
    /// two looks.
    fn fits_with_room(&self, budget: &Budget) -> bool {
        let suffices = if self.progress.since.elapsed() < ROOM_PATIENCE { budget.low() } else { 0 };
        budget.used() + suffices <= budget.limit()
    }

    /// Where processes share pages without our knowing, the count is too high.
    fn fits_by_kernel(&mut self, pager: &Pager, family: &Family, target: u64) -> bool {
        let now = Instant::now();
        let is_due = |when: Instant| now.duration_since(when) >= DOUBT;
        if !is_due(self.progress.since) || !self.asked.is_none_or(is_due) || !family.may_share() {
            return false;
        }
        self.asked = Some(now);
        let plaintext = family.members().plaintext_by_kernel(pager);
        plaintext.is_some_and(|pages| pager.budget.confirmed(pages) <= target)
    }

    fn finish(self, pager: &Pager, family: &Family, is_in_force: bool) {
        let budget = &pager.budget;
        if is_in_force {
            // What was used until now is judged by the size that was in force.
            let recent = budget.recent();
            if budget.seems_exceeded(recent) {
                let plaintext = family.members().least_plaintext(pager);
                budget.judge_peak(recent, plaintext.map(|pages| budget.confirmed(pages)));
            }
            match budget.promised() == self.size {
                true => budget.aim_as_promised(),
                false => budget.promise(self.size),
            }
        } else {
            budget.aim_as_promised();
            pager.plain.resize(grace_pages(budget.promised()));
            // What was too much for the smaller size is not for this one.
            pager.growing.lock().look_again(|own, all| allows(budget, own, all));
        }
        let (limit, used) = (budget.limit_of(budget.promised()), budget.used());
        if let Some(answer) = self.answer {
            // An error means that the caller has gone.
            let _ = answer.send(Answer { is_in_force, before: self.before, limit, used });
        }
    }
}

/// The size that room is made by next, on the way from `aim` to `target`: never more than a step
/// below what is used, so that a fault has no more than that to make room for.
fn next_aim(aim: u64, used: u64, target: u64) -> u64 {
    aim.min(used.saturating_sub(STEP)).max(target)
}

/// Whether a process without an agent could get more than there is room for, unheard, or has asked
/// for that when the Clear was larger. It is to be given its agent first.
fn may_outgrow(pager: &Pager, family: &Family) -> bool {
    let budget: &Budget = &pager.budget;
    let owes = pager.growing.lock().look_again(|own, all| allows(budget, own, all));
    let parent = |pid| procfs::state_and_parent(pid).map(|(_, parent)| parent);
    let is_unheard = |p: &Process| !pager.heard.lock().includes(p.pid, parent);
    owes || budget.is_scarce() && family.unarmed().any(is_unheard)
}

/// Whether pages leave.
struct Progress {
    least: u64,
    since: Instant,
}

impl Progress {
    fn from(now: Instant, used: u64) -> Self {
        Progress { least: used, since: now }
    }

    fn see(&mut self, now: Instant, used: u64) {
        if used < self.least {
            *self = Progress::from(now, used);
        }
    }

    fn has_stalled(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_makes_room_for_a_step_at_most() {
        // From 64 MiB to 8, all of it in use: 16,384 pages to 2048.
        let (mut aim, mut steps) = (16_384, 0);
        while aim > 2048 {
            let used = aim;
            aim = next_aim(aim, used, 2048);
            assert!(aim < used && used - aim <= STEP);
            steps += 1;
        }
        assert_eq!((aim, steps), (2048, 56));
        // What is free is given up at once, and what does not leave is not run ahead of.
        assert_eq!(next_aim(16_384, 1000, 2048), 2048);
        assert_eq!(next_aim(16_128, 16_384, 2048), 16_128);
    }

    #[test]
    fn a_size_is_given_up_when_nothing_has_left_for_long_and_not_before() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut progress = Progress::from(start, 100);
        progress.see(at(5000), 99);
        progress.see(at(9000), 99);
        progress.see(at(9500), 120);
        assert!(!progress.has_stalled(at(14_999)));
        assert!(progress.has_stalled(at(15_000)));
    }
}
