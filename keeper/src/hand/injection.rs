//! Puts an agent into a running program: stop one thread, make it map the agent's region and clone
//! the agent, give everything back, let it go. Every step can be waited for without blocking.
mod steps;

use super::calls::Call;
use super::image::Region;
use super::limits::Raised;
use super::meeting::Meeting;
use super::others::Others;
use super::process::{self, Status};
use super::release::{begin_to_follow, release, release_at_once};
use super::tracee::{Look, Seccomp, Tracee};
use super::{Hand, InjectError, seize, sys};
use crate::sys::procfs;
use libc::user_regs_struct as Registers;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long one `poll` gives the other side to get on.
const POLL_PATIENCE: Duration = Duration::from_micros(200);
/// How long it sleeps at a time.
const NAP: Duration = Duration::from_micros(10);
/// How long a dropped injection tries to let go before it kills the program.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// How far an injection has come.
#[derive(Debug)]
pub enum Progress {
    /// Call `poll` again later.
    Pending,
    /// The agent is in place.
    Done(Hand),
    /// There is no agent; the program goes on as before.
    Failed(InjectError),
}

/// How the keeper learns of the program's calls before they take effect.
#[derive(Debug)]
pub enum Announcements {
    /// Not at all: it was not tried, or the program can make no such calls.
    None,
    /// By this listener, which hears also what the program will start.
    Listener(OwnedFd),
    /// By the listener of a process that it descends from.
    Inherited,
    /// The kernel refused, and why.
    Refused(String),
}

/// Starts injections. Belongs to one thread, which becomes the tracer; no other may wait for stops.
pub struct Injector {
    announces: bool,
    not_send: PhantomData<*const ()>,
}

enum State {
    /// Waiting for the first stop.
    Stopping,
    /// Waiting for the call's entry (`entered` is false) or return.
    Calling { call: Call, entered: bool },
    /// Waiting for the last stop.
    Settling,
    /// The program is on its own again; waiting for the agent.
    Meeting(Box<Meeting>),
    /// Over; `poll` has said how.
    Ended,
}

/// What the thread had before we touched it.
struct Saved {
    registers: Registers,
    mask: u64,
    syscall_at: u64,
}

/// An injection under way. Keep polling until it is done or failed: while the thread is stopped the
/// program waits. Dropped it lets the program go unharmed if that takes less than a second, and
/// kills it otherwise.
pub struct Injection {
    pid: i32,
    tracee: Tracee,
    others: Others,
    /// The program stands still until [`Injection::let_go`].
    holds: bool,
    /// The thread is again as it was, and can be let go.
    restored: bool,
    /// The thread is not traced any more.
    is_over: bool,
    state: State,
    saved: Option<Saved>,
    region: Option<Region>,
    magic: u64,
    /// While the thread works for us.
    raised: Option<Raised>,
    /// What the thread, and hence its agent, is under.
    seccomp: Seccomp,
    /// No filter can be set: the strict mode.
    is_strict: bool,
    intermediate: i32,
    /// The intermediate while it is traced, since it could not make the agent under the program's
    /// filters.
    newborn: Option<Tracee>,
    /// The listener's number in the program's table of descriptors.
    listening_at: i32,
    /// Its calls are to be announced.
    announces: bool,
    announcements: Announcements,
    /// The keeper heard its calls before.
    is_heard: bool,
    agent: Option<(i32, OwnedFd)>,
    error: Option<InjectError>,
    deferred: Option<i32>,
    cancelled: bool,
    device: Option<OwnedFd>,
    inherited: Option<OwnedFd>,
    not_send: PhantomData<*const ()>,
}

impl Injector {
    /// An injector for the calling thread, whose timers become exact (no timer slack), as programs
    /// stand still while it naps. The calling process becomes a child subreaper, since agents are
    /// to be its children.
    ///
    /// # Errors
    /// If the kernel does not know subreapers, or there can be no further thread.
    pub fn new() -> io::Result<Injector> {
        sys::become_subreaper()?;
        sys::nap_exactly()?;
        seize::prepare()?;
        begin_to_follow();
        Ok(Injector { announces: false, not_send: PhantomData })
    }

