//! Stops threads of a program for a moment: while one thread receives an agent, the others, since
//! no room could be made for pages that they touch meanwhile; and all running threads, while room
//! is made that they would use at once.
use super::InjectError;
use super::process::{self, Status};
use super::release::{is_followed, release};
use super::rest::Rest;
use super::sys;
use super::tracee::{Look, Tracee};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// A program with more threads is not held, since stopping them would take too long.
const MOST_THREADS: usize = 1024;
/// How often new threads are looked for. A thread found in the last round was created by one that
/// is stopped now.
const ROUNDS: u32 = 8;
/// Threads that take longer to stop are busy in the kernel. (On a crowded machine one that merely
/// waits for a processor may take tens of milliseconds; it touches nothing meanwhile.)
const PATIENCE: Duration = Duration::from_millis(250);
/// The time within which a thread that calls `execve` has certainly got its new number.
const SUCCESSION: Duration = Duration::from_millis(20);
/// How long a dropped value sleeps at a time.
const NAP: Duration = Duration::from_micros(10);
/// How long dropping waits for threads to stop before it kills the program.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// Threads that have been asked to stop. Like every tracee they die with the thread that holds
/// them.
pub(super) struct Others {
    pid: i32,
    /// Filters that its threads are under and that are known to allow `restart_syscall`.
    known_filters: u32,
    /// Threads that [`Others::stop_all`] has left in their calls.
    left_alone: u64,
    threads: Vec<Held>,
    since: Instant,
    /// When one of them was last found to have ended, or to be known by another number since its
    /// `execve`.
    missed: Option<Instant>,
}

struct Held {
    tracee: Tracee,
    at_rest: bool,
    /// The signal for which it stopped, which it receives when it is resumed.
    signal: i32,
}

impl Others {
    /// No thread is held.
    pub(super) fn none(pid: i32) -> Others {
        let (threads, since) = (Vec::new(), Instant::now());
        Others {
            pid,
            known_filters: process::own_filters(),
            left_alone: 0,
            threads,
            since,
            missed: None,
        }
    }

    /// No thread is held of a process whose calls are announced: the keeper's filter is known.
    pub(super) fn none_heard(pid: i32) -> Others {
        let mut none = Others::none(pid);
        none.known_filters += 1;
        none
    }

    /// Asks every thread of the program except `but` to stop if it may touch memory. Not held are
    /// threads that are busy in the kernel, which would not stop before that ends; threads that may
    /// not be traced; and threads that sleep in a call, since some calls would end early. A thread
    /// that wakes up later continues. No thread is seized after `but`: a thread that calls `execve`
    /// would wait for `but`, and the kernel would block the seizing until the `execve` is done.
    pub(super) fn stop(pid: i32, but: i32) -> Others {
        let mut others = Others::none(pid);
        for _ in 0..ROUNDS {
            if !others.ask(but, Rest::must_be_held) {
                break;
            }
        }
        others
    }

