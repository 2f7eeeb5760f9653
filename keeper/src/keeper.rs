//! The keeper process: holds the keys, starts the program, and runs the pager's threads.

use crate::adversary;
use crate::announcer;
use crate::config::{Config, KeyHiding};
use crate::control;
use crate::deferred::Deferred;
use crate::front::{self, Before, KEEPER_NAME};
use crate::handlers::Handlers;
use crate::held_output::HeldOutput;
use crate::hiding;
use crate::metadata::MappedMetadata;
use crate::outcome::{Ending, Outcome, Statistics, UnprotectedMemory};
use crate::pager::healing::Healing;
use crate::pager::{Pager, Stop};
use crate::panics;
use crate::pause::Pause;
use crate::program::{self, Waiting};
use crate::rotate;
use crate::scrub;
use crate::secret::MemoryKind;
use crate::secrets;
use crate::store::{PageStore, StoreConfig};
use crate::sys::seccomp::Listener;
use crate::sys::shortage::{self, Spare};
use crate::sys::{own_limits, pagemap, process, sched};
use crate::watch::{Policy, Watcher};
use casemate_pages::Verification;
use parking_lot::Mutex;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Instant;

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
    front::kill_descendants(&[]);
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
    /// What the watcher found outside the protection.
    largest: Arc<Mutex<Vec<UnprotectedMemory>>>,
    /// Checks of a log hash.
    deferred: Option<Arc<Deferred>>,
}

fn internal(what: &str) -> impl Fn(std::io::Error) -> Ending {
    move |error| Ending::KeeperFailed { what: format!("{what}: {}", own_limits::in_words(&error)) }
}

