//! One run: a kernel, a pager, a program, and what is to be true of them.

use crate::announcer;
use crate::canary::Canary;
use crate::decay;
use crate::hand::{Hand, StagingKind};
use crate::kernel::{Kernel, Nature, PAGE};
use crate::logged;
use crate::pager::Pager;
use crate::pager::healing::Healing;
use crate::pager::space::{Space, SpaceState};
use crate::program::{Tally, Thread};
use crate::random::Random;
use crate::rotation;
use crate::scheduler::{self, Finished};
use crate::sys::seccomp::Listener;
use crate::sys::uffd::Userfault;
use crate::threads;
use casemate_keeper::metadata::MappedMetadata;
use casemate_keeper::store::{PageStore, StoreConfig};
use casemate_keeper::{ClearSize, Config, Ending, ProgramRule};
use casemate_pages::bytes::BytesPort;
use casemate_pages::{KeySet, PageCipher, PageDirectory, Verification};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Pages of the smallest Clear that count as used from the start, so that the program has the rest.
pub const TAKEN: u64 = 320;
/// By how much the program's plaintext may pass what is left: SPEC section 10.
const BEYOND: u64 = 64;
/// What such a stop says.
const CANNOT_BE_TOLD: &str = "which of both cannot be told";

/// What a run consists of.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed of everything.
    pub seed: u64,
    /// Steps for which the program runs, before it reads all once more.
    pub steps: u64,
    /// Threads of its first process.
    pub threads: u64,
    /// Pages that it has mapped, about.
    pub pages: u64,
    /// It changes its memory.
    pub calls: bool,
    /// It takes rights away, and gives them back.
    pub rights: bool,
    /// It forks.
    pub forks: bool,
    /// Its calls are announced.
    pub announced: bool,
    /// Some of its mappings are refused, after it was told of what they were to replace.
    pub refused: bool,
    /// An adversary changes what is stored.
    pub attacks: bool,
    /// Up to two bits of what is stored flip, and the pager heals.
    pub flips: bool,
    /// Keys are rotated all the time.
    pub rotates: bool,
    /// Records are verified by a log hash.
    pub logged: bool,
    /// The Clear gets other sizes.
    pub resizes: bool,
    /// Its program may have so many pages of a Clear that has room for all.
    pub quota_pages: Option<u64>,
    /// The store refuses more pages than these, and the run ends.
    pub crypt_pages: Option<u64>,
    /// A known defect that is put back.
    pub canary: Option<Canary>,
    /// Everything is printed.
    pub trace: bool,
}

/// What a run is to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Loads and stores only.
    Still,
    /// Announced calls, but for forks.
    Calls,
    /// The same, and mappings whose rights change.
    Rights,
    /// All calls.
    Forks,
    /// Calls, and an adversary.
    Attacks,
    /// Calls that are not announced.
    Unannounced,
    /// All calls, while bits of what is stored flip, and are put right.
    Flips,
    /// Announced calls, but for forks, of a program with a quota.
    Quota,
    /// All calls, while keys are rotated.
    Rotation,
    /// All calls, with a log hash that is checked now and then.
    Logged,
    /// All calls, and a store that becomes full.
    Scarce,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 11] = [
        Mode::Still,
        Mode::Calls,
        Mode::Rights,
        Mode::Forks,
        Mode::Attacks,
        Mode::Unannounced,
        Mode::Flips,
        Mode::Quota,
        Mode::Rotation,
        Mode::Logged,
        Mode::Scarce,
    ];
}