    /// An injector that also has the programs' calls announced: the caller has to hear the listener
    /// from [`Injection::take_announcements`], or the calls wait for ever.
    #[must_use]
    pub fn announcing(self) -> Injector {
        Injector { announces: true, ..self }
    }

    /// Begins to put an agent into the memory of process `pid`. With `uffd_device` (an open
    /// `/dev/userfaultfd`) the agent needs no privilege for its userfaultfds.
    ///
    /// # Errors
    /// [`InjectError`] if it is plain from the start that it cannot be done; the program is
    /// untouched.
    pub fn begin(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
    ) -> Result<Injection, InjectError> {
        self.begin_as(pid, uffd_device, false, false)
    }

    /// As [`Injector::begin`] or, with `holds`, [`Injector::begin_holding`], for a process whose
    /// calls the keeper hears already, since it descends from one that was armed.
    ///
    /// # Errors
    /// As [`Injector::begin`].
    pub fn begin_heard(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
        holds: bool,
    ) -> Result<Injection, InjectError> {
        self.begin_as(pid, uffd_device, holds, true)
    }

    /// [`Injector::begin`] for a program that is to do nothing more without its agent: all its
    /// threads stand still until [`Injection::let_go`]. If this thread ends before that, so does
    /// the program.
    ///
    /// # Errors
    /// As [`Injector::begin`].
    pub fn begin_holding(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
    ) -> Result<Injection, InjectError> {
        self.begin_as(pid, uffd_device, true, false)
    }

    fn begin_as(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
        holds: bool,
        is_heard: bool,
    ) -> Result<Injection, InjectError> {
        let gone = |_| InjectError::Gone;
        let tid = process::choose_thread(pid).map_err(gone)?.ok_or(InjectError::Gone)?;
        if !process::shares_pid_namespace(tid).map_err(gone)? {
            return Err(InjectError::PidNamespace);
        }
        let status = Status::read(pid, tid).map_err(gone)?;
        if status.tracer != 0 {
            return Err(InjectError::Traced { tracer: status.tracer });
        }
        let device = uffd_device.map(|fd| fd.try_clone_to_owned()).transpose();
        let device = device.map_err(InjectError::Keeper)?;
        // Those that the keeper is under itself, as everything in a container is: the program
        // cannot have taken them off, and they let our own calls through. One more is the keeper's
        // own, which lets them through as well.
        let known = process::own_filters() + u32::from(is_heard);
        let filters = status.filters.saturating_sub(known);
        let seccomp = match (filters > 0 || status.is_strict, status.filters) {
            (true, _) => Seccomp::Theirs,
            (false, 0) => Seccomp::None,
            (false, _) => Seccomp::Ours,
        };
        let is_alone = process::threads(pid).is_ok_and(|threads| threads.len() == 1);
        let others = if holds && !is_alone { Others::stop(pid, tid) } else { Others::none(pid) };
        let seized = Tracee::seize(pid, tid, seccomp);
        let is_executing =
            seized.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted);
        let tracee = match seized {
            Ok(tracee) => {
                // A thread that died since is found by the first look.
                let _ = tracee.interrupt();
                tracee
            }
            // The others have to be let go all the same.
            Err(_) if is_executing => Tracee::none(pid, tid),
            Err(error) => {
                return Err(match error.raw_os_error() {
                    Some(libc::ESRCH) => InjectError::Gone,
                    Some(libc::EOPNOTSUPP) if status.is_strict => InjectError::Strict,
                    Some(libc::EOPNOTSUPP) => InjectError::Filtered { filters },
                    _ => InjectError::Attach(error),
                });
            }
        };
        Ok(Injection {
            pid,
            tracee,
            others,
            holds,
            restored: false,
            is_over: false,
            // It fails by the first poll.
            state: if is_executing { State::Ended } else { State::Stopping },
            saved: None,
            region: None,
            magic: random(),
            raised: None,
            seccomp,
            is_strict: status.is_strict,
            intermediate: 0,
            newborn: None,
            listening_at: -1,
            announces: self.announces,
            announcements: Announcements::None,
            is_heard,
            agent: None,
            error: is_executing.then_some(InjectError::Executing),
            deferred: None,
            cancelled: false,
            device,
            inherited: None,
            not_send: PhantomData,
        })
    }
}

