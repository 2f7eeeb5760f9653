//! Judges whether the plaintext has passed the bound, and how much is protected at most.

use super::Watcher;
use super::counting::{Answer, Question};
use crate::event_counts::peak;

impl Watcher {
    /// Judges the peak. If the budget's count is above the bound and processes may share pages, the
    /// kernel's count is asked for, as often as its share of time allows, and judges it when it is
    /// known.
    pub(super) fn judge_peak(&mut self) {
        if let Some(answer) = self.counting.answer() {
            self.take(answer);
        }
        // Read before it is known whether a fork has begun: what a fork counts is seen after it.
        let recent = self.pager.budget.recent();
        if !self.is_to_be_counted(recent) {
            self.judge_by_account(recent);
        } else if self.counting.is_due() {
            let question = Question::Plaintext { recent, is_hasty: self.haste.is_on() };
            self.counting.ask(question, &self.family);
        }
    }

    /// Judges what is not judged yet when the run has ended.
    pub(super) fn judge_last(&mut self) {
        if let Some(answer) = self.counting.await_answer() {
            self.take(answer);
        }
        let recent = self.pager.budget.recent();
        if !self.is_to_be_counted(recent) {
            self.judge_by_account(recent);
        } else {
            let pages = self.family.members().least_plaintext(&self.pager);
            self.take(Answer::Plaintext { recent, pages });
        }
    }

    /// Whether `recent` pages by the account are above the bound, and pages may have counted twice.
    fn is_to_be_counted(&mut self, recent: u64) -> bool {
        // A forked child may have come and gone between two looks.
        let begun = self.pager.spaces_begun();
        let has_forked = begun != std::mem::replace(&mut self.spaces_seen, begun);
        let is_shared = self.family.may_share() || has_forked || self.pager.all_spaces().len() > 1;
        let was_shared = std::mem::replace(&mut self.was_shared, is_shared);
        self.may_share |= is_shared || was_shared;
        self.pager.budget.seems_exceeded(recent) && self.may_share
    }

    fn judge_by_account(&mut self, recent: u64) {
        let budget = &self.pager.budget;
        if budget.seems_exceeded(recent) {
            let excess = recent.saturating_sub(budget.limit_of(budget.promised()));
            peak(&self.pager.counts.excess_uncounted_pages_peak, excess);
        }
        budget.judge_peak(recent, None);
        self.may_share = false;
    }

    /// Takes what was counted.
    pub(super) fn take(&mut self, answer: Answer) {
        match answer {
            Answer::Plaintext { recent, pages } => {
                let budget = &self.pager.budget;
                budget.judge_peak(recent, pages.map(|pages| budget.confirmed(pages)));
            }
            Answer::Protected { counted, pages } => {
                let pages = pages.unwrap_or_default();
                peak(&self.pager.counts.protected_pages_peak, pages);
                self.protected.was_counted(counted);
            }
        }
    }
}
