//! The keeper process: holds the keys, starts the program, and runs the pager's threads.

mod account;
mod prepare;

use crate::announcer;
use crate::config::Config;
use crate::control;
use crate::deferred::Deferred;
use crate::front::{self, Before, KEEPER_NAME};
use crate::handlers::Handlers;
use crate::held_output::HeldOutput;
use crate::outcome::{Ending, Outcome, Statistics};
use crate::pager::Pager;
use crate::panics;
use crate::pause::Pause;
use crate::program::{self, Waiting};
use crate::rotate;
use crate::scrub;
use crate::secret::MemoryKind;
use crate::secrets;
use crate::sys::seccomp::Listener;
use crate::sys::{capabilities, own_limits, process, sched};
use crate::watch::{Findings, Policy, Watcher};
use prepare::{Prepared, Privileged};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// How long the keeper tries to find the processes that it is to kill. What it leaves the front
/// process kills when the keeper has ended.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// Runs the keeper in a forked child; never returns.
pub(crate) fn main(
    config: &Config,
    front: OwnedFd,
    pid_out: File,
    report: File,
    signals: &Before,
) -> ! {
    process::set_name(KEEPER_NAME);
    let started = Instant::now();
    let reports_panics = report.try_clone().map(panics::end_the_keeper);
    let run = reports_panics
        .map_err(internal("preparing for an error of its own"))
        .and_then(|()| start(config, &front, pid_out, signals));
    // Before the outcome: a reader of held output may keep that waiting.
    front::kill_descendants(&[], Some(KILL_PATIENCE));
    let outcome = match run {
        Ok(run) => run.outcome(&front, started),
        Err(ending) => Outcome { ending, started: false, statistics: Statistics::default() },
    };
    secrets::leave_hideaway();
    let text = serde_json::to_vec(&outcome).unwrap_or_default();
    let mut report = report;
    while !panics::take_the_report() {
        // A thread has panicked, and ends this process.
        std::thread::park();
    }
    let written = report.write_all(&text);
    // SAFETY: _exit runs no destructor; everything that must outlive us has been written.
    unsafe { libc::_exit(if written.is_ok() { 0 } else { 1 }) }
}

struct Run {
    pager: Arc<Pager>,
    trusted_bytes: u64,
    key_memory: MemoryKind,
    /// What the watcher found.
    findings: Arc<Findings>,
    /// Checks of a log hash.
    deferred: Option<Arc<Deferred>>,
}

fn internal(what: &str) -> impl Fn(std::io::Error) -> Ending {
    move |error| Ending::KeeperFailed { what: format!("{what}: {}", own_limits::in_words(&error)) }
}

/// Starts the program and everything that serves it, and sleeps until the run ends.
fn start(
    config: &Config,
    front: &OwnedFd,
    mut pid_out: File,
    signals: &Before,
) -> Result<Run, Ending> {
    process::control(libc::PR_SET_DUMPABLE, 0).map_err(internal("hiding the keeper's memory"))?;
    process::control(libc::PR_SET_CHILD_SUBREAPER, 1).map_err(internal("becoming a subreaper"))?;
    // The program is forked first, while this process has one thread and no secrets. It stays in
    // the terminal's foreground group; the keeper leaves that group, since a keeper stopped with it
    // would serve no faults.
    let held = config.hold_output.then(|| HeldOutput::new(config.hash_output)).transpose();
    let (output, ends) = held.map_err(internal("holding the output"))?.unzip();
    let waiting = program::fork(config, signals, ends).map_err(internal("forking"))?;
    // SAFETY: setsid takes no arguments; it fails only for a group leader, which a child is not.
    unsafe { libc::setsid() };
    let privileged = Privileged::take(config)?;
    // Without `no_new_privs` a setuid program could be among the run's.
    capabilities::keep(!config.allow_unprotected);
    let pid = waiting.pid();
    // The descriptor table is shared: sending the number is enough, here and below.
    let program = process::pidfd(pid).map_err(internal("watching the program"))?;
    let number = program.into_raw_fd().to_ne_bytes();
    pid_out.write_all(&number).map_err(internal("reporting the program"))?;
    let mut pause = Pause::new(front, pid).map_err(internal("watching the program's stops"))?;

    let Prepared { pager, trusted_bytes, key_memory } = Prepared::new(config, privileged)?;
    // Without a door the run goes on, and cannot be changed: another may have taken its name.
    let front_pid = std::os::unix::process::parent_id();
    let (_door, orders) = control::serve(front_pid, &pager).ok().unzip();
    let handlers = start_services(config, &pager)?;
    let deferred = config.log_hash.map(|every| Deferred::start(&pager, every, output));
    let deferred = deferred.transpose().map_err(internal("starting the checks"))?;
    let findings = Arc::new(Findings::default());
    let (watched, found) = (Arc::clone(&pager), Arc::clone(&findings));
    let policy = Policy::of(config);
    let watcher = move || Watcher::new(watched, handlers, pid, policy, found, orders);
    start_watcher(&pager, watcher, waiting, pid_out)?;
    wait_for_end(&pager, front, &mut pause);
    Ok(Run { pager, trusted_bytes, key_memory, findings, deferred })
}

