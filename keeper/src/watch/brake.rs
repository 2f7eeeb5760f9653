//! The brake: a program that takes room faster than room can be made stands still meanwhile.
//!
//! Registered memory needs none, since no fault is filled before there is room. But what a program
//! maps after it was armed is ordinary memory until the next survey, and touching it costs less
//! than evicting as much.

use super::family::Family;
use crate::counters::add;
use crate::hand::Hold;
use crate::pager::evict::Taken;
use crate::pager::{Pager, Stop};
use std::time::{Duration, Instant};

/// How long programs stand still at most. Then there is nothing to be had, or others take it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Programs that stand still, or have yet to stop before they can be let go.
#[derive(Default)]
pub(super) struct Brake {
    held: Vec<Hold>,
}

impl Brake {
    /// If what programs are likely to touch before the next look does not fit any more: those that
    /// grow stand still until it does.
    pub fn apply(
        &mut self,
        pager: &Pager,
        family: &mut Family,
        arming: &[i32],
    ) -> Result<(), Stop> {
        self.release();
        if pager.budget.free() >= pager.budget.brink() {
            return Ok(());
        }
        let mut growing = family.growing();
        growing.retain(|pid| !arming.contains(pid));
        let holds = growing.iter().map(|&pid| Hold::running_threads(pid));
        self.held.extend(holds.filter(|hold| !hold.is_empty()));
        if self.held.is_empty() {
            return Ok(());
        }
        add(&pager.counters.standstills, 1);
        let until = Instant::now() + PATIENCE;
        family.survey_held(pager, &growing, until)?;
        pager.reclaim(until.saturating_duration_since(Instant::now()), Taken::WaitFor)?;
        self.release();
        Ok(())
    }

    /// Whether a thread has yet to stop before it can be let go.
    pub fn is_on(&self) -> bool {
        !self.held.is_empty()
    }

    fn release(&mut self) {
        self.held.retain_mut(|hold| !hold.let_go());
    }
}