    /// Asks all threads of the process to stop that were not asked yet, also those that sleep.
    /// Left alone are those that sleep in calls that would be seen to have ended early, and those
    /// that complete a transfer under their tracer.
    pub(super) fn stop_all(&mut self) -> Result<(), InjectError> {
        for _ in 0..ROUNDS {
            let Ok(tids) = process::threads(self.pid) else { return Ok(()) };
            if tids.len() > MOST_THREADS {
                return Err(InjectError::Unsettled);
            }
            let is_held = |tid: i32| self.threads.iter().any(|held| held.tracee.tid() == tid);
            let mut new: Vec<i32> = tids.into_iter().filter(|&tid| !is_held(tid)).collect();
            new.retain(|&tid| Rest::of(self.pid, tid) != Rest::Ended);
            self.left_alone = new.len() as u64;
            new.retain(|&tid| !is_followed(tid) && Rest::can_be_stopped(self.pid, tid));
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                if let Err(error) = self.hold(tid)
                    && Rest::of(self.pid, tid) != Rest::Ended
                {
                    return Err(match error.kind() {
                        io::ErrorKind::Interrupted => InjectError::Executing,
                        _ => InjectError::Attach(error),
                    });
                }
            }
        }
        Err(InjectError::Unsettled)
    }

    /// The process.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Threads that [`Others::stop_all`] has left in their calls.
    pub(super) fn left_alone(&self) -> u64 {
        self.left_alone
    }

    /// The threads that stand still.
    pub(super) fn still(&mut self) -> impl Iterator<Item = &mut Tracee> {
        self.threads.iter_mut().filter(|held| held.at_rest).map(|held| &mut held.tracee)
    }

    /// Asks one thread to stop, if it runs.
    pub(super) fn stop_one(pid: i32, tid: i32) -> Others {
        let mut others = Others::none(pid);
        if Rest::of(pid, tid) == Rest::Runs {
            // A thread that cannot be held is left running.
            let _ = others.hold(tid);
        }
        others
    }

    /// Asks those threads to stop that run or wait for a processor. A thread that sleeps touches
    /// nothing, and some system calls would end early if their caller were stopped.
    pub(super) fn stop_running(pid: i32) -> Others {
        let mut others = Others::none(pid);
        others.ask(0, |rest| rest == Rest::Runs);
        others
    }

    /// Asks the threads that are not held yet and are in a wanted state. Whether there was one.
    fn ask(&mut self, but: i32, wanted: impl Fn(Rest) -> bool) -> bool {
        let Ok(tids) = process::threads(self.pid) else { return false };
        if tids.len() > MOST_THREADS {
            return false;
        }
        let known = self.threads.len();
        for tid in tids {
            let is_held = self.threads.iter().any(|held| held.tracee.tid() == tid);
            if tid == but || is_held || !wanted(Rest::of(self.pid, tid)) {
                continue;
            }
            // While a thread is in `execve` none can be held.
            if self.hold(tid).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
                return false;
            }
        }
        self.threads.len() > known
    }

    /// Asks a thread to stop.
    fn hold(&mut self, tid: i32) -> io::Result<()> {
        let tracee = Tracee::hold(self.pid, tid)?;
        // A thread that died since is found by the first look.
        let _ = tracee.interrupt();
        self.threads.push(Held { tracee, at_rest: false, signal: 0 });
        Ok(())
    }

    /// Whether all of them stand still or are gone.
    pub(super) fn at_rest(&mut self) -> bool {
        for held in &mut self.threads {
            match held.tracee.look() {
                Look::Running => held.at_rest = false,
                Look::Signal(signal) => (held.at_rest, held.signal) = (true, signal),
                Look::Event | Look::Call | Look::Forked => held.at_rest = true,
                Look::Gone => self.missed = Some(Instant::now()),
            }
        }
        self.threads.retain(|held| held.tracee.attached());
        self.threads.iter().all(|held| held.at_rest)
    }

    /// Reaps the threads that have ended: a thread that calls `execve` waits until all others are
    /// reaped.
    pub(super) fn bury_ended(&mut self) {
        self.at_rest();
    }

    /// The threads that are held, and whether they stand still.
    pub(super) fn held(&self) -> Vec<(i32, bool)> {
        self.threads.iter().map(|held| (held.tracee.tid(), held.at_rest)).collect()
    }

    /// Notes that a traced thread of the program outside this set is gone in the same way.
    pub(super) fn miss(&mut self) {
        self.missed = Some(Instant::now());
    }

    /// Whether one of them ended, or is known by another number since its `execve`.
    pub(super) fn missed(&self) -> bool {
        self.missed.is_some()
    }

    /// Whether they should have come to rest by now.
    pub(super) fn is_overdue(&self) -> bool {
        self.since.elapsed() > PATIENCE
    }

    /// Resumes the threads that are stopped. False while a thread has not stopped yet. To be called
    /// after the injected thread, if there is one, was resumed.
    pub(super) fn let_go(&mut self) -> bool {
        self.at_rest();
        for held in self.threads.iter_mut().filter(|held| held.at_rest) {
            // A thread that was killed meanwhile is reaped by the next look.
            let _ = release(&mut held.tracee, held.signal, self.known_filters);
        }
        self.threads.retain(|held| held.tracee.attached());
        if !self.threads.is_empty() {
            return false;
        }
        let Some(missed) = self.missed else { return true };
        // A thread that calls `execve` takes the process's number and stays traced. For a moment no
        // thread has that number.
        let heir = Status::read(self.pid, self.pid);
        let is_ours = |status: Status| {
            status.tracer == sys::current_thread() && !matches!(status.state, b'Z' | b'X')
        };
        if heir.is_ok_and(is_ours) {
            self.missed = None;
            let tracee = Tracee::adopt(self.pid, self.pid);
            // It may have changed its number before it was asked to stop.
            let _ = tracee.interrupt();
            self.threads.push(Held { tracee, at_rest: false, signal: 0 });
            return false;
        }
        missed.elapsed() > SUCCESSION
    }

    /// Reaps the threads of a killed program: their process ends only after that.
    fn bury(&mut self) {
        let end = Instant::now() + DROP_PATIENCE;
        while !self.threads.is_empty() && Instant::now() < end {
            self.at_rest();
            thread::sleep(NAP);
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        let end = Instant::now() + DROP_PATIENCE;
        while !self.let_go() {
            if Instant::now() > end {
                // The threads would stop later, and no tracer would resume them.
                sys::kill(self.pid, libc::SIGKILL);
                return self.bury();
            }
            thread::sleep(NAP);
        }
    }
}