impl Injection {
    /// The userfaultfd that the process's memory is registered with already, as a child of fork
    /// inherits it: the agent will use it, and make none of its own for the program.
    pub fn inherit(&mut self, program_uffd: OwnedFd) {
        self.inherited = Some(program_uffd);
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// How the program's calls are announced; to be asked once, when the injection is done.
    pub fn take_announcements(&mut self) -> Announcements {
        std::mem::replace(&mut self.announcements, Announcements::None)
    }

    /// The agent, once it exists: it may be found among the processes before the injection is done.
    /// It is not a process to be protected.
    #[must_use]
    pub fn agent_pid(&self) -> Option<i32> {
        match &self.state {
            State::Meeting(meeting) => meeting.agent(),
            _ => self.agent.as_ref().map(|(pid, _)| *pid),
        }
    }

    /// The threads that have been asked to stop for it, before they are let go: each either stands
    /// still, or will before it does anything more.
    #[must_use]
    pub fn stopping(&self) -> Vec<i32> {
        if !matches!(self.state, State::Stopping) {
            return Vec::new();
        }
        let others = self.others.held().into_iter().map(|(tid, _)| tid);
        others.chain([self.tracee.tid()]).collect()
    }

    /// Gives up as soon as that can be done without harm; go on polling until it failed (or was
    /// done first).
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Whether it was told to give up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// A signal that stops the process, and that came in the midst of our calls, is sent again
    /// afterwards; but not if it was told to continue since. (A stop takes back what waits to
    /// continue it, so that came later.)
    fn forget_outdated_stop(&mut self) {
        let continues = 1 << (libc::SIGCONT - 1);
        let is_stop = |signal: &mut i32| {
            matches!(*signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
        };
        let is_continued =
            || procfs::pending_signals(self.pid).is_some_and(|pending| pending & continues != 0);
        self.deferred.take_if(|signal| is_stop(signal) && is_continued());
    }

    /// Lets the program go on; to be called when the injection has ended. False if some thread has
    /// yet to stop before it can be let go: call again.
    pub fn let_go(&mut self) -> bool {
        let is_ended = matches!(self.state, State::Ended);
        if self.tracee.attached() && (self.restored || is_ended) {
            self.forget_outdated_stop();
            if self.detach().is_err() {
                // It was killed: buried if it is dead by now.
                self.tracee.look();
            } else if let Some(signal) = self.deferred.take() {
                sys::kill(self.pid, signal);
            }
        }
        if self.tracee.attached() {
            self.others.bury_ended();
            return false;
        }
        if !std::mem::replace(&mut self.is_over, true) && !self.restored {
            self.others.miss();
        }
        self.others.let_go()
    }

    /// Lets the thread go that was worked on.
    fn detach(&mut self) -> io::Result<()> {
        match self.deferred {
            Some(_) => release_at_once(&mut self.tracee, 0),
            None => release(&mut self.tracee, 0),
        }
    }

    /// Polls until there is an end or `patience` is over (`Pending` then).
    pub fn wait(&mut self, patience: Duration) -> Progress {
        let end = Instant::now() + patience;
        loop {
            match self.poll() {
                Progress::Pending if Instant::now() < end => std::thread::yield_now(),
                progress => return progress,
            }
        }
    }

    /// Goes on as far as is possible without waiting longer than a fraction of a millisecond.
    pub fn poll(&mut self) -> Progress {
        let mut last = Instant::now();
        loop {
            self.deliver();
            if let State::Meeting(meeting) = &mut self.state {
                if self.cancelled {
                    self.state = State::Ended;
                    return Progress::Failed(InjectError::Cancelled);
                }
                let mut progress = meeting.poll();
                if let Progress::Failed(error) = progress {
                    progress = Progress::Failed(self.explain(error));
                }
                if !matches!(progress, Progress::Pending) {
                    self.state = State::Ended;
                    return progress;
                }
            } else if matches!(self.state, State::Ended) {
                let error = self.error.take().unwrap_or(InjectError::Gone);
                return Progress::Failed(self.explain(error));
            } else {
                match self.tracee.look() {
                    Look::Running => {}
                    Look::Gone => return self.fail_now(InjectError::Gone),
                    Look::Event if self.waits_for_others() => {
                        if self.others.is_overdue() {
                            self.recover(InjectError::Unsettled);
                            continue;
                        }
                    }
                    // One of them may have called `execve`, and be what bears this number now.
                    Look::Event
                        if matches!(self.state, State::Stopping) && self.others.missed() =>
                    {
                        self.recover(InjectError::Unsettled);
                        last = Instant::now();
                    }
                    look => {
                        if let Err(error) = self.advance(look) {
                            self.recover(error);
                        }
                        last = Instant::now();
                        continue;
                    }
                }
            }
            if last.elapsed() > POLL_PATIENCE {
                return self.still_pending();
            }
            // The other side may need this very CPU; a yield could leave it waiting for a whole
            // slice.
            std::thread::sleep(NAP);
        }
    }

    /// Lets the intermediate get on, if it is traced. Its last stop is on its way out.
    fn deliver(&mut self) {
        let Some(newborn) = &mut self.newborn else { return };
        match newborn.look() {
            Look::Running => {}
            Look::Gone => self.newborn = None,
            Look::Event | Look::Call | Look::Signal(_) => {
                // One that was killed is buried by the next look.
                let _ = newborn.resume(0);
            }
        }
    }

    /// Nothing is changed before the others stand still: one that called `execve` now would be
    /// taken for the thread that is being worked on.
    fn waits_for_others(&mut self) -> bool {
        matches!(self.state, State::Stopping) && !self.cancelled && !self.others.at_rest()
    }

    fn still_pending(&mut self) -> Progress {
        self.others.bury_ended();
        if matches!(self.state, State::Stopping) && self.others.missed() {
            // One of them may bear this thread's number now, and not have been asked to stop.
            let _ = self.tracee.interrupt();
        }
        let traced = !matches!(self.state, State::Meeting(_) | State::Ended);
        if traced && self.tracee.still_traced() == Look::Gone {
            return self.fail_now(InjectError::Gone);
        }
        Progress::Pending
    }

    /// Why an agent ended, if the program is to blame.
    fn explain(&self, error: InjectError) -> InjectError {
        let InjectError::AgentDied { error: number } = error else { return error };
        let io_error = io::Error::from_raw_os_error(number);
        match InjectError::call(self.pid, "the agent", io_error) {
            limited @ InjectError::Limited { .. } => limited,
            _ => error,
        }
    }

    /// A traced intermediate would wait for ever, as the thread does that is to bury it.
    fn end_newborn(&mut self) {
        let end = Instant::now() + DROP_PATIENCE;
        while let Some(newborn) = &self.newborn
            && Instant::now() < end
        {
            sys::kill(newborn.tid(), libc::SIGKILL);
            self.deliver();
        }
    }

    fn fail_now(&mut self, error: InjectError) -> Progress {
        self.state = State::Ended;
        self.raised = None;
        Progress::Failed(self.error.take().unwrap_or(error))
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        self.cancel();
        let end = Instant::now() + DROP_PATIENCE;
        while !self.let_go() && Instant::now() < end {
            if self.tracee.attached() && !self.restored {
                // It says nothing but that it failed.
                drop(self.poll());
            } else {
                std::thread::sleep(NAP);
            }
        }
        self.end_newborn();
        if !self.tracee.attached() {
            return;
        }
        // It would stop as soon as it can, and no tracer would ever let it go on.
        sys::kill(self.pid, libc::SIGKILL);
        // A traced thread stops once more on the way out; `look` lets it go.
        let end = Instant::now() + DROP_PATIENCE;
        while self.tracee.look() != Look::Gone && Instant::now() < end {
            std::thread::sleep(NAP);
        }
    }
}

impl std::fmt::Debug for Injection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Stopping => "stopping",
            State::Calling { .. } => "calling",
            State::Settling => "settling",
            State::Meeting(_) => "meeting",
            State::Ended => "ended",
        };
        f.debug_struct("Injection")
            .field("pid", &self.pid)
            .field("state", &state)
            .field("attached", &self.tracee.attached())
            .field("restored", &self.restored)
            .field("held", &self.others.held())
            .finish_non_exhaustive()
    }
}

/// Tells one address space from another; not a secret.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) | 1
}
