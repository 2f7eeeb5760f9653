//! The brake: stops a program that uses room faster than eviction can make it, until there is room.
//!
//! Registered memory needs no brake: a fault is filled only when there is room. But memory that a
//! program maps after it was armed is ordinary memory until the next survey, and touching it is
//! faster than evicting as much.

use super::family::Family;
use crate::event_counts::add;
use crate::hand::Hold;
use crate::pager::evict::Taken;
use crate::pager::{Pager, Stop};
use std::time::{Duration, Instant};

/// The longest time that programs are stopped. After that no more room can be made, or other
/// programs use it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Programs that are stopped, or were asked to and can be resumed only after they stopped.
#[derive(Default)]
pub(super) struct Brake {
    held: Vec<Hold>,
}

impl Brake {
    /// If the pages that programs are expected to touch before the next look do not fit, stops
    /// those that grow until they fit.
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
        add(&pager.counts.standstills, 1);
        let until = Instant::now() + PATIENCE;
        family.survey_held(pager, &growing, until)?;
        pager.evict().reclaim(until.saturating_duration_since(Instant::now()), Taken::WaitFor)?;
        self.release();
        Ok(())
    }

    /// Whether threads are held: stopped, or asked to stop.
    pub fn is_on(&self) -> bool {
        !self.held.is_empty()
    }

    fn release(&mut self) {
        self.held.retain_mut(|hold| !hold.let_go());
    }
}
