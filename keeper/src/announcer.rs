//! Threads that receive the system calls announced by armed programs: one thread for each seccomp
//! listener. A listener covers a program and all its descendants.

mod calls_wait;
mod room;
mod words;

pub(crate) use calls_wait::CallsWait;
pub(crate) use room::allows;

use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::hand::{Undisturbed, enter_strict_mode};
use crate::pager::events::calls::{Answer, Begins};
use crate::pager::events::recognise::{Found, shares_memory};
use crate::pager::space::{InFlight, Space};
use crate::pager::{Pager, Stop};
use crate::secrets;
use crate::sys::procfs;
use crate::sys::seccomp::{Announced, Listener};
use crate::sys::{poll, process, sched};
use casemate_pages::SpaceId;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use words::{Argument, Words};

/// How long a call waits for another call of its space before the announcer checks whether that one
/// has ended.
const PATIENCE: Duration = Duration::from_micros(200);
/// The same where threads are about to stop, which stand still meanwhile.
const PATIENCE_WITH_STOPS: Duration = Duration::from_micros(50);
/// A thread that has been running for this long since its call was let through is stopped, to find
/// out whether it is still in the call.
const TIME_TO_STOP: Duration = Duration::from_millis(20);
/// The most threads whose space is cached.
const MOST_THREADS: usize = 4096;

/// Starts a thread that answers the calls announced on `listener`.
pub(crate) fn listen(pager: &Arc<Pager>, listener: Listener) -> io::Result<()> {
    let pager = Arc::clone(pager);
    let announcer = move || {
        sched::hurry(0);
        let mut announcer = Announcer {
            pager: &pager,
            listener,
            received: Vec::new(),
            waiting: Vec::new(),
            spaces: HashMap::new(),
            forking: Vec::new(),
            undisturbed: Vec::new(),
            words: Words::default(),
        };
        if let Err(stop) = announcer.run() {
            pager.stop(stop);
        }
    };
    secrets::spawn("calls", announcer).map(drop)
}

struct Announcer<'a> {
    pager: &'a Arc<Pager>,
    listener: Listener,
    /// Calls that were received, and not handled yet.
    received: Vec<Announced>,
    /// Calls that wait for another call of the same space to end.
    waiting: Vec<Announced>,
    /// Cache: the space in which each thread was found last.
    spaces: HashMap<i32, SpaceId>,
    /// Spaces with forks that were let through and may still be in progress.
    forking: Vec<SpaceId>,
    /// Threads whose signals are held back while they fork.
    undisturbed: Vec<Undisturbed>,
    words: Words,
}

