//! Judges whether the plaintext has passed the bound.

use super::{Watcher, due};
use crate::event_counts::peak;
use std::time::Instant;

impl Watcher {
    /// Judges the peak. If the budget's count is above the bound and processes may share pages, the
    /// kernel's count is read, as often as its share of time allows.
    pub(super) fn judge_peak(&mut self) {
        let budget = &self.pager.budget;
        // Read before it is known whether a fork has begun: what a fork counts is seen after it.
        let recent = budget.recent();
        // A forked child may have come and gone between two looks.
        let begun = self.pager.spaces_begun();
        let has_forked = begun != std::mem::replace(&mut self.spaces_seen, begun);
        let is_shared = self.family.may_share() || has_forked || self.pager.all_spaces().len() > 1;
        let was_shared = std::mem::replace(&mut self.was_shared, is_shared);
        self.may_share |= is_shared || was_shared;
        if budget.seems_exceeded(recent) && self.may_share {
            let is_due = self.judged.is_none_or(|(when, cost)| due(when, cost));
            let has_ended = self.main_end.is_some() && self.judged.is_none();
            // To count takes milliseconds. What grows meanwhile is stopped first; under a small
            // limit it waits for room.
            let grows_on = !budget.is_small() && self.family.grow_beside(&self.arming.pids());
            let has_time = match grows_on {
                true => self.haste.has_long_paused(self.judged),
                false => self.haste.has_time_for(self.judged),
            };
            if !is_due || !has_ended && !has_time {
                return;
            }
            let when = Instant::now();
            let most = self.haste.is_on().then(|| self.family.plaintext_at_most(&self.pager));
            let plaintext = match most.flatten().filter(|&pages| budget.allows(pages)) {
                Some(pages) => Some(pages),
                None => self.family.least_plaintext(&self.pager),
            };
            budget.judge_peak(recent, plaintext.map(|pages| budget.confirmed(pages)));
            self.judged = Some((when, when.elapsed()));
        } else {
            if budget.seems_exceeded(recent) {
                let excess = recent.saturating_sub(budget.limit_of(budget.promised()));
                peak(&self.pager.counts.excess_uncounted_pages_peak, excess);
            }
            budget.judge_peak(recent, None);
        }
        self.may_share = false;
    }
}
