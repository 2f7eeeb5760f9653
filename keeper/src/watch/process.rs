//! A process of the run: its sizes, and its memory that no survey has seen yet.

use super::due;
use super::lineages::Lineages;
use super::unregistered::Unregistered;
use crate::pager::events::reconcile::Outside;
use crate::pager::space::{Space, SpaceState};
use crate::pager::{Pager, Stop};
use crate::readahead::MAX_WINDOW_PAGES;
use crate::sys::mutex::MutexGuard;
use crate::sys::procfs::{self, Resident, Statm};
use casemate_pages::SpaceId;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Growth since the last survey, in pages, that makes the next one due.
const UNSEEN_PAGES: u64 = 32;
/// After a survey, data that was mapped since waits for this time.
const DATA_PAUSE: Duration = Duration::from_millis(5);
/// A process with registered memory that no space has claimed by then uses a userfaultfd of its
/// own.
const RECOGNITION_TIME: Duration = Duration::from_secs(2);
/// A balance that no process has, so that the next comparison is made as soon as it is due.
const UNBALANCED: i64 = i64::MIN;
/// The least time between two comparisons with the kernel.
const LEAST_COMPARISON_PAUSE: Duration = Duration::from_millis(20);
const RECOGNITION_PAUSE: Duration = Duration::from_millis(5);

/// A process of the run.
pub(super) struct Process {
    pub pid: i32,
    /// A thread of it that has its memory: the first one, unless that has ended.
    pub thread: i32,
    /// Whether a census has counted it.
    pub is_counted: bool,
    statm: Statm,
    pub resident: Resident,
    /// Its space, once it is under the pager.
    pub space: Option<SpaceId>,
    /// Shares the memory of this process (vfork, or CLONE_VM): counted there.
    pub shares_with: Option<i32>,
    /// Anonymous pages beyond those tracked, when they were last counted.
    pub untracked: Option<u64>,
    /// Untracked pages that were new at the last measurement.
    pub grown_pages: u64,
    /// Anonymous pages that cannot be registered (copied file pages), found by the last survey.
    pub baseline: u64,
    /// Pages of `baseline` that no other process shares, as far as is known, or that may come to be
    /// its own unheard.
    pub unregistered: Unregistered,
    /// Its memory began as a copy of its parent's.
    is_forked: bool,
    surveyed: Option<Survey>,
    /// Pages that stay outside the Clear, found by the last comparison with the kernel.
    outside: Outside,
    compared: Option<Comparison>,
    birth: Birth,
    /// The process whose memory it shared last, if that has ended.
    heir_of: Option<i32>,
    /// Set while it is a forked copy of a process under the pager whose own space was not found
    /// yet.
    copy: Option<Copied>,
    /// Why it cannot be placed under the pager, if it was tried.
    pub unprotectable: bool,
    pub tries: u32,
    /// When it was tried last.
    pub tried: Option<Instant>,
    /// When it was tried last a smaller Clear was aimed at, and there was room but for that.
    pub is_tried_for_aim: bool,
    /// Times that its threads did not all stop.
    pub unsettled: u32,
    /// Its anonymous pages when an agent was first refused it.
    pub refused_at_pages: Option<u64>,
}

/// Whether a process without a space may wait to be recognised, as a forked child does: then its
/// memory is registered already.
enum Birth {
    NotAsked,
    OnItsOwn,
    MayBeForked { since: Instant, asked: Instant },
}

/// The last comparison of the pager's records with the kernel.
struct Comparison {
    when: Instant,
    cost: Duration,
    /// Anonymous pages beyond those in the Clear at that time (or fewer: the page of zeros is
    /// none).
    balance: i64,
}

/// What a forked child has from its parent. While its arguments are at the same addresses as its
/// parent's, it has not executed another program.
struct Copied {
    arguments: [Range<u64>; 2],
    anon_pages: u64,
}

struct Survey {
    when: Instant,
    cost: Duration,
    size_pages: u64,
    unseen_pages: u64,
    /// It is to go on once no call may be changing mappings.
    is_put_off: bool,
}