fn cannot_hide(chosen: &KeyHiding, error: std::io::Error) -> Ending {
    let place = match chosen {
        KeyHiding::MemfdSecret => return internal("making keys")(error),
        KeyHiding::Tpm(path) => format!("{}: ", path.display()),
        KeyHiding::ExposureResilient(_) => String::new(),
    };
    let what = format!("keys cannot be hidden there: {place}{error}; choose another --key-hiding");
    Ending::KeeperFailed { what }
}

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
    let physical_address = config.heal.then(pagemap::physical_addresses).flatten();
    let hideaway = hiding::place(&config.key_hiding)
        .map_err(|error| cannot_hide(&config.key_hiding, error))?;
    process::drop_effective_capabilities();
    let pid = waiting.pid();
    // The descriptor table is shared: sending the number is enough, here and below.
    let program = process::pidfd(pid).map_err(internal("watching the program"))?;
    let number = program.into_raw_fd().to_ne_bytes();
    pid_out.write_all(&number).map_err(internal("reporting the program"))?;
    let mut pause = Pause::new(front, pid).map_err(internal("watching the program's stops"))?;

    let secrets =
        secrets::make(hideaway).map_err(|error| cannot_hide(&config.key_hiding, error))?;
    let store = PageStore::new(StoreConfig {
        crypt_limit_bytes: config.crypt_limit_bytes,
        swap: config.swap.clone(),
        attackable: config.attackable,
        verified_later: config.log_hash.is_some(),
    })
    .map_err(|e| Ending::StoreFailed { what: e.to_string() })?;
    let metadata =
        MappedMetadata::new(config.attackable).map_err(internal("reserving metadata"))?;
    let view = metadata.share().map_err(internal("sharing metadata"))?;
    let state = metadata.state();
    let how = config.log_hash.map_or(Verification::Tree, |_| Verification::LogHash);
    let directory = secrets.directory(how, metadata, config.node_cache_bytes);
    let trusted_bytes = directory.trusted_bytes() + secrets.bytes();
    let (cipher, key_memory) = secrets.into_cipher();
    let pager = Pager::new(config, cipher, directory, state, store);
    let mut pager = pager.map_err(internal("preparing the pager"))?;
    if config.heal {
        pager.healing = Healing::with(physical_address);
    }
    let pager = Arc::new(pager);
    let spare = Spare::set_aside().map_err(internal("setting descriptors aside"))?;
    let ending = Arc::clone(&pager);
    shortage::ends_the_run(spare, move |what| ending.stop(Stop::Internal(what)));
    if let Some(view) = view {
        adversary::serve(&pager, view).map_err(internal("opening the stores to attacks"))?;
    }
    // Without a door the run goes on, and cannot be changed: another may have taken its name.
    let front_pid = std::os::unix::process::parent_id();
    let (_door, orders) = control::serve(front_pid, &pager).ok().unzip();
    let handlers = Handlers::new().map_err(internal("preparing the handlers"))?;
    handlers.start(&pager).map_err(internal("starting the handlers"))?;
    if let Some(period) = config.scrub {
        scrub::start(&pager, period).map_err(internal("starting the scrubber"))?;
    }
    if let Some(period) = config.rotate {
        rotate::start(&pager, period).map_err(internal("starting the rotation of keys"))?;
    }
    let deferred = config.log_hash.map(|every| Deferred::start(&pager, every, output));
    let deferred = deferred.transpose().map_err(internal("starting the checks"))?;
    secrets::idle_keys::start(&pager).map_err(internal("watching idle keys"))?;
    let hearing = Arc::clone(&handlers);
    // Cannot fail: the pager is new, so the cell is empty.
    let _ = pager.spaces.hears.set(Box::new(move |space| hearing.listen_everywhere(space)));
    let (watched, policy) = (Arc::clone(&pager), Policy::of(config));
    let largest = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&largest);
    let (begun, has_begun) = std::sync::mpsc::channel();
    secrets::spawn("watcher", move || {
        // The front process polls it to notice that this process is being killed; without it the
        // front notices later. An error means that the front is gone, which is seen elsewhere.
        let thread = process::pidfd_of_this_thread().map_or(-1, IntoRawFd::into_raw_fd);
        let _ = pid_out.write_all(&thread.to_ne_bytes());
        // A program can touch a hundred megabytes while the watcher waits for a processor.
        sched::hurry_self();
        let watcher = Watcher::new(Arc::clone(&watched), handlers, pid, policy, found, orders);
        match watcher.map_err(internal("preparing the watcher")).and_then(|watcher| {
            begin(&watched, waiting)?;
            Ok(watcher)
        }) {
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
    has_begun.recv().unwrap_or_else(|_| Err(lost()))?;
    wait_for_end(&pager, front, &mut pause);
    Ok(Run { pager, trusted_bytes, key_memory, largest, deferred })
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

impl Run {
    fn outcome(&self, front: &OwnedFd, started: Instant) -> Outcome {
        let pager = &self.pager;
        let fallback =
            || Ending::KeeperFailed { what: "the run ended without a reason".to_owned() };
        let ending = pager.ending().cloned().unwrap_or_else(fallback);
        let ending = pager.noted_violation().unwrap_or(ending);
        let ending = match &self.deferred {
            Some(deferred) => deferred.finish(pager, ending, front),
            None => ending,
        };
        let (roots, trouble) = secrets::roots_account();
        let ending = match (ending, trouble) {
            (Ending::KeeperFailed { what }, Some(why)) => {
                Ending::KeeperFailed { what: format!("{what}: {why}") }
            }
            (ending, _) => ending,
        };
        pager.note_peaks();
        let c = &pager.counts;
        let kept = pager.budget.kept();
        let store = pager.store.stats();
        let page = crate::config::PAGE_BYTES as u64;
        Outcome {
            ending,
            started: true,
            statistics: Statistics {
                elapsed_s: started.elapsed().as_secs_f64(),
                processes_seen: c.processes_seen.load(Relaxed),
                processes_armed: c.processes_armed.load(Relaxed),
                standstills: c.standstills.load(Relaxed),
                look_late_us_peak: c.look_late_us_peak.load(Relaxed),
                starvations: c.starvations.load(Relaxed),
                faults: c.faults.load(Relaxed),
                programs: pager.quotas.uses(),
                pages_in: c.pages_in.load(Relaxed),
                pages_out: c.pages_out.load(Relaxed),
                zero_fills: c.zero_fills.load(Relaxed),
                zero_evictions: c.zero_evictions.load(Relaxed),
                clean_evictions: c.clean_evictions.load(Relaxed),
                idle_evictions: c.idle_evictions.load(Relaxed),
                uncounted_moves: c.uncounted_moves.load(Relaxed),
                calls_announced: c.calls_announced.load(Relaxed),
                unannounced_changes: c.unannounced_changes.load(Relaxed),
                processes_unannounced: c.processes_unannounced.load(Relaxed),
                processes_unannounced_why: pager.unannounced.get().cloned().unwrap_or_default(),
                userfaults_refused: c.userfaults_refused.load(Relaxed),
                listeners_refused: c.listeners_refused.load(Relaxed),
                grown_without_agent: c.grown_without_agent.load(Relaxed),
                reconciled_pages: c.reconciled_pages.load(Relaxed),
                grace_hits: c.grace_hits.load(Relaxed),
                readahead_pages: c.readahead_pages.load(Relaxed),
                readahead_hits: c.readahead_hits.load(Relaxed),
                readahead_misses: c.readahead_misses.load(Relaxed),
                fault_latency: c.fault_latency(),
                protected_bytes_peak: c.protected_pages_peak.load(Relaxed) * page,
                unprotected_bytes_peak: c.unprotected_pages_peak.load(Relaxed) * page,
                unprotectable_bytes_peak: c.unprotectable_pages_peak.load(Relaxed) * page,
                unprotected_largest: self.largest.lock().clone(),
                clear_bytes_peak: kept.peak * page,
                clear_bytes_limit: kept.greatest * page,
                clear_bytes_limit_least: kept.least * page,
                clear_bytes_limit_last: kept.last * page,
                clear_bytes_excess_peak: kept.excess * page,
                forked_unshared_pages: c.forked_unshared_pages.load(Relaxed),
                excess_uncounted_bytes_peak: c.excess_uncounted_pages_peak.load(Relaxed) * page,
                excess_moving_bytes_peak: c.excess_moving_pages_peak.load(Relaxed) * page,
                clear_size_changes: kept.changes,
                crypt_bytes_peak: store.crypt_peak,
                swap_bytes_peak: store.swap_peak,
                swap_pages_out: store.swap_pages_out,
                swap_pages_in: store.swap_pages_in,
                metadata_bytes_peak: c.metadata_bytes_peak.load(Relaxed),
                trusted_bytes: self.trusted_bytes,
                key_memory: format!("{:?}", self.key_memory),
                violations: c.violations.load(Relaxed),
                checks: c.checks.load(Relaxed),
                checked_lines: c.checked_lines.load(Relaxed),
                check_us_peak: c.check_us_peak.load(Relaxed),
                output_bytes_given_up: c.output_bytes_given_up.load(Relaxed),
                output_trouble: self.deferred.as_ref().and_then(|deferred| deferred.trouble()),
                output: self.deferred.as_ref().and_then(|deferred| deferred.written()),
                healed_pages: c.healed_pages.load(Relaxed),
                healed_bits: c.healed_bits.load(Relaxed),
                resealed_pages: c.resealed_pages.load(Relaxed),
                key_rotations: c.key_rotations.load(Relaxed),
                page_keys_derived: pager.page_keys().keys_derived(),
                root_reveals: roots.reveals,
                root_reveal_us_peak: roots.slowest.as_micros() as u64,
                failing_frames: pager.healing.failing_again(),
                scrubbed_pages: c.scrubbed_pages.load(Relaxed),
                keeper_cpu_s: process::own_cpu_seconds(),
                profile: pager.profiler.sum(),
            },
        }
    }
}
