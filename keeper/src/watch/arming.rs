//! Arming: a process is given an agent and comes under the pager. Large ones first, and only when
//! the plaintext of the whole run nears its bound.

mod choice;
mod failed;

use super::Policy;
use super::family::{Family, InMemory};
use super::precedence::Precedence;
use crate::announcer::{self, CallsWait};
use crate::event_counts::add;
use crate::hand::{
    Announcements, Found, Hand, Hold, InjectError, Injection, Injector, LostAgent, Progress,
    StagingKind, follow_transfers,
};
use crate::handlers::Handlers;
use crate::pager::events::recognise::owner_of_memory;
use crate::pager::space::{Mapped, Space, SpaceState};
use crate::pager::{Pager, Stop};
use crate::sys::own_limits::in_words;
use crate::sys::process;
use crate::sys::procfs;
use crate::sys::sched;
use crate::sys::seccomp::Listener;
use crate::sys::uffd::{Refusal, Userfault, feature};
use casemate_pages::SpaceId;
use std::cmp::Reverse;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Failed attempts for reasons that may pass (limits, debuggers) before a process counts as
/// unprotectable.
const TRIES: u32 = 200;
/// The same for reasons that lie in the program itself and rarely pass.
const FEW_TRIES: u32 = 4;
/// The time that the watcher spends on injections without a pause, or as long as the look took.
const PATIENCE: Duration = Duration::from_millis(5);
/// The shortest such time, while other programs grow that may pass the limit meanwhile.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);
/// The longest such time, where a look at very many processes takes longer.
const MOST_PATIENCE: Duration = Duration::from_millis(50);
/// Injections that go on at the same time. Of the processes that wait for theirs all are stopped.
const MOST_UNDER_WAY: usize = 4;
/// After so long an injection that does not end lets the next one go on.
const TURN: Duration = Duration::from_millis(20);
/// A process that has been stopped for so long is passed over for no other.
const LONGEST_PASSED_OVER: Duration = Duration::from_millis(50);
/// Attempts to stop all threads of a process, after which it is armed without stopping all of them.
/// A thread that stays in the kernel, such as the parent in a vfork, must not keep the process
/// unprotected.
const TIMES_UNSETTLED: u32 = 3;
/// The longest time that a process is stopped while its pages beyond the limit are evicted.
/// Afterwards it runs, but its faults wait until there is room.
const SURPLUS_PATIENCE: Duration = Duration::from_millis(100);
/// Pages that the other threads of a process may use without room for them, while an `execve` of
/// the process keeps it from being stopped.
const MOST_IN_EXECVE: u64 = 64;
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

/// An injection in progress, and the space of the process when it began.
struct Pending {
    injection: Injection,
    /// The process that owns the memory: this one, or the parent whose memory it uses since a
    /// vfork.
    owner: i32,
    space: Option<SpaceId>,
    /// When it was begun, which stops the process.
    begun: Instant,
    /// When it was first asked how far it is, in its turn.
    since: Option<Instant>,
    /// Whether its agent is known to the family.
    is_noted: bool,
}

impl Pending {
    /// Whether it has had its turn, which is over then.
    fn ends_turn(&mut self) -> bool {
        let is_over = self.since.is_some_and(|since| since.elapsed() > TURN);
        if is_over {
            self.since = None;
        }
        is_over
    }
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
        let asking = pager.growing.lock().wanting();
        self.pass_over_sleepers(&asking);
        self.begin_all(pager, family, self.choose_growing(pager, family))?;
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