impl Process {
    /// A process without any measurement yet; none if no thread of it has memory.
    pub fn open(pid: i32) -> Option<Self> {
        let (thread, statm, resident) = Statm::of_process(pid)?;
        Some(Process {
            pid,
            thread,
            is_counted: false,
            statm,
            resident,
            space: None,
            shares_with: None,
            untracked: None,
            grown_pages: 0,
            baseline: 0,
            unregistered: Unregistered::default(),
            is_forked: false,
            surveyed: None,
            outside: Outside::default(),
            compared: None,
            birth: Birth::NotAsked,
            heir_of: None,
            copy: None,
            unprotectable: false,
            tries: 0,
            tried: None,
            is_tried_for_aim: false,
            unsettled: 0,
            refused_at_pages: None,
        })
    }

    /// Resets everything known of it: it runs a new program, or has memory of its own now.
    pub fn start_over(&mut self) {
        self.space = None;
        self.untracked = None;
        self.grown_pages = 0;
        self.baseline = 0;
        self.unregistered = Unregistered::default();
        self.is_forked = false;
        self.surveyed = None;
        self.outside = Outside::default();
        self.compared = None;
        self.birth = Birth::NotAsked;
        self.heir_of = None;
        self.copy = None;
        self.unprotectable = false;
        self.tries = 0;
        self.tried = None;
        self.is_tried_for_aim = false;
        self.unsettled = 0;
        self.refused_at_pages = None;
    }

    /// Whether it had no memory at the last measurement.
    pub fn has_ended(&self) -> bool {
        self.resident.size_pages == 0
    }

    /// Whether it still runs a program.
    pub fn lives(&self) -> bool {
        !procfs::has_ended(self.pid)
    }

    /// Reads its sizes.
    pub fn read(&mut self) {
        let has_memory = |resident: &Resident| resident.size_pages > 0;
        self.resident = self.statm.read().filter(has_memory).unwrap_or_default();
        // The thread that was asked until now may have ended before the others.
        if self.has_ended()
            && let Some((thread, statm, resident)) = Statm::of_process(self.pid)
        {
            (self.thread, self.statm, self.resident) = (thread, statm, resident);
        }
    }

    /// Counts its untracked pages, and those of them that are new since the last count. Returns the
    /// untracked pages.
    pub fn count(&mut self, pager: &Pager) -> u64 {
        let untracked = match self.space.and_then(|id| pager.space(id)) {
            None => self.apart(),
            Some(space) => self.unseen(&space),
        };
        // Pages that a child inherited by a fork are not growth.
        let before = self.untracked.replace(untracked).unwrap_or(untracked);
        self.grown_pages = untracked.saturating_sub(before);
        untracked
    }

    /// Anonymous pages of a process without a space, but for what counts with its parent's.
    fn apart(&mut self) -> u64 {
        let apart = self.resident.anon_pages.saturating_sub(self.copied_pages());
        if apart <= self.untracked.unwrap_or(0) + UNSEEN_PAGES {
            return apart;
        }
        // It may have ended since it was read: a forked child without arguments any more, or a
        // process that shares the memory of one.
        self.read();
        self.resident.anon_pages.saturating_sub(self.copied_pages())
    }

    /// Whether it may be a forked child of `parent`, which is under the pager: then the pages that
    /// they share count once.
    pub fn may_copy(&mut self, parent: &Process) -> bool {
        let may_copy =
            self.shares_with.is_none() && (parent.space.is_some() || parent.copy.is_some());
        if may_copy {
            let arguments = procfs::arguments_and_environment(parent.thread);
            self.copy = Some(Copied { arguments, anon_pages: parent.resident.anon_pages });
        }
        may_copy
    }

    /// Pages that are counted with its parent's.
    fn copied_pages(&mut self) -> u64 {
        let thread = self.thread;
        let arguments = || procfs::arguments_and_environment(thread);
        self.copy = self.copy.take().filter(|copy| copy.arguments == arguments());
        self.copy.as_ref().map_or(0, |copy| copy.anon_pages)
    }

