//! A smaller Clear: what is kept in plaintext because the Clear was larger.

use super::Evict;
use crate::pager::Stop;
use crate::sys::clock::Instant;
use std::time::Duration;

impl Evict<'_> {
    /// Gives up what a larger Clear had room for and no eviction takes: pages of the grace list
    /// beyond its capacity, which are encrypted, and pages that stayed for being few. True once all
    /// of it is given up; spaces that others hold for longer than `patience` are passed over.
    pub fn fit(&self, patience: Duration) -> Result<bool, Stop> {
        let until = Instant::now() + patience;
        let mut had_all = true;
        for space in self.spaces.all() {
            let Some(mut state) = space.state.try_lock_until(until) else {
                had_all = false;
                continue;
            };
            if state.clear.kept.pages() > self.budget.most_kept() {
                state.clear.keep_no_longer();
            }
            while self.plain.lent() > self.plain.capacity() && !state.grace.pages.is_empty() {
                let sealed = self.seal_oldest(&space, &mut state.grace, self.budget.batch());
                self.end.or_stop(sealed)?;
            }
        }
        Ok(had_all && self.plain.lent() <= self.plain.capacity())
    }
}