impl Announcer<'_> {
    /// Receives and answers calls until the listener has no process left.
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            let patience = match (self.received.is_empty(), self.undisturbed.is_empty()) {
                (false, _) => Some(Duration::ZERO),
                (true, true) => (!self.waiting.is_empty()).then_some(PATIENCE),
                (true, false) => Some(PATIENCE_WITH_STOPS),
            };
            secrets::pass();
            let (can_receive, is_over) = poll::readable(&self.listener, patience);
            secrets::pass();
            if !can_receive && is_over && self.received.is_empty() {
                return Ok(());
            }
            if can_receive {
                self.receive_all()?;
            }
            let received = std::mem::take(&mut self.received);
            // Those that wait first: a thread that makes one call after the other would be the next
            // each time.
            self.ask_again()?;
            received.into_iter().try_for_each(|call| self.handle(call))?;
            self.undisturbed.retain_mut(|fork| !fork.is_over());
        }
    }

    /// Handles a call, which may take milliseconds, and receives those that came meanwhile.
    fn handle(&mut self, call: Announced) -> Result<(), Stop> {
        self.hear(call)?;
        match poll::readable(&self.listener, Some(Duration::ZERO)).0 {
            true => self.receive_all(),
            false => Ok(()),
        }
    }

    /// Receives all pending calls: after it is received, a call cannot be interrupted by a signal.
    fn receive_all(&mut self) -> Result<(), Stop> {
        loop {
            let received = self.listener.receive().map_err(|error| {
                Stop::Internal(format!("hearing the calls of a program: {error}"))
            })?;
            if let Some(call) = received {
                self.pager.received.lock().insert(call.tid);
                self.received.push(call);
            }
            if !poll::readable(&self.listener, Some(Duration::ZERO)).0 {
                return Ok(());
            }
        }
    }

    fn ask_again(&mut self) -> Result<(), Stop> {
        for call in std::mem::take(&mut self.waiting) {
            if let Home::Space(space) = self.known_home(call.tid) {
                let pager = self.pager;
                // One that is received from the same thread has not begun: that thread has left the
                // one before. (Only this thread can tell: a call that it is about to let go is
                // received still, and under way already.)
                let has_left = &mut |other: &InFlight| {
                    pager.received.lock().contains(&other.tid) || other.is_over(TIME_TO_STOP)
                };
                pager.events().check_in_flight(&space, has_left)?;
            }
            self.handle(call)?;
        }
        Ok(())
    }

    fn hear(&mut self, call: Announced) -> Result<(), Stop> {
        let Some(argument) = self.words.of(&call) else {
            self.waiting.push(call);
            return Ok(());
        };
        if asks_for_strict_mode(&call) {
            self.make_strict(call);
            return Ok(());
        }
        let begins = begins(&call, argument);
        let added = self.pager.spaces_added();
        let home = self.home_for(&call)?;
        if matches!(home, Home::NotKnownYet) || self.waits_for_stores(&home, &call)? {
            self.waiting.push(call);
            return Ok(());
        }
        if matches!(call.number, libc::SYS_exit | libc::SYS_exit_group | libc::SYS_futex) {
            if call.number == libc::SYS_exit {
                self.spaces.remove(&call.tid);
            }
            self.go_on(&call);
            return Ok(());
        }
        self.note_call(&home, &call, begins, argument);
        let answer = match (self.room_first(&home, &call), home) {
            (Some(answer), _) => answer,
            (None, Home::Space(space)) => {
                if begins == Begins::Fork && !self.forking.contains(&space.id) {
                    self.forking.push(space.id);
                }
                self.make_or_order(&space, &call, begins, argument)?
            }
            (None, Home::Unclaimed(_) | Home::NotKnownYet) => self.let_through(&call, added),
        };
        self.give(answer, call);
        Ok(())
    }

    /// The space of a call. After an execve the old memory does not matter, and if the execve
    /// fails, the thread's next call finds the space again; a forked child that is not known yet
    /// has not had a fault served.
    fn home_for(&mut self, call: &Announced) -> Result<Home, Stop> {
        match call.number {
            libc::SYS_execve | libc::SYS_execveat | libc::SYS_exit_group => {
                Ok(self.known_home(call.tid))
            }
            _ => self.home_of(call.tid),
        }
    }

    /// Whether pages of its space to which the kernel stores in this call cannot be held in place
    /// yet.
    fn waits_for_stores(&self, home: &Home, call: &Announced) -> Result<bool, Stop> {
        let stores = matches!(
            call.number,
            libc::SYS_execve
                | libc::SYS_execveat
                | libc::SYS_exit
                | libc::SYS_exit_group
                | libc::SYS_futex
        );
        match home {
            Home::Space(space) if stores => Ok(!self.pager.events().prepare_stores(space, call)?),
            _ => Ok(false),
        }
    }

    /// Tells the others of a call that is about to be answered, and counts what the kernel will
    /// refuse.
    fn note_call(&self, home: &Home, call: &Announced, begins: Begins, argument: Argument) {
        match call.number {
            libc::SYS_execve | libc::SYS_execveat => {
                // The process may be armed before it makes its next call.
                if let Some(pid) = self.note(call.tid) {
                    self.pager.growing.lock().executes(pid);
                }
                self.pager.attention.executes(call.tid);
            }
            // The kernel refuses a second listener.
            libc::SYS_seccomp if !works_for_us(call.tid) => {
                add(&self.pager.counts.listeners_refused, 1);
            }
            // The kernel refuses to register memory that the pager's userfaultfd has registered.
            libc::SYS_ioctl if asks_for_ours(home, argument) => {
                add(&self.pager.counts.userfaults_refused, 1);
            }
            _ if begins == Begins::Fork => self.pager.attention.stir(),
            _ => {}
        }
    }

    fn give(&mut self, answer: Answer, call: Announced) {
        match answer {
            Answer::Made(result) => {
                self.pager.received.lock().remove(&call.tid);
                self.listener.answer(&call, result);
            }
            Answer::GoOn | Answer::GoOnUndisturbed => self.go_on(&call),
            Answer::Later => self.waiting.push(call),
            Answer::Given | Answer::Never => {}
        }
    }

    /// Makes a call of a space, or queues it behind an earlier one. The lock on `arming` keeps the
    /// space from getting its agent meanwhile: arming registers the memory that the call may be
    /// changing.
    fn make_or_order(
        &mut self,
        space: &Arc<Space>,
        call: &Announced,
        begins: Begins,
        argument: Argument,
    ) -> Result<Answer, Stop> {
        let pager = Arc::clone(self.pager);
        let arming = pager.arming.lock();
        if is_armed_now(&arming, call.tid) {
            return Ok(Answer::Later);
        }
        // Now a thread that starts to arm the process finds the call in progress.
        let held = (space.agent.load(Relaxed) == 0).then_some(arming);
        let answer = self.pager.events().announced(space, call, begins)?;
        match answer {
            Answer::GoOn if held.is_some() => self.go_on(call),
            Answer::GoOnUndisturbed => self.go_on_undisturbed(call, argument),
            other => return Ok(other),
        }
        Ok(Answer::Given)
    }

    /// Lets a call of a process that is not armed continue, unless its space is being created.
    /// `added` is the number of spaces created before the look-up that did not find the process.
    fn let_through(&mut self, call: &Announced, added: u64) -> Answer {
        // Held until the call is recorded as in progress, so that a thread that starts to arm the
        // process finds it.
        let arming = Arc::clone(self.pager);
        let arming = arming.arming.lock();
        if is_armed_now(&arming, call.tid) || self.pager.spaces_added() != added {
            return Answer::Later;
        }
        self.pager.attention.stir();
        self.note(call.tid);
        self.go_on(call);
        Answer::Given
    }

    /// Lets a thread make its call, which is in progress from now on.
    fn go_on(&self, call: &Announced) {
        self.pager.received.lock().remove(&call.tid);
        self.listener.go_on(call);
    }

    /// Lets a thread fork, with its signals held back from its next attempt on.
    fn go_on_undisturbed(&mut self, call: &Announced, argument: Argument) {
        let is_begun = self.undisturbed.iter().any(|fork| fork.is_of(call.tid));
        // A child that no tracer is to have could not be given back its mask.
        if !is_begun && flags(call, argument) & libc::CLONE_UNTRACED as u64 == 0 {
            let pid = procfs::process_of(call.tid);
            self.undisturbed.extend(pid.and_then(|pid| Undisturbed::begin(pid, call.tid)));
        }
        self.go_on(call);
    }

    /// Handles a thread's request for seccomp's strict mode. While the watcher is injecting into
    /// its process, the request is queued.
    fn make_strict(&mut self, call: Announced) {
        let is_made = procfs::process_of(call.tid)
            .is_none_or(|pid| enter_strict_mode(pid, call.tid, || self.go_on(&call)));
        if !is_made {
            self.waiting.push(call);
        }
    }

    /// Notes that the calls of a thread's process are announced, which arming needs to know.
    /// Returns that process.
    fn note(&self, tid: i32) -> Option<i32> {
        // Fast path: most threads are the first of their process.
        let is_noted = self.pager.heard.lock().contains(tid);
        let pid = if is_noted { tid } else { procfs::process_of(tid)? };
        self.pager.heard.lock().insert(pid);
        Some(pid)
    }

    /// The space of a thread. A thread of an unknown process may be making the first call of a
    /// forked child, whose pages identify its space.
    fn home_of(&mut self, tid: i32) -> Result<Home, Stop> {
        if let Some(space) = self.remembered_home(tid) {
            return Ok(Home::Space(space));
        }
        self.await_forks()?;
        let unclaimed = match self.known_home(tid) {
            Home::Unclaimed(spaces) => spaces,
            home => return Ok(home),
        };
        let mut is_known = true;
        for space in unclaimed {
            match self.pager.events().recognise(&space, tid)? {
                Found::Here => return Ok(self.remember(tid, space)),
                Found::Elsewhere => {}
                Found::NotYet => is_known = false,
            }
        }
        Ok(if is_known { Home::Unclaimed(Vec::new()) } else { Home::NotKnownYet })
    }

    /// The space of a thread, as far as the processes of spaces are known.
    fn known_home(&mut self, tid: i32) -> Home {
        if let Some(space) = self.remembered_home(tid) {
            return Home::Space(space);
        }
        let mut unclaimed = Vec::new();
        for space in self.pager.all_spaces() {
            match runs_in(tid, &space) {
                Some(true) => return self.remember(tid, space),
                Some(false) => {}
                None => unclaimed.push(space),
            }
        }
        Home::Unclaimed(unclaimed)
    }

    fn remembered_home(&self, tid: i32) -> Option<Arc<Space>> {
        let known = self.spaces.get(&tid).and_then(|&id| self.pager.space(id));
        known.filter(|space| runs_in(tid, space) == Some(true))
    }

    fn remember(&mut self, tid: i32, space: Arc<Space>) -> Home {
        if self.spaces.len() > MOST_THREADS {
            self.spaces.clear();
        }
        self.spaces.insert(tid, space.id);
        Home::Space(space)
    }

    /// Checks the forks that this announcer let through, and keeps those still in progress. A
    /// forked child needs its space before its first call, which arrives here too.
    fn await_forks(&mut self) -> Result<(), Stop> {
        for id in std::mem::take(&mut self.forking) {
            if let Some(space) = self.pager.space(id)
                && self.pager.events().is_forking(&space)?
            {
                self.forking.push(id);
            }
        }
        Ok(())
    }
}