/// Starts the threads that serve faults, and those that look after pages and keys.
fn start_services(config: &Config, pager: &Arc<Pager>) -> Result<Arc<Handlers>, Ending> {
    let handlers = Handlers::new().map_err(internal("preparing the handlers"))?;
    handlers.start(pager).map_err(internal("starting the handlers"))?;
    if let Some(period) = config.scrub {
        scrub::start(pager, period).map_err(internal("starting the scrubber"))?;
    }
    if let Some(period) = config.rotate {
        rotate::start(pager, period).map_err(internal("starting the rotation of keys"))?;
    }
    secrets::idle_keys::start(pager).map_err(internal("watching idle keys"))?;
    let hearing = Arc::clone(&handlers);
    // Cannot fail: the pager is new, so the cell is empty.
    let _ = pager.spaces.hears.set(Box::new(move |space| hearing.listen_everywhere(space)));
    Ok(handlers)
}

/// Starts the watcher's thread, which lets the program begin, and returns once that has happened.
fn start_watcher(
    pager: &Arc<Pager>,
    watcher: impl FnOnce() -> std::io::Result<Watcher> + Send + 'static,
    waiting: Waiting,
    mut thread_out: File,
) -> Result<(), Ending> {
    let pager = Arc::clone(pager);
    let (begun, has_begun) = std::sync::mpsc::channel();
    secrets::spawn("watcher", move || {
        // The front process polls it to notice that this process is being killed; without it the
        // front notices later. An error means that the front is gone, which is seen elsewhere.
        let thread = process::pidfd_of_this_thread().map_or(-1, IntoRawFd::into_raw_fd);
        let _ = thread_out.write_all(&thread.to_ne_bytes());
        // A program can touch a hundred megabytes while the watcher waits for a processor.
        sched::hurry_self();
        let watcher = watcher().map_err(internal("preparing the watcher"));
        match watcher.and_then(|watcher| begin(&pager, waiting).map(|()| watcher)) {
            Ok(watcher) => {
                // The receiver waits for this.
                let _ = begun.send(Ok(()));
                watcher.run();
            }
            Err(ending) => drop(begun.send(Err(ending))),
        }
    })
    .map_err(internal("starting the watcher"))?;
    let lost = || Ending::KeeperFailed { what: "the watcher ended".to_owned() };
    has_begun.recv().unwrap_or_else(|_| Err(lost()))
}

/// Lets the program begin. The thread that looks after it calls this: were it another, the program
/// would run unseen until that thread and the watcher both had a processor.
fn begin(pager: &Arc<Pager>, waiting: Waiting) -> Result<(), Ending> {
    let pid = waiting.pid();
    panics::program_has_started();
    waiting.go(|listener| {
        pager.heard.lock().begin_with_program(pid);
        announcer::listen(pager, Listener::new(listener))
    })?;
    pager.has_begun.store(true, SeqCst);
    Ok(())
}

/// Sleeps until the run or the front process ends. Stops the front process while the program is
/// stopped.
fn wait_for_end(pager: &Pager, front: &OwnedFd, pause: &mut Pause) {
    let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let fds = [pager.stopped.as_raw_fd(), front.as_raw_fd(), pause.as_raw_fd()];
    let mut fds = fds.map(watched);
    while pager.ending().is_none() {
        // SAFETY: the array is live for the call and its length is passed.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, pause.timeout_ms()) };
        if fds[1].revents != 0 {
            pager.stop_as(Ending::KeeperFailed { what: "the front process was killed".to_owned() });
        }
        pause.look();
        // A child has ended or stopped, possibly one that the watcher waits for.
        pager.attention.stir();
    }
}
