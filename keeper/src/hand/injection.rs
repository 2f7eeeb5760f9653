//! Puts an agent into a running program: stops one thread, makes it map the agent's region and
//! clone the agent, restores the thread's state, and resumes it. No step blocks.
mod begin;
mod lost;
mod steps;

pub use lost::{Found, LostAgent};

use super::calls::Call;
use super::image::Region;
use super::limits::Raised;
use super::meeting::{self, Meeting};
use super::others::Others;
use super::release::{release, release_at_once};
use super::tracee::{Dispatch, Look, Seccomp, Tracee};
use super::{Hand, InjectError, sys};
use libc::user_regs_struct as Registers;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long one `poll` waits for the next stop.
const POLL_PATIENCE: Duration = Duration::from_micros(200);
/// How long it sleeps between two checks.
const NAP: Duration = Duration::from_micros(10);
/// How long a dropped injection tries to resume the program before it kills it.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// The result of one step of an injection.
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
    /// Not at all: no filter was asked for, or the program cannot make such calls.
    None,
    /// By this listener, which also receives the calls of the program's descendants.
    Listener(OwnedFd),
    /// By the listener of one of its ancestors.
    Inherited,
    /// Not at all: the kernel refused the filter, for this reason.
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
    /// The program runs again; waiting for the agent.
    Meeting(Box<Meeting>),
    /// Ended; `poll` has returned the result.
    Ended,
}

/// The thread's state before the injection.
struct Saved {
    registers: Registers,
    mask: u64,
    syscall_at: u64,
}

/// An injection in progress. Keep polling until it is done or failed: while the thread is stopped
/// the program waits. Dropping it restores and resumes the program if that takes less than a
/// second, and kills it otherwise.
pub struct Injection {
    pid: i32,
    tracee: Tracee,
    others: Others,
    /// All threads of the program are stopped until [`Injection::let_go`].
    holds: bool,
    /// The thread's state is restored, and it can be resumed.
    restored: bool,
    /// Tracing of the thread has ended.
    is_over: bool,
    state: State,
    saved: Option<Saved>,
    region: Option<Region>,
    magic: u64,
    /// Limits that are raised while the thread makes the injection's calls.
    raised: Option<Raised>,
    /// What would make SIGSYS of the injection's calls, set aside meanwhile.
    dispatch: Option<Dispatch>,
    /// The filters of the thread, which its agent inherits.
    seccomp: Seccomp,
    /// The thread is in the strict mode, so no filter can be set.
    is_strict: bool,
    intermediate: i32,
    /// The intermediate while it is traced, since it could not make the agent under the program's
    /// filters.
    newborn: Option<Tracee>,
    /// The listener's number in the program's table of descriptors.
    listening_at: i32,
    /// Whether the program's calls are to be announced.
    announces: bool,
    announcements: Announcements,
    /// Whether the program's calls were announced before.
    is_heard: bool,
    agent: Option<(i32, OwnedFd)>,
    lost: Option<LostAgent>,
    error: Option<InjectError>,
    /// The signal that came during the injection's calls; it is sent again when they are done.
    deferred: Option<i32>,
    /// Filters that the process is under and that are not the program's: the keeper's own, and the
    /// one by which its calls are announced.
    known_filters: u32,
    cancelled: bool,
    device: Option<OwnedFd>,
    inherited: Option<OwnedFd>,
    not_send: PhantomData<*const ()>,
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

    /// How the program's calls are announced; to be called once, when the injection is done.
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

    /// Whether that agent lives.
    #[must_use]
    pub fn agent_lives(&self) -> bool {
        let pidfd = match &self.state {
            State::Meeting(meeting) => meeting.agent_pidfd(),
            _ => self.agent.as_ref().map(|(_, pidfd)| pidfd.as_fd()),
        };
        pidfd.is_some_and(|pidfd| !sys::pidfd_ended(pidfd, Duration::ZERO))
    }

    /// An agent that may be on its way since the program was killed while it made it; to be called
    /// when the injection has failed.
    #[must_use]
    pub fn take_lost(&mut self) -> Option<LostAgent> {
        self.lost.take()
    }

    /// The threads that have been asked to stop and are not resumed yet: each is stopped, or will
    /// stop before it executes anything more.
    #[must_use]
    pub fn stopping(&self) -> Vec<i32> {
        if !matches!(self.state, State::Stopping) {
            return Vec::new();
        }
        let others = self.others.held().into_iter().map(|(tid, _)| tid);
        others.chain([self.tracee.tid()]).collect()
    }