/// Whether the process of a thread is in `arming`, the processes that are being armed.
fn is_armed_now(arming: &HashSet<i32>, tid: i32) -> bool {
    !arming.is_empty() && procfs::process_of(tid).is_none_or(|pid| arming.contains(&pid))
}

/// Whether a call that registers memory with a userfaultfd names memory that the pager has
/// registered.
fn asks_for_ours(home: &Home, argument: Argument) -> bool {
    let (Home::Space(space), Some([start, bytes, _])) = (home, argument) else { return false };
    let page = PAGE_BYTES as u64;
    let pages = start / page..start.saturating_add(bytes).div_ceil(page);
    !space.state.lock().mapped.registered.common_with(&pages).is_empty()
}

/// The space of a thread.
enum Home {
    /// In a space that is under the pager.
    Space(Arc<Space>),
    /// No space is known to have the thread's process. Of these spaces no living process is
    /// known.
    Unclaimed(Vec<Arc<Space>>),
    /// Possibly one of the unclaimed spaces: to be determined again later.
    NotKnownYet,
}

/// Whether the memory of a thread is that of `space`; none if no living process of `space` is
/// known.
fn runs_in(tid: i32, space: &Space) -> Option<bool> {
    if space.is_gone() {
        return Some(false);
    }
    match space.agent.load(Relaxed) {
        0 => {
            let state = space.state.lock();
            let is_here = state.processes.pids.iter().any(|&pid| shares_memory(tid, pid));
            (is_here || !state.is_unclaimed()).then_some(is_here)
        }
        agent => Some(process::same_memory(tid, agent)),
    }
}

