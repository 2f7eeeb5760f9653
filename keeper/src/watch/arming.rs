//! Arming: a process is given an agent and comes under the pager. Large ones first, and only when
//! the plaintext of the whole run nears its bound.

mod armed;
mod choice;
mod failed;
mod steps;

use super::Policy;
use super::family::{Family, InMemory};
use super::pace::Pace;
use super::precedence::Precedence;
use crate::hand::{Found, Hold, Injection, Injector, LostAgent, follow_transfers};
use crate::handlers::Handlers;
use crate::pager::events::recognise::owner_of_memory;
use crate::pager::{Pager, Stop};
use crate::sys::own_limits::in_words;
use crate::sys::process;
use crate::sys::procfs;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steps::Pending;

/// Failed attempts for reasons that may pass (limits, debuggers) before a process counts as
/// unprotectable.
const TRIES: u32 = 200;
/// The same for reasons that lie in the program itself and rarely pass.
const FEW_TRIES: u32 = 4;
/// The time that the watcher spends on injections without a pause, or as long as the look took.
const PATIENCE: Duration = Duration::from_millis(5);
/// Attempts to stop all threads of a process, after which it is armed without stopping all of them.
/// A thread that stays in the kernel, such as the parent in a vfork, must not keep the process
/// unprotected.
const TIMES_UNSETTLED: u32 = 3;
/// The longest time that a process is stopped while its pages beyond the limit are evicted.
/// Afterwards it runs, but its faults wait until there is room.
const SURPLUS_PATIENCE: Duration = Duration::from_millis(100);
/// Pages that a process may take without room for them while it cannot get its agent for a reason
/// that may pass: its other threads, while an `execve` keeps it from being stopped; a debugger has
/// it.
const MOST_WHILE_REFUSED: u64 = 64;
/// A process with fewer pages is not armed: it may be about to exec.
pub(super) const MIN_PAGES: u64 = 16;

pub(super) struct Arming {
    injector: Injector,
    pending: Vec<Pending>,
    /// Injections that gave a process its agent, and when. It stays stopped while its pages beyond
    /// the limit are evicted.
    armed: Vec<(Injection, Instant)>,
    /// Injections that have ended while some thread of the program cannot be resumed yet.
    thawing: Vec<Injection>,
    /// Threads that were asked to stop and have not stopped yet; they can be resumed only after
    /// that.
    stopping: Vec<Hold>,
    /// Agents that may be on their way, of programs that were killed while they made them.
    lost: Vec<LostAgent>,
    device: Option<File>,
    allow_unprotected: bool,
    /// Every process is armed, however much room there is: only then can its pages leave.
    arms_all: bool,
    /// The run is to be locked: also the smallest, and one that can have no agent is no failure.
    arms_for_lock: bool,
    /// Threads that were stopped complete their transfers.
    follows: bool,
}

impl Arming {
    pub fn new(policy: Policy) -> std::io::Result<Self> {
        Ok(Arming {
            injector: Injector::new()?.announcing(),
            pending: Vec::new(),
            armed: Vec::new(),
            thawing: Vec::new(),
            stopping: Vec::new(),
            lost: Vec::new(),
            device: File::options().read(true).write(true).open("/dev/userfaultfd").ok(),
            allow_unprotected: policy.allow_unprotected,
            arms_all: policy.idle.is_some(),
            arms_for_lock: false,
            follows: false,
        })
    }

    /// Whether an injection is in progress, or what one left is to be looked for.
    pub fn is_pending(&self) -> bool {
        self.is_busy() || self.follows || !self.lost.is_empty()
    }

    /// Whether threads are stopped for an agent, or to be let go.
    pub fn is_busy(&self) -> bool {
        let lets_go = !self.thawing.is_empty() || !self.stopping.is_empty();
        lets_go || !self.pending.is_empty() || !self.armed.is_empty()
    }

    /// Every process is to have its agent, since the run is to be locked; or not any more.
    pub fn arm_all_for_lock(&mut self, is_wanted: bool) {
        self.arms_for_lock = is_wanted;
    }

    /// A process with fewer anonymous pages is not armed.
    fn least_pages(&self) -> u64 {
        if self.arms_for_lock { 1 } else { MIN_PAGES }
    }

    /// The agents that exist of injections in progress.
    pub fn agents(&self) -> Vec<i32> {
        self.pending.iter().filter_map(|pending| pending.injection.agent_pid()).collect()
    }

    /// The processes with an injection in progress, and those whose memory these use since a vfork.
    pub fn pids(&self) -> Vec<i32> {
        let pending = self.pending.iter().filter(|pending| !pending.injection.is_cancelled());
        let pending = pending.flat_map(|pending| [pending.injection.pid(), pending.owner]);
        let armed = self.armed.iter().map(|(injection, _)| injection);
        pending.chain(armed.chain(&self.thawing).map(Injection::pid)).collect()
    }

    /// Starts the injections of those that grow and may pass the bound before the next look, which
    /// stops them.
    pub fn stop_growing(
        &mut self,
        pager: &Pager,
        family: &mut Family,
        pace: &Pace,
    ) -> Result<(), Stop> {
        self.begin_all(pager, family, self.choose_growing(pager, family, pace))
    }