    /// Notes that its memory is that of `space`, which it has from another process. Up to
    /// `inherited` pages that the pager does not hold are the other's as well.
    pub fn is_found_in(&mut self, space: &Space, inherited: u64) {
        self.space = Some(space.id);
        self.shares_with = None;
        self.is_forked = true;
        self.read();
        let unknown = self.resident.anon_pages.saturating_sub(space.clear_pages.get());
        self.baseline = unknown.min(inherited);
    }

    /// Anonymous pages that are neither tracked nor impossible to track. While handlers hold the
    /// space's lock (for dozens of looks if one thread streams and another grows), pages that move
    /// between the two readings must not count: then the last value is returned, limited to what
    /// the readings allow.
    fn unseen(&mut self, space: &Space) -> u64 {
        let state = space.state.try_lock();
        let before = space.clear_pages.get();
        self.read();
        let after = space.clear_pages.get();
        let in_flight = if state.is_some() { 0 } else { MAX_WINDOW_PAGES };
        let unknown = self.resident.anon_pages.saturating_sub(self.baseline);
        let possible = possibly_unseen(unknown, before.min(after)..=before.max(after), in_flight);
        self.untracked.unwrap_or(*possible.start()).clamp(*possible.start(), *possible.end())
    }

    /// Whether it has mapped or touched enough new memory for a survey now.
    ///
    /// Where calls are announced, new mappings are registered as they are made. `is_heard` says
    /// whether those of every process are that has this memory.
    pub fn wants_survey(&mut self, space: &Space, is_short: bool, is_heard: bool) -> bool {
        let unseen = self.unseen(space);
        let Some(last) = &self.surveyed else { return true };
        let has_grown = unseen > last.unseen_pages + UNSEEN_PAGES;
        // In mappings that are not registered, pages are touched without a fault that makes room
        // first.
        let is_urgent = has_grown && is_short && last.when.elapsed() >= 2 * last.cost;
        let registers_new = is_heard && space.registers_new();
        let has_mapped = !registers_new && last.size_pages != self.resident.size_pages;
        // A program that begins maps its libraries one after the other, and may be over soon.
        let has_data = (last.is_put_off || space.has_mapped_data.load(Relaxed))
            && last.when.elapsed() >= DATA_PAUSE;
        (has_mapped || has_grown || has_data) && (is_urgent || due(last.when, last.cost))
    }

    /// Whether the difference between its resident pages and those in the Clear has changed since
    /// the last comparison. False while the space's lock is taken.
    pub fn wants_reconciling(&mut self, space: &Space) -> bool {
        let is_due = |c: &Comparison| c.when.elapsed() >= (c.cost * 50).max(LEAST_COMPARISON_PAUSE);
        if !self.compared.as_ref().is_none_or(is_due) {
            return false;
        }
        let Some(state) = space.state.try_lock() else { return false };
        self.read();
        let balance = balance(&self.resident, state.clear.pages.len());
        state.agent.hand.is_some()
            && self.compared.as_ref().is_none_or(|comparison| comparison.balance != balance)
    }

    /// Compares the pager's records of it with the kernel. If that cannot be done within
    /// `patience`, it is due again later.
    pub fn reconcile(
        &mut self,
        pager: &Pager,
        space: &Arc<Space>,
        patience: Duration,
    ) -> Result<(), Stop> {
        let when = Instant::now();
        let before = self.weigh(space, patience).map(|(before, _)| before);
        let found = pager.events().reconcile(space, patience)?;
        let waited = found.map_or(patience, |found| found.waited);
        let after = self.weigh(space, patience);
        let cost = when.elapsed().saturating_sub(waited);
        self.compared = Some(Comparison { when, cost, balance: UNBALANCED });
        if let (Some(found), Some(before), Some((after, state))) = (found, before, after) {
            let (tracked, agents) = (state.clear.pages.len() as u64, state.agent.owned_ranges());
            drop(state);
            self.outside = found.outside;
            self.set_baseline(space, tracked, &agents);
            // Pages that came during the comparison were not compared.
            let balance = if after == before - found.adopted as i64 { after } else { UNBALANCED };
            self.compared = Some(Comparison { when, cost, balance });
        }
        Ok(())
    }

