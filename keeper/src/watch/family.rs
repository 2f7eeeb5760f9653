//! The processes of a run: all descendants of the keeper except the agents.

use super::agents::Agents;
use super::arming::MIN_PAGES;
use super::heirs::is_orphaned_now;
use super::lineages::Lineages;
use super::process::Process;
use super::required::Share;
use crate::pager::{Pager, Stop};
use crate::sys::own_limits::in_words;
use crate::sys::process;
use crate::sys::procfs;
use casemate_pages::SpaceId;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a survey waits for the space's lock, while the program goes on.
pub(super) const SURVEY_PATIENCE: Duration = Duration::from_micros(500);

/// Sums over the sizes of all processes.
#[derive(Clone, Copy, Default)]
pub(super) struct Measured {
    /// Anonymous pages that the pager does not track.
    pub untracked_pages: u64,
    /// Anonymous pages that the pager cannot track: copies of file pages.
    pub copied_pages: u64,
    /// The same: the agents' own.
    pub agents_pages: u64,
    /// Untracked pages that are new since the last measurement.
    pub grown_pages: u64,
}

/// Resident pages that the pager does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unprotected {
    /// All: of files, their copies, shared memory, agents, and `anonymous_pages`.
    pub pages: u64,
    /// Private anonymous memory that could not be placed under the pager.
    pub anonymous_pages: u64,
    /// Those of `anonymous_pages` that the budget counts as plaintext of the Clear as well.
    pub seems_protected_pages: u64,
}

/// A process, and the thread that is asked about its memory: one that lives, since the first may
/// have ended.
#[derive(Clone, Copy)]
pub(super) struct InMemory {
    pid: i32,
    thread: i32,
}

impl InMemory {
    pub fn of(pid: i32) -> Self {
        InMemory { pid, thread: procfs::living_thread(pid).unwrap_or(pid) }
    }

    /// Whether it has the memory of none of `taken`, which have an agent or get one now. (An
    /// agent is a separate process with that memory.)
    pub fn is_apart_from(self, taken: &[InMemory]) -> bool {
        !taken.iter().any(|other| self.shares_with(*other))
    }

    /// Whether another process has this one's memory.
    fn shares_with(self, other: Self) -> bool {
        self.pid != other.pid && process::same_memory(self.thread, other.thread)
    }
}

/// All processes, by pid.
#[derive(Default)]
pub(super) struct Family {
    pub processes: HashMap<i32, Process>,
    agents: Agents,
    /// What was armed, and may have had children since.
    pub armed: Lineages,
    /// How many processes were ever counted.
    seen: u64,
    /// Whether the last census passed over a process that had not ended. No thread had memory that
    /// was asked: each ended meanwhile, and others may have begun.
    pub passed_over: bool,
    /// Why the memory of a process that was passed over is unknown, if the kernel refuses to show
    /// it.
    unreadable: Option<String>,
}

impl Family {
    /// Finds new processes, forgets ended ones, and assigns forked children their spaces. Returns
    /// how many processes the run has had so far, without agents.
    ///
    /// `arming` are the processes that are being given an agent, and `agents` those of these agents
    /// that are known. A process that shares their memory is that agent, or is about to create it,
    /// but does not have the agent's name yet; it is counted only when it can be told from an
    /// agent.
    pub fn census(&mut self, pager: &Pager, arming: &[i32], agents: &[i32]) -> u64 {
        let all = procfs::descendants(std::process::id() as i32);
        let spaces = pager.all_spaces();
        let of_spaces = spaces.iter().map(|space| space.agent.load(Relaxed));
        let agents: Vec<i32> = of_spaces.chain(agents.iter().copied()).collect();
        self.agents.retain(|pid| all.contains(&pid) || !procfs::has_ended(pid));
        let is_agent = |p: &Process| p.shares_with.is_some() && Agents::is_named_so(p.pid);
        // A list of children that changes while it is read can miss some.
        let lives = |p: &Process| all.contains(&p.pid) || p.lives();
        let taken_for_programs = self.processes.values().filter(|p| p.is_counted && is_agent(p));
        self.seen -= taken_for_programs.count() as u64;
        self.processes.retain(|_, process| lives(process) && !is_agent(process));
        let processes = &self.processes;
        // A process first announced since then is in neither list.
        let is_known = |pid: i32| processes.contains_key(&pid) || all.contains(&pid);
        let lives = |pid| is_known(pid) || !procfs::has_ended(pid);
        pager.heard.lock().retain(lives);
        pager.growing.lock().retain(lives);
        self.passed_over = false;
        self.unreadable = None;
        // To look up a living thread of each takes long: once for all that are new.
        let mut known: Option<[Vec<InMemory>; 2]> = None;
        for pid in all {
            if self.processes.contains_key(&pid) || self.agents.include(pid, &agents) {
                continue;
            }
            if let Some(mut process) = Process::open(pid) {
                let parent = procfs::state_and_parent(pid).map(|(_, parent)| parent);
                let [arming, owners] = known.get_or_insert_with(|| {
                    let arming = arming.iter().copied().map(InMemory::of).collect();
                    [arming, self.owners().map(InMemory::of).collect()]
                });
                let this = InMemory { pid, thread: process.thread };
                let shares = |other: &&InMemory| this.shares_with(**other);
                let parents = parent.map(InMemory::of);
                let mut others = arming.iter().chain(&parents).chain(&*owners);
                process.shares_with = others.find(shares).map(|other| other.pid);
                if process.shares_with.is_none() {
                    owners.push(this);
                }
                if process.shares_with.is_some() && Agents::is_named_so(pid) {
                    continue;
                }
                if let Some(parent) = parent.and_then(|pid| self.processes.get(&pid))
                    && process.may_copy(parent)
                {
                    self.armed.renew(parent.thread);
                }
                self.processes.insert(pid, process);
            } else {
                self.passed_over |= !procfs::has_ended(pid);
                self.unreadable = self.unreadable.take().or_else(|| unreadable(pid));
            }
        }
        let helps_arming = |p: &Process| p.shares_with.is_some_and(|pid| arming.contains(&pid));
        for process in self.processes.values_mut().filter(|p| !p.is_counted && !helps_arming(p)) {
            process.is_counted = true;
            self.seen += 1;
        }
        self.seen
    }

