//! The run's plaintext as the kernel counts it: a shared page once.

use super::family::Family;
use super::heirs::is_orphaned;
use crate::event_counts::peak;
use crate::pager::Pager;
use crate::pager::space::SpaceState;
use crate::sys::process;
use crate::sys::procfs::{self, AnonymousShare};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often the kernel's count is read, if processes end while it is.
const COUNTS: u32 = 4;

/// Counts of which the least confirms a peak, while pages come and go.
const MOVING_COUNTS: u32 = 3;

/// How long the count at which no page comes or goes waits for the locks of all spaces.
const STANDSTILL_PATIENCE: Duration = Duration::from_millis(100);

/// The processes of a run as the watcher last saw them, for another thread to count.
pub(super) struct Members {
    /// Those that had not ended, and whose memory each shares if not its own.
    living: HashMap<i32, Option<i32>>,
    /// A process without a space may have the memory of another one's.
    any_homeless: bool,
}

impl Family {
    /// The processes that there are now.
    pub fn members(&self) -> Members {
        let living = || self.processes.values().filter(|process| !process.has_ended());
        Members {
            living: living().map(|process| (process.pid, process.shares_with)).collect(),
            any_homeless: living().any(|p| p.space.is_none() && p.was_registered()),
        }
    }
}

impl Members {
    /// The least of a few counts, or the first that is within the bound. A page that goes from one
    /// process to another, or to the keeper, while they are counted can count twice, and so can
    /// each that a forked child has in common with its parent when it ends. So before a peak above
    /// the bound is confirmed, pages are counted while none comes or goes. None if they cannot be.
    pub fn least_plaintext(&self, pager: &Pager) -> Option<u64> {
        let mut least = u64::MAX;
        for _ in 0..MOVING_COUNTS {
            least = least.min(self.plaintext_by_kernel(pager)?);
            if pager.budget.allows(least) {
                return Some(least);
            }
        }
        let at_standstill = self.plaintext_at_standstill(pager);
        if at_standstill.is_none() {
            peak(&pager.counts.excess_moving_pages_peak, pager.budget.excess(least));
        }
        Some(at_standstill.map_or(least, |pages| pages.min(least)))
    }

    /// The plaintext of the run: what the kernel counts, of copies of file pages no more than the
    /// budget does, and what the keeper holds.
    pub fn plaintext_by_kernel(&self, pager: &Pager) -> Option<u64> {
        let spared = pager.spared_pages();
        let share = self.share_by_kernel(pager)?;
        // What goes to the grace list after its process was counted would count twice.
        let spared = spared.min(pager.spared_pages());
        Some(share.own_pages() + share.copied_pages().min(pager.budget.copies()) + spared)
    }

    /// The same, while the pager moves no page: it has the locks of all spaces meanwhile, and
    /// faults wait. None if a lock is not to be had.
    fn plaintext_at_standstill(&self, pager: &Pager) -> Option<u64> {
        let is_orphaned = self.any_orphaned(pager);
        let spaces = pager.all_spaces();
        let until = Instant::now() + STANDSTILL_PATIENCE;
        // No other thread that has one waits for another, and this one does for a limited time.
        let mut held = Vec::new();
        for space in &spaces {
            held.push(space.state.try_lock_until(until)?);
        }
        let share = self.living_share()?;
        let left = match is_orphaned {
            true => AnonymousShare::default(),
            false => self.left_in_all(held.iter().map(|state| &**state))?,
        };
        let own_pages = share.plus(left).own_pages();
        let copied_pages = share.copied_pages().min(pager.budget.copies());
        Some(own_pages + copied_pages + pager.spared_pages())
    }

    /// No less than [`Family::plaintext_by_kernel`], and known sooner: copies of file pages count
    /// whole.
    pub fn plaintext_at_most(&self, pager: &Pager) -> Option<u64> {
        let count = |thread| procfs::shared_anonymous_pages(thread);
        let spared = pager.spared_pages();
        let (pages, _) = self.count_living(count, |sum: u64, pages| sum + pages)?;
        Some(pages + self.left_by_ended(pager)?.own_pages() + spared.max(pager.spared_pages()))
    }