    /// Anonymous pages beyond those in the Clear, or fewer, at one moment; none if the space's lock
    /// cannot be had.
    fn weigh<'a>(
        &mut self,
        space: &'a Space,
        patience: Duration,
    ) -> Option<(i64, MutexGuard<'a, SpaceState>)> {
        let state = space.state.try_lock_for(patience)?;
        self.read();
        Some((balance(&self.resident, state.clear.pages.len()), state))
    }

    /// Anonymous pages that do not belong in the Clear: copies of file pages, and the agent's own.
    pub fn outside_pages(&self) -> u64 {
        self.outside.copies + self.outside.ours
    }

    /// Private anonymous pages that the pager cannot hold.
    pub fn unprotectable_pages(&self) -> u64 {
        if self.unprotectable { self.resident.anon_pages } else { self.outside.refused }
    }

    /// Private anonymous pages that the kernel does not let be registered.
    pub fn refused_pages(&self) -> u64 {
        if self.unprotectable { 0 } else { self.outside.refused }
    }

    /// Whether it may be a forked child, or have the memory of a process that has ended, and was
    /// not matched to its space yet. It must not be given another space: two spaces would share its
    /// memory, and one would register the other's agent.
    pub fn may_be_forked(&mut self, armed: &Lineages) -> bool {
        let now = Instant::now();
        let since = match self.birth {
            Birth::OnItsOwn => return false,
            Birth::NotAsked => now,
            Birth::MayBeForked { since, .. } if now - since > RECOGNITION_TIME => return false,
            Birth::MayBeForked { asked, .. } if now - asked < RECOGNITION_PAUSE => return true,
            Birth::MayBeForked { since, .. } => since,
        };
        let is_registered = armed.may_include(self.thread) && procfs::has_userfault(self.thread);
        self.birth = match is_registered {
            true => Birth::MayBeForked { since, asked: now },
            false => Birth::OnItsOwn,
        };
        is_registered
    }

    /// Whether it may have the memory of the space of `other`, which it shared until that one
    /// ended. Each such end gives it as much time again to be found: several may end in turn.
    pub fn may_go_on_after(&mut self, other: i32, armed: &Lineages) -> bool {
        if self.heir_of.replace(other) != Some(other) {
            self.birth = Birth::NotAsked;
        }
        self.may_be_forked(armed)
    }

    /// Whether its memory may be registered by a space's userfaultfd, as far as was asked.
    pub fn was_registered(&self) -> bool {
        !matches!(self.birth, Birth::OnItsOwn)
    }

    /// Surveys it now. If the space's lock cannot be had within `patience`, or its memory cannot be
    /// looked at, a survey stays due.
    pub fn survey(
        &mut self,
        pager: &Pager,
        space: &Arc<Space>,
        patience: Duration,
    ) -> Result<(), Stop> {
        let when = Instant::now();
        space.has_mapped_data.store(false, Relaxed);
        if self.surveyed.as_ref().is_some_and(|last| last.is_put_off) {
            pager.events().end_let_through(space);
        }
        let surveyed = pager.events().survey(space, self.pid, patience)?;
        let waited = surveyed.map_or(patience, |surveyed| surveyed.waited);
        let state = surveyed.and_then(|_| space.state.try_lock_for(patience));
        let cost = when.elapsed().saturating_sub(waited);
        let Some(state) = state else {
            // No process has mappings of 0 pages, so another survey is wanted as soon as it is due.
            // The cost counts: to read the mappings of some programs takes milliseconds.
            let (size_pages, unseen_pages) = (0, 0);
            let is_put_off = true;
            self.surveyed = Some(Survey { when, cost, size_pages, unseen_pages, is_put_off });
            return Ok(());
        };
        self.read();
        let (tracked, agents) = (state.clear.pages.len() as u64, state.agent.owned_ranges());
        drop(state);
        self.set_baseline(space, tracked, &agents);
        self.untracked = Some(0);
        let size_pages = self.resident.size_pages;
        let is_put_off = surveyed.is_some_and(|surveyed| surveyed.is_put_off);
        self.surveyed = Some(Survey { when, cost, size_pages, unseen_pages: 0, is_put_off });
        Ok(())
    }

    /// Sets the baseline: resident pages beyond `tracked`, which cannot be registered. Pages that a
    /// forked child shares with its parent count with the parent.
    fn set_baseline(&mut self, space: &Space, tracked: u64, agents: &[Range<u64>]) {
        self.baseline = self.resident.anon_pages.saturating_sub(tracked);
        space.outside_pages.store(self.baseline, Relaxed);
        self.unregistered = Unregistered::of(self.thread, self.baseline, agents, self.is_forked);
    }
}