    fn sort_pending(&mut self, asking: &[i32]) {
        let waits =
            |of: &Pending| asking.contains(&of.owner) || asking.contains(&of.injection.pid());
        self.pending.sort_by_key(|pending| turn(pending.begun.elapsed(), waits(pending)));
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
        let begun = Instant::now();
        let pending = Pending { injection, owner, space, begun, since: None, is_noted: false };
        self.pending.push(pending);
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

    /// Takes the steps that are due, without sleeping for a while: until its agent is in place, the
    /// program can touch new memory.
    fn proceed(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        looked: Instant,
        precedence: &mut Precedence,
    ) -> Result<(), Stop> {
        // Of many processes a look takes long. At least half of the time is for their agents.
        let least = match pager.budget.may_overflow() && family.unarmed_growing() > 0 {
            true => LEAST_PATIENCE,
            false => PATIENCE,
        };
        // A small limit is kept by announced calls, and judged at looks: these come often.
        let most = if pager.budget.is_small() { PATIENCE } else { MOST_PATIENCE };
        let patience = looked.elapsed().clamp(least, most);
        let until = Instant::now() + patience;
        while !self.pending.is_empty() && Instant::now() < until {
            self.step(pager, handlers, family, until)?;
            precedence.see_to();
            sched::give_way();
        }
        Ok(())
    }

    /// Takes a step with each of the first injections, or with as many of them as there is time
    /// for.
    fn step(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        until: Instant,
    ) -> Result<(), Stop> {
        let (mut still, mut had_turn, mut asked) = (Vec::new(), Vec::new(), 0);
        for mut pending in std::mem::take(&mut self.pending) {
            let pid = pending.injection.pid();
            pager.growing.lock().stop(pid, &pending.injection.stopping());
            let is_over = pending.injection.is_over();
            if !is_over && (asked == MOST_UNDER_WAY || Instant::now() >= until) {
                still.push(pending);
                continue;
            }
            asked += usize::from(!is_over);
            pending.since.get_or_insert_with(Instant::now);
            let progress = pending.injection.poll();
            // It may be given up before a census sees it.
            if !pending.is_noted {
                pending.is_noted = match (&progress, pending.injection.agent_pid()) {
                    (Progress::Done(hand), _) => {
                        family.note_agent(hand.agent_pid(), || !hand.has_ended())
                    }
                    (_, Some(agent)) => {
                        family.note_agent(agent, || pending.injection.agent_lives())
                    }
                    (_, None) => false,
                };
            }
            match progress {
                Progress::Pending => {
                    let turn_is_over = pending.ends_turn();
                    if turn_is_over { &mut had_turn } else { &mut still }.push(pending);
                    continue;
                }
                Progress::Done(hand) => {
                    let space = family.processes.get(&pending.owner).map(|p| p.space);
                    // The process may have executed another program meanwhile, or been found to be
                    // a forked child. Then the agent holds the wrong userfaultfd, and the injection
                    // starts again.
                    let (is_announced, listener) =
                        announced(pager, pid, pending.injection.take_announcements());
                    if space == Some(pending.space) {
                        // Of those that slept some may be awake. Their calls wait until the space
                        // exists; otherwise the announcer would let them through unseen.
                        let is_armed = match CallsWait::begin(pager, pid) {
                            Ok(_calls_wait) => {
                                pager.growing.lock().forget(pid);
                                let owner = pending.owner;
                                self.arm(pager, handlers, family, owner, hand, is_announced)?;
                                true
                            }
                            Err(stopping) => {
                                self.stopping.extend(stopping);
                                self.failed(pager, family, pid, &InjectError::Unsettled);
                                false
                            }
                        };
                        listener.map_or(Ok(()), |listener| hear(pager, pid, listener))?;
                        if is_armed {
                            self.armed.push((pending.injection, Instant::now()));
                            continue;
                        }
                    } else {
                        listener.map_or(Ok(()), |listener| hear(pager, pid, listener))?;
                    }
                }
                Progress::Failed(error) => {
                    self.lost.extend(pending.injection.take_lost());
                    // Under the filter its calls wait for an answer, whether the process is armed
                    // or not.
                    if let Announcements::Listener(listener) =
                        pending.injection.take_announcements()
                    {
                        hear(pager, pid, listener)?;
                    }
                    self.failed(pager, family, pid, &error);
                }
            }
            if !pending.injection.let_go() {
                self.thawing.push(pending.injection);
            }
        }
        still.extend(had_turn);
        self.pending = still;
        Ok(())
    }

    /// Called when the agent is in place: makes a space for the process, or gives its space the
    /// agent.
    fn arm(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        pid: i32,
        mut hand: Hand,
        is_announced: bool,
    ) -> Result<(), Stop> {
        family.are_on_their_own();
        let Some(process) = family.processes.get_mut(&pid) else { return Ok(()) };
        let uffd = hand.take_program_uffd();
        let parents = process.space.and_then(|id| pager.space(id));
        let is_forked = parents.is_some();
        let space = match parents {
            Some(space) => {
                // A forked child: its memory is registered with the descriptor it inherited.
                let mut state = space.state.lock();
                let unregistered = state.mapped.unregistered_address();
                if !self.can_evict(pager, family, pid, &mut hand, (&space.uffd, unregistered)) {
                    return Ok(());
                }
                space.agent.store(hand.agent_pid(), Relaxed);
                state.take_hand(hand)?;
                pager.events().is_armed(&mut state);
                state.calls.is_announced = is_announced;
                space.announced.store(is_announced, Relaxed);
                pager.events().begin_to_announce(&space, &mut state)?;
                drop(state);
                space
            }
            None => {
                let Some(uffd) = uffd else { return Ok(()) };
                let Some(space) = self.new_space(pager, family, pid, uffd, hand, is_announced)?
                else {
                    return Ok(());
                };
                handlers.listen(&space);
                space
            }
        };
        // So have those that share its memory.
        pager.growing.lock().retain(|other| other != pid && !process::same_memory(other, pid));
        add(&pager.counts.processes_armed, 1);
        let Some(process) = family.processes.get_mut(&pid) else { return Ok(()) };
        process.space = Some(space.id);
        process.executing = None;
        family.armed.begin(procfs::living_thread(pid).unwrap_or(pid));
        process.survey(pager, &space, SURPLUS_PATIENCE)?;
        if !is_forked {
            // A child's memory is a copy of its parent's, and the child may end soon.
            process.reconcile(pager, &space, SURPLUS_PATIENCE)?;
        }
        pager.fault().serve_left_over(&space)
    }

    fn new_space(
        &mut self,
        pager: &Arc<Pager>,
        family: &mut Family,
        pid: i32,
        uffd: OwnedFd,
        mut hand: Hand,
        is_announced: bool,
    ) -> Result<Option<Arc<Space>>, Stop> {
        let enabled = process::with_ptrace_capability(|| Userfault::enable(uffd, feature::PROGRAM));
        let uffd = match enabled {
            Ok(uffd) => uffd,
            Err(error) => {
                drop(hand);
                let why = format!(
                    "the kernel refused the fork event of userfaultfd ({error}); \
                     run `casemate doctor` for the remedy"
                );
                self.unprotectable(pager, family, pid, &why);
                return Ok(None);
            }
        };
        let unregistered = Mapped::default().unregistered_address();
        if !self.can_evict(pager, family, pid, &mut hand, (&uffd, unregistered)) {
            return Ok(None);
        }
        let id = pager.new_space_id();
        let state = SpaceState::armed(pid, hand, is_announced)?;
        pager.open_space(id)?;
        let space = Space::within(pager.quotas.of_process(pid), id, uffd, state);
        space.heard.store(true, Relaxed);
        pager.add_space(&space);
        Ok(Some(space))
    }

    /// Makes the agent's first staging, without which no page can be evicted, and returns whether
    /// that succeeded. Also false if the process has executed another program: then the agent is in
    /// the new program's memory, where the space's address is not registered.
    fn can_evict(
        &self,
        pager: &Pager,
        family: &mut Family,
        pid: i32,
        hand: &mut Hand,
        (uffd, unregistered): (&Userfault, u64),
    ) -> bool {
        let mut register = |start, len| uffd.register(start, len);
        let Err(error) = hand.make_staging(StagingKind::Rw, &mut register, &mut || {}) else {
            return true;
        };
        let is_gone = uffd.quiet(unregistered) == Err(Refusal::SpaceGone);
        if !is_gone && error.raw_os_error() != Some(libc::ESRCH) {
            let error = InjectError::call(pid, "the mmap of the agent", error);
            self.unprotectable(pager, family, pid, &error.to_string());
        }
        false
    }
}

/// The order of processes that wait for their agents: those first that have been stopped for long,
/// the longest first, then those whose calls wait. Where processes come all the time, and each
/// makes such a call, others would never have their turn.
fn turn(stopped: Duration, waits: bool) -> (u8, Reverse<Duration>) {
    match stopped > LONGEST_PASSED_OVER {
        true => (0, Reverse(stopped)),
        false => (1 + u8::from(!waits), Reverse(Duration::ZERO)),
    }
}

/// Whether the calls of process `pid` are announced from now on, and their listener if it is new.
fn announced(pager: &Pager, pid: i32, announcements: Announcements) -> (bool, Option<OwnedFd>) {
    match announcements {
        Announcements::Listener(listener) => {
            let descendants = procfs::descendants(pid);
            pager.heard.lock().begin(pid, descendants);
            return (true, Some(listener));
        }
        Announcements::Inherited => {
            pager.heard.lock().insert(pid);
            return (true, None);
        }
        Announcements::Refused(why) => drop(pager.unannounced.set(why)),
        Announcements::None => {}
    }
    add(&pager.counts.processes_unannounced, 1);
    (false, None)
}

/// Starts to answer the calls of process `pid`, which have been waiting.
fn hear(pager: &Arc<Pager>, pid: i32, listener: OwnedFd) -> Result<(), Stop> {
    announcer::listen(pager, Listener::new(listener))
        .map_err(|error| Stop::Internal(format!("hearing the calls of process {pid}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_been_stopped_for_long_is_passed_over_for_no_other() {
        let ms = Duration::from_millis;
        let mut all = [(ms(1), false), (ms(60), false), (ms(2), true), (ms(90), true)];
        all.sort_by_key(|&(stopped, waits)| turn(stopped, waits));
        assert_eq!(all, [(ms(90), true), (ms(60), false), (ms(2), true), (ms(1), false)]);
        // The others stay in the order in which they came.
        assert_eq!(turn(ms(1), true), turn(ms(50), true));
    }
}