    /// Takes note of an agent that was made just now, if it `lives`; whether it is known from now
    /// on. A census that saw it before it had its name took it for a process of the program's, with
    /// pages that would count once more as soon as that ends.
    pub fn note_agent(&mut self, pid: i32, lives: impl FnOnce() -> bool) -> bool {
        let is_noted = self.agents.note(pid, lives);
        if is_noted {
            self.forget_agent(pid);
        }
        is_noted
    }

    /// It is an agent, or was one: a census may have taken it for a process of the program's.
    pub fn forget_agent(&mut self, pid: i32) {
        if self.processes.remove(&pid).is_some_and(|process| process.is_counted) {
            self.seen -= 1;
        }
    }

    /// What has memory that no further agent is to be given to: all agents, and the processes of
    /// `arming`, which are being given one. (A process with an agent may have ended, and another
    /// one have its memory still; the agent lives as long as that is so.)
    pub fn taken(pager: &Pager, arming: &[i32]) -> Vec<InMemory> {
        let spaces = pager.all_spaces();
        let agents = spaces.iter().filter(|space| !space.is_gone());
        let agents = agents.map(|space| space.agent.load(Relaxed)).filter(|&agent| agent != 0);
        agents.chain(arming.iter().copied()).map(InMemory::of).collect()
    }

    /// True when no process of the run is left.
    pub fn census_is_empty(&mut self, pager: &Pager) -> bool {
        let agents: Vec<i32> = pager
            .all_spaces()
            .iter()
            .filter_map(|s| s.state.lock().agent.hand.as_ref().map(|h| h.agent_pid()))
            .collect();
        // Whether any lives is not known where the list cannot be read.
        let Ok(left) = procfs::living_branches() else { return false };
        left.iter().all(|pid| agents.contains(pid) || self.agents.include(*pid, &agents))
    }

    /// Whether a process has ended.
    pub fn is_gone(&self, pid: i32) -> bool {
        self.processes.get(&pid).is_none_or(Process::has_ended)
    }

    /// Sets the processes of a space to `pids`; those that have left it run a new program.
    pub fn left(&mut self, space: SpaceId, pids: &[i32]) {
        for process in self.processes.values_mut() {
            if process.space == Some(space) && !pids.contains(&process.pid) {
                process.start_over();
            }
        }
    }

    /// Whether any process is under the pager.
    pub fn any_armed(&self) -> bool {
        self.processes.values().any(|p| p.space.is_some())
    }

    /// Processes that are not under the pager, and are to be if room is short.
    pub fn unarmed(&self) -> impl Iterator<Item = &Process> {
        let is_one = |p: &&Process| {
            p.space.is_none()
                && p.shares_with.is_none()
                && !p.unprotectable
                && p.resident.anon_pages >= MIN_PAGES
        };
        self.processes.values().filter(is_one)
    }