fn balance(resident: &Resident, tracked: usize) -> i64 {
    resident.anon_pages as i64 - tracked as i64
}

/// How many of `resident` pages can be unseen if the Clear's count is in the given range, give or
/// take `in_flight`.
fn possibly_unseen(
    resident: u64,
    clear: RangeInclusive<u64>,
    in_flight: u64,
) -> RangeInclusive<u64> {
    let least = resident.saturating_sub(clear.end() + in_flight);
    let most = resident.saturating_sub(*clear.start()) + in_flight;
    least..=most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pager::tests::pager_and_space;
    use crate::sys::procfs::leaderless::Leaderless;
    use crate::sys::uffd::Userfault;

    fn own_process_and_space() -> (Process, Arc<Space>) {
        let process = Process::open(std::process::id() as i32).expect("we run");
        let file = std::fs::File::open("/dev/null").expect("there is one");
        let space = Space::new(SpaceId(1), Userfault::unusable(file.into()), SpaceState::default());
        (process, space)
    }

    #[test]
    fn a_process_is_found_though_its_first_thread_has_ended_before() {
        let leaderless = Leaderless::begin();
        let mut process = Process::open(leaderless.pid).expect("it has a thread that lives");
        assert_eq!((process.pid, process.thread), (leaderless.pid, leaderless.thread));
        assert!(process.resident.anon_pages > 0);
        process.read();
        assert!(!process.has_ended() && process.lives());
    }

    /// That the survey fails says that it found something to register: the descriptor of this space
    /// is none.
    #[test]
    fn a_process_whose_first_thread_has_ended_is_surveyed() {
        let (pager, space) = pager_and_space();
        let leaderless = Leaderless::begin();
        let mut process = Process::open(leaderless.pid).expect("it has a thread that lives");
        assert!(process.survey(&pager, &space, Duration::from_secs(1)).is_err());
    }

    /// One thread keeps the handlers busy with the space, another grows.
    #[test]
    fn growth_is_seen_while_somebody_is_busy_with_the_space() {
        const BYTES: usize = 256 << 20;
        // Other tests of this program may free memory meanwhile: up to some 100 MiB.
        const PAGES: u64 = (BYTES / crate::config::PAGE_BYTES / 2) as u64;
        let (mut process, space) = own_process_and_space();
        let busy = space.state.lock();
        let before = process.unseen(&space);
        process.untracked = Some(before);
        // Or the compiler would leave it out.
        let touched = std::hint::black_box(vec![1_u8; BYTES]);
        let after = process.unseen(&space);
        assert!(after >= before + PAGES, "{before} pages, then {after}");
        drop((busy, touched));
    }

    #[test]
    fn what_is_on_its_way_is_no_growth() {
        // Nothing is in flight: the result is exact.
        assert_eq!(possibly_unseen(1000, 700..=700, 0), 300..=300);
        // A batch of 64 came into the program and is not counted yet, or left and is counted still:
        // 300 were unseen before, and may be now.
        for resident in [1000 + 64, 1000 - 64] {
            assert!(possibly_unseen(resident, 700..=700, 64).contains(&300));
            assert!(!possibly_unseen(resident, 700..=700, 63).contains(&300));
        }
        // The batch was counted between the two readings.
        assert!(possibly_unseen(1064, 700..=764, 0).contains(&300));
        // The excess over one batch is certainly new.
        assert_eq!(possibly_unseen(1100, 700..=700, 64), 336..=464);
        assert_eq!(possibly_unseen(10, 700..=700, 0), 0..=0);
    }
}