/// What a call begins. The flags and the word of `clone3` are the first and the third word of its
/// argument.
fn begins(call: &Announced, argument: Argument) -> Begins {
    let address = match call.number {
        libc::SYS_fork => None,
        libc::SYS_clone => Some(call.arguments[3]),
        libc::SYS_clone3 => argument.map(|words| words[2]),
        _ => return Begins::Other,
    };
    let flags = flags(call, argument);
    let has = |flag: i32| flags & flag as u64 != 0;
    match address {
        _ if !has(libc::CLONE_VM) => Begins::Fork,
        Some(address) if has(libc::CLONE_CHILD_CLEARTID) => Begins::Awaited(address),
        _ => Begins::Other,
    }
}

/// The flags of a call that begins a thread or a child.
fn flags(call: &Announced, argument: Argument) -> u64 {
    match call.number {
        libc::SYS_clone => call.arguments[0],
        libc::SYS_clone3 => argument.map_or(0, |words| words[0]),
        _ => 0,
    }
}

/// Whether a call asks for seccomp's strict mode. Calls of `seccomp` that ask for a listener are
/// announced too.
fn asks_for_strict_mode(call: &Announced) -> bool {
    match call.number {
        libc::SYS_prctl => true,
        libc::SYS_seccomp => call.arguments[0] == u64::from(libc::SECCOMP_SET_MODE_STRICT),
        _ => false,
    }
}

/// Whether a thread makes its call on behalf of an injection: its tracer is a thread of the keeper.
fn works_for_us(tid: i32) -> bool {
    procfs::tracer(tid).is_some_and(process::is_own_thread)
}