    /// Finds a process of each space of which none is known to live: a forked child, unless the
    /// announcer found it at its first call, or one that shared the memory of a process that has
    /// ended.
    pub fn recognise(&mut self, pager: &Pager) -> Result<(), Stop> {
        let inherited = self.inherited();
        self.settle_heirs(pager, inherited);
        for space in pager.all_spaces() {
            if space.is_gone() {
                continue;
            }
            let Some(mut state) = space.state.try_lock() else { continue };
            let is_known = state.processes.pids.iter().any(|pid| !self.is_gone(*pid));
            if !is_known && state.is_unclaimed() {
                let candidates = || self.processes.values().filter(|p| self.is_homeless(p));
                // The page table of a process whose first thread has ended is another thread's.
                let threads = candidates().map(|p| p.thread);
                let found = pager.events().find_among(&space, &mut state, threads);
                let thread = pager.or_stop(found)?;
                if let Some(process) = candidates().find(|p| Some(p.thread) == thread) {
                    state.claim(process.pid);
                }
            }
            if let Some(pid) = self.homeless_among(&state.processes.pids, space.id)
                && let Some(process) = self.processes.get_mut(&pid)
            {
                process.is_found_in(&space, inherited);
            }
            let wakes = std::mem::take(&mut state.pending.wakes);
            drop(state);
            space.wake_all(&wakes);
        }
        Ok(())
    }

    /// Whether a process has no space, and shares the memory of no other living one.
    pub(super) fn is_homeless(&self, process: &Process) -> bool {
        process.space.is_none() && process.shares_with.is_none_or(|other| self.is_gone(other))
    }

    /// The most pages that a forked child can have from its parent and that the pager does not
    /// hold.
    fn inherited(&self) -> u64 {
        self.processes.values().map(|process| process.baseline).max().unwrap_or(0)
    }

    /// The first process is about to be armed: those that are there descend from no armed one. To
    /// ask later takes longer, since the kernel lists a process's mappings then. One that shares
    /// another's memory may have that of an armed process at any time.
    pub(super) fn are_on_their_own(&mut self) {
        if self.armed.is_empty() {
            for process in self.processes.values_mut().filter(|p| p.shares_with.is_none()) {
                process.may_be_forked(&self.armed);
            }
        }
    }

    /// Reads every process's sizes.
    pub fn measure(&mut self, pager: &Pager) -> Measured {
        let mut measured = Measured::default();
        self.processes.values_mut().for_each(Process::read);
        let owners: Vec<i32> = self.owners().collect();
        let threads: HashMap<i32, i32> =
            self.processes.values().map(|process| (process.pid, process.thread)).collect();
        let same_memory = |process: &Process, other: i32| {
            process::same_memory(process.thread, threads.get(&other).copied().unwrap_or(other))
        };
        let is_orphaned = self.any_orphaned(pager);
        for process in self.processes.values_mut() {
            if let Some(other) = process.shares_with
                && !same_memory(process, other)
            {
                // The process executed another program. Or the other one ended, as a process that
                // creates an agent does, and this one shares the memory of a third, which would
                // count twice, or has the memory of the other's space, which counts already.
                let shares = |owner: &i32| *owner != process.pid && same_memory(process, *owner);
                let owner = owners.iter().copied().find(shares);
                let is_heir = owner.is_none()
                    && procfs::has_ended(other)
                    && is_orphaned_now(pager)
                    && process.may_go_on_after(other, &self.armed);
                process.shares_with = if is_heir { Some(other) } else { owner };
            }
            let is_heir =
                is_orphaned && process.space.is_none() && process.may_be_forked(&self.armed);
            if is_heir || process.shares_with.is_some() {
                continue;
            }
            measured.untracked_pages += process.count(pager);
            measured.copied_pages += process.unregistered.copies;
            measured.agents_pages += process.unregistered.agents;
            measured.grown_pages += process.grown_pages;
        }
        measured
    }

    /// The processes that share the memory of no other, as far as is known.
    fn owners(&self) -> impl Iterator<Item = i32> {
        self.processes.values().filter(|p| p.shares_with.is_none()).map(|p| p.pid)
    }

    /// Whether processes may share pages after a fork.
    pub fn may_share(&self) -> bool {
        self.processes.values().filter(|p| p.shares_with.is_none()).count() > 1
    }

    /// Surveys processes under the pager that have mapped or touched new memory, except those that
    /// are being given an agent: new memory in them may be the agent's.
    pub fn survey(&mut self, pager: &Pager, arming: &[i32]) -> Result<(), Stop> {
        let is_short = pager.budget.free() < pager.budget.high();
        let unheard = self.unheard(pager);
        for process in self.processes.values_mut().filter(|p| !arming.contains(&p.pid)) {
            let Some(space) = process.space.and_then(|id| pager.space(id)) else { continue };
            if process.wants_survey(&space, is_short, !unheard.contains(&space.id)) {
                process.survey(pager, &space, SURVEY_PATIENCE)?;
            }
        }
        Ok(())
    }