    /// The pages that the processes have in RAM, in mappings of no file, as the kernel counts them.
    /// None if that cannot be read.
    pub fn resident_by_kernel(&self, pager: &Pager) -> Option<u64> {
        self.share_by_kernel(pager).map(AnonymousShare::own_pages)
    }

    /// What the processes have in RAM as the kernel counts it: a shared page once. Memory of which
    /// the processes have just ended, but not the agent, is added, unless another process may have
    /// it. None if that cannot be read.
    fn share_by_kernel(&self, pager: &Pager) -> Option<AnonymousShare> {
        Some(self.living_share()?.plus(self.left_by_ended(pager)?))
    }

    /// What the living processes have in RAM as the kernel counts it.
    fn living_share(&self) -> Option<AnonymousShare> {
        let mut share = AnonymousShare::default();
        for _ in 0..COUNTS {
            let counted;
            (share, counted) = self.count_living(AnonymousShare::of, AnonymousShare::plus)?;
            // What one had that ended meanwhile may have been counted again, as another's.
            if !counted.into_iter().any(procfs::is_gone) {
                break;
            }
        }
        Some(share)
    }

    /// Memory of which the processes have just ended, but not the agent, unless another process may
    /// have it. None if it cannot be read.
    fn left_by_ended(&self, pager: &Pager) -> Option<AnonymousShare> {
        let mut left = AnonymousShare::default();
        if self.any_orphaned(pager) {
            return Some(left);
        }
        for space in pager.all_spaces() {
            // A space whose lock is taken is in use.
            let Some(state) = space.state.try_lock() else { continue };
            left = left.plus(self.left_in(&state)?);
        }
        Some(left)
    }

    fn left_in_all<'a>(
        &self,
        mut spaces: impl Iterator<Item = &'a SpaceState>,
    ) -> Option<AnonymousShare> {
        spaces
            .try_fold(AnonymousShare::default(), |sum, state| Some(sum.plus(self.left_in(state)?)))
    }

    /// The agent shares the memory, and the kernel frees it when both have ended.
    fn left_in(&self, state: &SpaceState) -> Option<AnonymousShare> {
        let pids = &state.processes.pids;
        let have_ended = !pids.is_empty() && pids.iter().all(|&pid| self.is_gone(pid));
        match state.agent.hand.as_ref().filter(|_| have_ended) {
            Some(hand) => AnonymousShare::of(hand.agent_pid()).map(AnonymousShare::without_copies),
            None => Some(AnonymousShare::default()),
        }
    }

    /// What the living processes have, and a thread of each.
    fn count_living<T: Default>(
        &self,
        count: impl Fn(i32) -> Option<T>,
        plus: impl Fn(T, T) -> T,
    ) -> Option<(T, Vec<i32>)> {
        let is_gone = |pid| self.is_gone(pid) || procfs::has_ended(pid);
        let counts = |shares_with: Option<i32>| shares_with.is_none_or(is_gone);
        let mut counted: Vec<i32> = Vec::new();
        let mut sum = T::default();
        for (&pid, _) in self.living.iter().filter(|(_, shares_with)| counts(**shares_with)) {
            let Some(thread) = procfs::living_thread(pid) else { continue };
            if !counted.iter().any(|&other| process::same_memory(thread, other)) {
                sum = plus(sum, count(thread)?);
                counted.push(thread);
            }
        }
        Some((sum, counted))
    }

    /// Whether there is a process without a space, and a space whose known processes have all
    /// ended: the process may have its memory, whose pages are counted already.
    fn any_orphaned(&self, pager: &Pager) -> bool {
        self.any_homeless && is_orphaned(pager, |pid| self.is_gone(pid))
    }

    /// Whether a process had ended when the members were listed.
    fn is_gone(&self, pid: i32) -> bool {
        !self.living.contains_key(&pid)
    }
}