impl Plan {
    /// A plan of this mode.
    #[must_use]
    pub fn new(mode: Mode, seed: u64) -> Plan {
        let forks = matches!(
            mode,
            Mode::Forks | Mode::Flips | Mode::Rotation | Mode::Logged | Mode::Scarce
        );
        Plan {
            seed,
            steps: 20_000,
            // Of unannounced calls only those of one thread are in a known order.
            threads: if mode == Mode::Unannounced { 1 } else { 2 + seed % 3 },
            pages: 400,
            calls: mode != Mode::Still,
            rights: forks || mode == Mode::Rights,
            forks,
            announced: mode != Mode::Unannounced,
            // Of unannounced calls it cannot be told.
            refused: mode != Mode::Unannounced,
            attacks: mode == Mode::Attacks,
            flips: mode == Mode::Flips,
            rotates: mode == Mode::Rotation,
            logged: mode == Mode::Logged || mode == Mode::Attacks && seed % 2 == 1,
            resizes: mode != Mode::Quota,
            quota_pages: (mode == Mode::Quota).then_some(128 + seed % 64),
            crypt_pages: (mode == Mode::Scarce).then_some(150 + seed % 350),
            canary: None,
            trace: false,
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Switch points.
    pub steps: u64,
    /// Those at which another thread went on.
    pub switches: u64,
    /// Loads that were compared.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Calls that change memory.
    pub calls: u64,
    /// Forks.
    pub forks: u64,
    /// Pages that were moved without being counted.
    pub uncounted: u64,
    /// Pages in the Clear that children did not share with their parents.
    pub unshared: u64,
    /// Pages that were encrypted.
    pub sealed: u64,
    /// Times that the adversary changed what is stored.
    pub attacks: u64,
    /// Flipped bits that were put right.
    pub healed: u64,
    /// Rotations of keys that came to their end.
    pub rotations: u64,
    /// Checks of a log hash that passed.
    pub checks: u64,
    /// Times that the Clear got another size.
    pub changes: u64,
    /// The run ended with a violation.
    pub violation: bool,
    /// The run ended since its store was full.
    pub full: bool,
    /// The run was stopped where what an unannounced program did cannot be told (SPEC section 7):
    /// it let a mapping grow where it had just unmapped another, and no page says which is there.
    pub doubt: bool,
    /// What must not be.
    pub failure: Option<String>,
}

/// What the run's threads leave for its report.
#[derive(Default)]
struct Shared {
    tally: Arc<Tally>,
    attacks: AtomicU64,
    report: Mutex<Report>,
}

/// Runs a plan to its end.
pub fn run(plan: &Plan) -> Report {
    let mut random = Random::new(plan.seed);
    let nature = Nature {
        batch: [1, 4, 16, 64][random.below(4) as usize],
        uncounted: [0, 2, 6, 30][random.below(4) as usize],
        pinned: [0, 0, 3, 20][random.below(4) as usize],
        announces: plan.announced,
    };
    let kernel = Arc::new(Kernel::new(nature, plan.canary));
    let shared = Arc::new(Shared::default());
    let (main_plan, main_shared) = (plan.clone(), Arc::clone(&shared));
    let main = move || play(&main_plan, &main_shared);
    let finished = scheduler::run(random.next(), plan.trace, kernel, main);
    report(&shared, finished)
}

fn report(shared: &Shared, finished: Finished) -> Report {
    let report = shared.report.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    Report {
        steps: finished.steps,
        switches: finished.switches,
        loads: shared.tally.loads.load(Relaxed),
        stores: shared.tally.stores.load(Relaxed),
        calls: shared.tally.calls.load(Relaxed),
        forks: shared.tally.forks.load(Relaxed),
        attacks: shared.attacks.load(Relaxed),
        failure: finished.failure,
        ..report
    }
}

fn new_pager(plan: &Plan) -> std::io::Result<Arc<Pager>> {
    let keys = KeySet::from_master(&[7; 32]);
    let metadata = MappedMetadata::new(false)?;
    let state = metadata.state();
    let how = if plan.logged { Verification::LogHash } else { Verification::Tree };
    let port = BytesPort::new(metadata, &keys.directory);
    let directory = PageDirectory::verified_by(how, port, 16 << 10);
    let store = StoreConfig {
        attackable: plan.attacks || plan.flips,
        verified_later: plan.logged,
        crypt_limit_bytes: plan.crypt_pages.map(|pages| pages * PAGE),
        ..StoreConfig::default()
    };
    let store = PageStore::new(store).map_err(std::io::Error::other)?;
    let mut config = Config::new(Vec::new());
    config.clear = ClearSize::Bytes(ClearSize::FLOOR_BYTES);
    if let Some(pages) = plan.quota_pages {
        config.clear = ClearSize::Bytes(8 * ClearSize::FLOOR_BYTES);
        config.programs = vec![rule(pages)];
    }
    let cipher = PageCipher::new(&keys.page);
    let mut pager = Pager::new(&config, cipher, directory, state, store)?;
    if plan.flips {
        pager.healing = Healing::with(None);
    }
    let pager = Arc::new(pager);
    pager.budget.set_found(TAKEN, 0, 0);
    Ok(pager)
}

/// A rule for every program: no process here executes a file that has a name.
fn rule(pages: u64) -> ProgramRule {
    let clear_bytes = Some(pages * PAGE);
    ProgramRule { program: "program".into(), name: None, path: None, clear_bytes, idle: None }
}

/// Arms a process as the watcher does.
fn arm(plan: &Plan, pager: &Arc<Pager>, mm: u32, pid: i32) -> Arc<Space> {
    let number = scheduler::kernel().lock().new_uffd(mm, true);
    let uffd = Userfault::new(number);
    let mut hand = Hand::new(mm, number);
    let mut register = |start, len| uffd.register(start, len);
    while hand.make_staging(StagingKind::Rw, &mut register, &mut || {}).is_err() {}
    let id = pager.new_space_id();
    let is_announced = plan.announced;
    let state = SpaceState::armed(pid, hand, is_announced).expect("an agent that lives");
    pager.open_space(id).expect("a new space");
    let space = Space::within(pager.quotas.of_process(pid), id, uffd, state);
    space.heard.store(true, Relaxed);
    scheduler::kernel().hear(number);
    pager.add_space(&space);
    pager
        .events()
        .survey(&space, pid, Duration::from_secs(3600))
        .expect("no other thread holds it yet");
    space
}

/// The first thread of a run: sets all up, waits for its end, and judges it.
fn play(plan: &Plan, shared: &Arc<Shared>) {
    let kernel = scheduler::kernel();
    let pager = new_pager(plan).expect("a pager");
    let mm = kernel.lock().new_mm();
    let pid = kernel.lock().new_task(mm, None, false);
    for i in 0..4 {
        let (at, len) = ((0x1_0000 + i * 1000) * PAGE, plan.pages / 4 * PAGE);
        let flags = libc::MAP_FIXED as u64;
        kernel.perform(pid, libc::SYS_mmap, [at, len, 3, flags, 0, 0]);
    }
    arm(plan, &pager, mm, pid);
    if plan.announced {
        announcer::listen(&pager, Listener).expect("a thread");
    }
    for i in 0..2 {
        let pager = Arc::clone(&pager);
        scheduler::spawn(&format!("handler-{i}"), move || threads::handle(&pager));
    }
    let (watched, resizes) = (Arc::clone(&pager), plan.resizes);
    scheduler::spawn("watcher", move || threads::watch(&watched, resizes));
    scheduler::spawn("compaction", threads::compact);
    if plan.attacks {
        let (pager, shared) = (Arc::clone(&pager), Arc::clone(shared));
        scheduler::spawn("adversary", move || threads::attack(&pager, &shared.attacks));
    }
    if plan.flips {
        let decaying = Arc::clone(&pager);
        scheduler::spawn("memory", move || decay::flip(&decaying));
        let scrubbed = Arc::clone(&pager);
        scheduler::spawn("scrub", move || decay::scrub(&scrubbed));
    }
    if plan.rotates {
        let rotated = Arc::clone(&pager);
        scheduler::spawn("rotate", move || rotation::rotate(&rotated));
    }
    if plan.logged {
        let checked = Arc::clone(&pager);
        scheduler::spawn("check", move || logged::check(&checked));
    }
    for i in 0..plan.threads {
        let tid = if i == 0 { pid } else { kernel.lock().new_task(mm, Some(pid), false) };
        let thread = Thread::new(plan, &shared.tally, tid, plan.steps);
        scheduler::spawn(&format!("thread-{i}"), move || thread.run());
    }
    let failure = await_end(plan, &pager, shared);
    scheduler::end(failure);
}

fn await_end(plan: &Plan, pager: &Arc<Pager>, shared: &Shared) -> Option<String> {
    let mut beyond = 0;
    let promised = || {
        let clear = pager.budget.limit_of(pager.budget.promised()) - TAKEN;
        plan.quota_pages.map_or(clear, |quota| quota.min(clear))
    };
    while pager.ending().is_none() && shared.tally.threads.load(Relaxed) > 0 {
        pager.stopped.await_ring(50);
        let before = promised();
        let grace = pager.plain.lent() as u64;
        let there = scheduler::kernel().lock().resident + grace;
        // While it is counted the size may change.
        beyond = beyond.max(there.saturating_sub(before.max(promised())));
    }
    let mut report = shared.report.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    report.uncounted = pager.counts.uncounted_moves.load(Relaxed);
    report.sealed = pager.counts.pages_out.load(Relaxed);
    report.unshared = pager.counts.forked_unshared_pages.load(Relaxed);
    report.healed = pager.counts.healed_bits.load(Relaxed);
    report.rotations = pager.counts.key_rotations.load(Relaxed);
    report.checks = pager.counts.checks.load(Relaxed);
    report.changes = pager.budget.kept().changes;
    match pager.ending() {
        Some(Ending::Violation { .. }) if shared.attacks.load(Relaxed) > 0 => {
            report.violation = true;
            None
        }
        Some(Ending::StoreFailed { .. }) if plan.crypt_pages.is_some() => {
            report.full = true;
            None
        }
        Some(Ending::KeeperFailed { what })
            if !plan.announced && !plan.refused && what.contains(CANNOT_BE_TOLD) =>
        {
            report.doubt = true;
            None
        }
        Some(ending) => Some(format!("the run was stopped: {ending:?}")),
        None if beyond > BEYOND => {
            Some(format!("{beyond} pages of plaintext beyond the limit, {BEYOND} are allowed"))
        }
        // The adversary here changes ciphertext only.
        None => pager.check_log().err().map(|stop| format!("the last check: {stop}")),
    }
}