    /// The spaces whose memory a process has that changes it without announcing that: one that is
    /// no thread of the process in which the listener was made.
    pub fn unheard(&self, pager: &Pager) -> Vec<SpaceId> {
        let heard = pager.heard.lock();
        let parent = |pid| procfs::state_and_parent(pid).map(|(_, parent)| parent);
        let is_unheard = |process: &&Process| match process.shares_with {
            Some(_) => !heard.includes(process.pid, parent),
            None => process.space.is_some() && heard.was_born_before(process.pid),
        };
        let owner = |process: &Process| process.shares_with.and_then(|of| self.processes.get(&of));
        let unheard = self.processes.values().filter(is_unheard);
        unheard.filter_map(|process| process.space.or_else(|| owner(process)?.space)).collect()
    }

    /// Surveys stopped processes, whatever the last survey cost.
    pub fn survey_held(&mut self, pager: &Pager, pids: &[i32], until: Instant) -> Result<(), Stop> {
        for pid in pids {
            let Some(process) = self.processes.get_mut(pid) else { continue };
            if let Some(space) = process.space.and_then(|id| pager.space(id)) {
                let patience = until.saturating_duration_since(Instant::now());
                process.survey(pager, &space, patience)?;
            }
        }
        Ok(())
    }

    /// The processes under the pager that touched new memory between the last two looks.
    pub fn growing(&self) -> Vec<i32> {
        let grows = |p: &&Process| p.space.is_some() && p.grown_pages > 0;
        self.processes.values().filter(grows).map(|p| p.pid).collect()
    }

    /// How many processes without an agent touched new memory between the last two looks.
    pub fn unarmed_growing(&self) -> usize {
        self.unarmed().filter(|p| p.grown_pages > 0).count()
    }

    /// The new pages that processes without an agent touched between the last two looks.
    pub fn unarmed_growth(&self) -> u64 {
        self.unarmed().map(|process| process.grown_pages).sum()
    }

    /// The most pages that processes without an agent have been allowed and not been seen to touch
    /// yet; `allowed` says what each has been allowed.
    pub fn untouched(&self, allowed: impl Iterator<Item = (i32, u64)>) -> u64 {
        let touched = |pid| self.processes.get(&pid).and_then(|p| p.untracked).unwrap_or(0);
        allowed.map(|(pid, pages)| pages.saturating_sub(touched(pid))).sum()
    }

    /// Compares the pager's records of processes with the kernel, for processes whose balance of
    /// pages has changed since the last comparison.
    pub fn reconcile(&mut self, pager: &Pager, arming: &[i32]) -> Result<(), Stop> {
        for process in self.processes.values_mut().filter(|p| !arming.contains(&p.pid)) {
            let Some(space) = process.space.and_then(|id| pager.space(id)) else { continue };
            if process.wants_reconciling(&space) {
                process.reconcile(pager, &space, Duration::ZERO)?;
            }
        }
        Ok(())
    }

    /// The run's memory that is in RAM and not protected.
    pub fn unprotected(&self) -> Unprotected {
        let mut sum = Unprotected::default();
        for process in self.processes.values().filter(|p| p.shares_with.is_none()) {
            let anonymous_pages = process.unprotectable_pages();
            sum.anonymous_pages += anonymous_pages;
            sum.pages += process.resident.shared_pages + process.outside_pages() + anonymous_pages;
            if process.unprotectable {
                sum.seems_protected_pages += process.resident.anon_pages;
            }
        }
        sum
    }

    /// How much of the run's memory is protected, beside `unprotected`; why not, if that is
    /// unknown: the sizes of a process, of which `main` is to be one while it lives, cannot be
    /// read.
    pub fn share(
        &self,
        pager: &Pager,
        main: Option<i32>,
        unprotected: Unprotected,
    ) -> Result<Share, String> {
        let unseen = main.filter(|pid| !self.processes.contains_key(pid));
        let empty = self.processes.values().filter(|p| p.has_ended()).map(|p| p.pid);
        let refused = unseen.into_iter().chain(empty).find_map(unreadable);
        match refused.or_else(|| self.unreadable.clone()) {
            Some(why) => Err(why),
            None => {
                let most = pager.counts.protected_pages_peak.load(Relaxed);
                Ok(Share::of(most, unprotected))
            }
        }
    }
}

/// Why the sizes of a process that lives cannot be read; none if they can.
fn unreadable(pid: i32) -> Option<String> {
    procfs::refused_sizes(pid).map(|error| format!("/proc/{pid}/statm: {}", in_words(&error)))
}