    /// Gives up as soon as that can be done without harm; keep polling until it has failed (or was
    /// done first).
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Whether it was told to give up, or has failed from the start: then it is polled out of its
    /// turn. Threads that have ended are reaped in any case, for which an `execve` may wait.
    pub fn is_over(&mut self) -> bool {
        self.others.bury_ended();
        self.cancelled || matches!(self.state, State::Ended)
    }

    /// Whether it was told to give up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Resumes the program; to be called when the injection has ended. False if some thread has not
    /// stopped yet and so cannot be resumed: call again.
    pub fn let_go(&mut self) -> bool {
        let is_ended = matches!(self.state, State::Ended);
        if self.tracee.attached() && (self.restored || is_ended) {
            if self.detach().is_err() {
                // The thread was killed; `look` reaps it if it has ended.
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

    /// Detaches from the injected thread.
    fn detach(&mut self) -> io::Result<()> {
        let known_filters = self.known_filters;
        if self.deferred.is_some() {
            release_at_once(&mut self.tracee, 0, known_filters)
        } else {
            release(&mut self.tracee, 0, known_filters)
        }
    }

    /// Polls until the injection ends or `patience` has passed (`Pending` then).
    pub fn wait(&mut self, patience: Duration) -> Progress {
        let end = Instant::now() + patience;
        loop {
            match self.poll() {
                Progress::Pending if Instant::now() < end => std::thread::yield_now(),
                progress => return progress,
            }
        }
    }

    /// Takes all steps that are possible without waiting longer than a fraction of a millisecond.
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
                    // Another thread may have called `execve` and have this number now.
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
            let waited = last.elapsed();
            if waited > POLL_PATIENCE {
                return self.still_pending();
            }
            // The program may need this CPU; after a yield it could wait for a whole time slice.
            // The longer a step takes, the less it matters when its end is noticed.
            std::thread::sleep(NAP.max(waited / 2));
        }
    }

    /// Resumes the intermediate at its stops, if it is traced. Its last stop is at its exit.
    fn deliver(&mut self) {
        let Some(newborn) = &mut self.newborn else { return };
        match newborn.look() {
            Look::Running => {}
            Look::Gone => self.newborn = None,
            Look::Event | Look::Call | Look::Forked | Look::Signal(_) => {
                // If it was killed, the next look reaps it.
                let _ = newborn.resume(0);
            }
        }
    }

    /// Whether the other threads have not stopped yet. Nothing is changed before that: a thread
    /// that called `execve` now would take the injected thread's number.
    fn waits_for_others(&mut self) -> bool {
        matches!(self.state, State::Stopping) && !self.cancelled && !self.others.at_rest()
    }

    fn still_pending(&mut self) -> Progress {
        self.others.bury_ended();
        if matches!(self.state, State::Stopping) && self.others.missed() {
            // Another thread may have this number now, and not have been asked to stop.
            let _ = self.tracee.interrupt();
        }
        let traced = !matches!(self.state, State::Meeting(_) | State::Ended);
        if traced && self.tracee.still_traced() == Look::Gone {
            return self.fail_now(InjectError::Gone);
        }
        Progress::Pending
    }

    /// The limit of the program that made the agent end, if there is one; otherwise `error` itself.
    fn explain(&self, error: InjectError) -> InjectError {
        let InjectError::AgentDied { error: number } = error else { return error };
        let io_error = io::Error::from_raw_os_error(number);
        match InjectError::call(self.pid, "the agent", io_error) {
            limited @ InjectError::Limited { .. } => limited,
            _ => error,
        }
    }

    /// Ends an agent that was not met: it would wait for the keeper.
    fn end_agent(&mut self) {
        if let Some((_, pidfd)) = self.agent.take() {
            meeting::end(pidfd.as_fd());
        }
    }

    /// Ends a traced intermediate, which would never continue, nor would the thread that waits to
    /// reap it.
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
        if let (State::Calling { call: Call::Clone | Call::Reap, .. }, Some(region)) =
            (&self.state, self.region)
        {
            self.lost = Some(LostAgent::of(region, self.magic));
        }
        self.state = State::Ended;
        self.raised = None;
        self.end_agent();
        Progress::Failed(self.error.take().unwrap_or(error))
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        self.cancel();
        let end = Instant::now() + DROP_PATIENCE;
        while !self.let_go() && Instant::now() < end {
            if self.tracee.attached() && !self.restored {
                // The result can only be the failure.
                drop(self.poll());
            } else {
                std::thread::sleep(NAP);
            }
        }
        self.end_newborn();
        self.end_agent();
        if !self.tracee.attached() {
            return;
        }
        // The thread would stop later, and no tracer would resume it.
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