    /// Starts the injections of the processes that are chosen, which stops these, and continues
    /// those in progress. The look that this is a part of began at `looked`.
    pub fn tick(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        looked: Instant,
        precedence: &mut Precedence,
    ) -> Result<(), Stop> {
        self.follows = follow_transfers();
        self.thawing.retain_mut(|injection| !injection.let_go());
        self.stopping.retain_mut(|hold| !hold.let_go());
        self.end_lost(family);
        let asking = pager.growing.lock().look();
        self.pass_over_sleepers(&asking);
        self.begin_all(pager, family, self.choose(pager, family, &asking))?;
        self.sort_pending(&asking);
        self.proceed(pager, handlers, family, looked, precedence)
    }

    /// Ends agents of programs that are no more. They would wait for the keeper, and the run for
    /// them.
    fn end_lost(&mut self, family: &mut Family) {
        if self.lost.is_empty() {
            return;
        }
        let all = procfs::descendants(std::process::id() as i32);
        self.lost.retain_mut(|lost| match lost.look(&all) {
            Found::Nothing => true,
            Found::Ended(agent) => {
                family.forget_agent(agent);
                false
            }
            Found::NoAgent => false,
        });
    }

    /// Lets those go that have their agent, if there is room, or no more can be made soon.
    pub fn let_go_of_armed(&mut self, more_to_reclaim: bool) {
        let is_over = |(_, since): &mut (Injection, Instant)| {
            !more_to_reclaim || since.elapsed() > SURPLUS_PATIENCE
        };
        let over = self.armed.extract_if(.., is_over);
        self.thawing.extend(over.map(|(injection, _)| injection));
        self.thawing.retain_mut(|injection| !injection.let_go());
    }

    /// Begins to give these processes their agents, unless they share memory with one that has one.
    /// Those for which there is no time are chosen again at the next look, after those that run
    /// then.
    fn begin_all(
        &mut self,
        pager: &Pager,
        family: &mut Family,
        chosen: Vec<i32>,
    ) -> Result<(), Stop> {
        if chosen.is_empty() {
            return Ok(());
        }
        let mut taken = Family::taken(pager, &self.pids());
        let until = Instant::now() + PATIENCE;
        for pid in chosen {
            if Instant::now() > until {
                break;
            }
            let in_memory = InMemory::of(pid);
            if in_memory.is_apart_from(&taken) && self.begin(pager, family, pid)? {
                taken.push(in_memory);
            }
        }
        Ok(())
    }

    /// Begins to give process `pid` an agent. Whether it is under way.
    fn begin(&mut self, pager: &Pager, family: &mut Family, pid: i32) -> Result<bool, Stop> {
        // The child of a vfork stands for its parent.
        let owner = owner_of_memory(pid).unwrap_or(pid);
        let Some(process) = family.processes.get_mut(&owner) else { return Ok(false) };
        if process.space.is_none() && process.may_be_forked(&family.armed) {
            return Ok(false);
        }
        process.is_tried_for_aim = self.arms_for_lock || pager.budget.has_room_but_for_aim();
        let device = self.device.as_ref().map(AsFd::as_fd);
        let is_forked = process.space.and_then(|id| pager.space(id));
        // Nothing beyond the run is heard.
        let own = std::process::id() as i32;
        let parent = |pid| Some(procfs::state_and_parent(pid)?.1).filter(|&parent| parent != own);
        let is_heard = pager.heard.lock().includes(pid, parent)
            || is_forked.as_ref().is_some_and(|space| space.state.lock().calls.is_announced);
        let holds = process.unsettled < TIMES_UNSETTLED;
        let begun = match (is_heard, holds) {
            (true, _) => self.injector.begin_heard(pid, device, holds),
            (false, true) => self.injector.begin_holding(pid, device),
            (false, false) => self.injector.begin(pid, device),
        };
        let mut injection = match begun {
            Ok(injection) => injection,
            Err(error) => {
                self.failed(pager, family, pid, &error);
                return Ok(false);
            }
        };
        // A forked child's memory is registered with the descriptor that it inherited.
        if let Some(space) = &is_forked {
            let uffd = space.uffd.duplicate().map_err(|error| {
                Stop::Internal(format!("duplicating a descriptor: {}", in_words(&error)))
            })?;
            injection.inherit(uffd);
        }
        let space = is_forked.map(|s| s.id);
        self.pending.push(Pending::new(injection, owner, space));
        Ok(true)
    }

    /// Gives up injections into processes that cannot be stopped because a child uses their memory
    /// (`vfork`) and asks for more: the agent is then injected through the child.
    fn pass_over_sleepers(&mut self, asking: &[i32]) {
        for pending in &mut self.pending {
            let pid = pending.injection.pid();
            let is_in_the_way = |&other: &i32| other != pid && process::same_memory(pid, other);
            if asking.iter().any(is_in_the_way) && procfs::sleeps_for_good(pid) {
                pending.injection.cancel();
            }
        }
    }
}
