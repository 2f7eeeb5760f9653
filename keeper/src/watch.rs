//! The watcher: finds the processes of the run, watches how much plaintext they hold, and places
//! them under the pager when the Clear runs short. Until then a program runs at full speed: a
//! program that fits the Clear needs no pager.

mod agents;
mod arming;
mod auto;
mod brake;
mod counting;
mod exposed;
mod family;
mod findings;
mod haste;
mod heirs;
mod idle;
mod judge;
mod kernel_count;
mod lineages;
mod lock;
mod look_time;
mod pace;
mod place;
mod precedence;
mod process;
mod protected;
mod readable;
mod required;
mod resize;
mod rest;
mod sleepers;
mod spaces;
mod unregistered;

use crate::config::{AutoSize, Config};
use crate::control::Orders;
use crate::event_counts::{add, peak};
use crate::handlers::{Handlers, Starvation};
use crate::outcome::Ending;
use crate::pager::evict::Taken;
use crate::pager::{Pager, Stop};
use crate::sys::process::{self as system, ChildEnd};
use crate::sys::procfs::Load;
use arming::Arming;
use auto::Auto;
use brake::Brake;
use counting::Counting;
use exposed::Exposed;
use family::{Family, Measured, Unprotected};
pub(crate) use findings::Findings;
use haste::Haste;
use idle::Idle;
use lock::Lock;
use look_time::LookTime;
use pace::Pace;
use place::Place;
use precedence::Precedence;
use protected::Protected;
use required::Required;
use resize::Resize;
use sleepers::Sleepers;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

/// Ticks between two looks at the whole family when no new process is in sight.
const TICKS_PER_CENSUS: u64 = 64;
/// A forked child that has not executed another program by then will probably not do so.
const SETTLING_TIME: Duration = Duration::from_millis(20);
/// If sums differ, the pager's records are compared with the kernel: after `CALM_TICKS` looks
/// without an event, and every `TICKS_PER_COMPARISON` looks in any case.
const CALM_TICKS: u64 = 4;
const TICKS_PER_COMPARISON: u64 = 256;
/// Looks between two notes of peaks.
const TICKS_PER_NOTE: u64 = 32;
/// Room that is kept free, as a multiple of the largest recent growth between two looks. A look may
/// come late, and a program is stopped when half of this room is left.
const EXPECTED_GROWTHS: u64 = 4;
/// The longest time that the watcher evicts before it looks again.
const RECLAIM_PATIENCE: Duration = Duration::from_millis(1);

/// What the watcher is to do beyond keeping the bound.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Processes that cannot be armed run on, and their memory is counted.
    allow_unprotected: bool,
    /// See [`Config::auto`].
    auto: Option<AutoSize>,
    /// See [`Config::idle`].
    idle: Option<Duration>,
    /// See [`Config::required_percent`].
    required_percent: u8,
}

impl Policy {
    /// That of a run.
    pub fn of(config: &Config) -> Self {
        Policy {
            allow_unprotected: config.allow_unprotected,
            auto: config.auto,
            idle: config.idle,
            required_percent: config.required_percent,
        }
    }
}

/// State of the watcher thread.
pub struct Watcher {
    pager: Arc<Pager>,
    handlers: Arc<Handlers>,
    family: Family,
    arming: Arming,
    brake: Brake,
    idle: Idle,
    sleepers: Sleepers,
    /// Pages are idle after this time, unless a quota says otherwise.
    cold_after: Duration,
    /// Idle pages leave also while no size asks what is cold.
    always_idle: bool,
    exposed: Exposed,
    haste: Haste,
    protected: Protected,
    required: Option<Required>,
    resize: Resize,
    lock: Lock,
    precedence: Precedence,
    place: Place,
    starvation: Starvation,
    busy_patience: u64,
    load: Option<Load>,
    last_pid_seen: Option<u64>,
    runnable: Option<u32>,
    ticks: u64,
    /// The look at which records were last compared with the kernel, and peaks noted.
    compared: u64,
    noted: u64,
    /// The last look, and the pause that was meant to follow it; none if only an event was to end
    /// the pause.
    looked: Option<(Instant, Option<Duration>)>,
    look_time: LookTime,
    findings: Arc<Findings>,
    pace: Pace,
    /// Faults at the last look.
    faults_seen: u64,
    /// Calls for attention at the last look.
    stirs_seen: u64,
    /// Looks since the last fault or stir, and since the last rest ended.
    calm_ticks: u64,
    quiet_ticks: u64,
    /// Pages that are likely to be touched unseen before the next look.
    expected: u64,
    counting: Counting,
    /// When copies of shared pages were last searched for, and how long that took.
    copies_sought: Option<(Instant, Duration)>,
    /// Whether processes may have shared pages since the peak was last judged.
    may_share: bool,
    /// Spaces that there had been at the last look.
    spaces_seen: u32,
    /// Whether processes may have shared pages at the last look: what they shared then counts in
    /// the peak that is judged at this one.
    was_shared: bool,
    /// Ticks since a process was last seen to grow.
    steady_ticks: u64,
    pages_per_us: u64,
    main_pid: i32,
    main_process: OwnedFd,
    main_end: Option<ChildEnd>,
}

impl Watcher {
    /// A watcher of the descendants of this process, of which `main_pid` is the program, to run on
    /// the calling thread. What the account of the run says of its looks goes to `findings`;
    /// `orders` change the Clear's size.
    pub(crate) fn new(
        pager: Arc<Pager>,
        handlers: Arc<Handlers>,
        main_pid: i32,
        policy: Policy,
        findings: Arc<Findings>,
        orders: Option<Orders>,
    ) -> std::io::Result<Self> {
        let pages_per_us = pages_per_us(handlers.cpus());
        let cold_after = policy.idle.unwrap_or(AutoSize::COLD_AFTER);
        let counting = Counting::begin(&pager)?;
        let (sizes, locks) = orders.map(|orders| (orders.sizes, orders.locks)).unzip();
        Ok(Watcher {
            pager,
            handlers,
            family: Family::default(),
            arming: Arming::new(policy)?,
            brake: Brake::default(),
            idle: Idle::new(),
            sleepers: Sleepers::default(),
            cold_after,
            always_idle: policy.idle.is_some(),
            exposed: Exposed::new(Arc::clone(&findings)),
            haste: Haste::none(),
            protected: Protected::default(),
            required: Required::of(policy.required_percent),
            resize: Resize::by(sizes, policy.auto.map(|size| Auto::new(size, cold_after))),
            lock: Lock::by(locks),
            precedence: Precedence::of_this_thread(),
            place: Place::of_this_thread(),
            starvation: Starvation::default(),
            busy_patience: 250,
            load: Load::open().ok(),
            last_pid_seen: None,
            runnable: None,
            ticks: 0,
            compared: 0,
            noted: 0,
            looked: None,
            look_time: LookTime::begin(),
            findings,
            pace: Pace::default(),
            faults_seen: 0,
            stirs_seen: 0,
            calm_ticks: 0,
            quiet_ticks: 0,
            expected: 0,
            counting,
            copies_sought: None,
            may_share: false,
            spaces_seen: 0,
            was_shared: false,
            steady_ticks: 0,
            pages_per_us,
            main_pid,
            main_process: system::pidfd(main_pid)?,
            main_end: None,
        })
    }

    /// Watches until the run ends.
    pub fn run(mut self) {
        while self.pager.ending().is_none() {
            let stirs = self.pager.attention.stirs();
            match self.tick() {
                Ok(wait) => {
                    self.looked = self.looked.map(|(when, _)| (when, wait));
                    self.look_time.ends("rest");
                    self.sleep(wait, stirs);
                    self.look_time.ends("sleep");
                }
                Err(stop) => self.pager.stop(stop),
            }
        }
    }

    /// Makes one look at everything. Returns how long the watcher may sleep; none: until an event.
    fn tick(&mut self) -> Result<Option<Duration>, Stop> {
        let looked = Instant::now();
        self.ticks += 1;
        self.precedence.see_to();
        self.reap();
        self.find_processes(looked)?;
        self.measure();
        self.look_time.ends("measure");
        // First, since what follows takes milliseconds, in which a program may grow.
        self.arming.stop_growing(&self.pager, &mut self.family, &self.pace)?;
        self.look_time.ends("stop");
        self.judge_peak();
        self.look_time.ends("judge");
        // What is on its way between two counts may count for a moment in both sizes.
        if self.resize.tick(&self.pager, &self.family)? {
            self.may_share = true;
            self.counting.drop_plaintext();
        }
        self.see_to_lock()?;
        self.look_time.ends("orders");
        let more_to_reclaim = self.make_room(looked)?;
        self.relieve();
        if !self.haste.is_on() {
            self.drop_ended()?;
            let begun = Instant::now();
            self.look_further()?;
            self.haste.took(begun.elapsed());
        }
        self.pace.looked_for(looked.elapsed());
        Ok(if more_to_reclaim { Some(Duration::ZERO) } else { self.pause() })
    }

    /// Finds what has come, gone or forked since the last look.
    fn find_processes(&mut self, looked: Instant) -> Result<(), Stop> {
        let lists = self.haste.lists() || self.lock.is_under_way();
        let last_pid = self.read_load();
        self.place.see_to(self.runnable, self.family.processes.values().map(|p| p.thread));
        self.look_time.ends("place");
        if lists {
            self.census(last_pid);
            self.look_time.ends("census");
        }
        self.follow_spaces(lists)?;
        self.look_time.ends("spaces");
        if lists {
            self.haste.has_listed(looked);
        }
        self.family.recognise(&self.pager)?;
        self.look_time.ends("recognise");
        if !self.haste.is_on() {
            self.find_copied()?;
            self.look_time.ends("copies");
        }
        Ok(())
    }

    /// Gives agents to those that are to have one, and evicts. Whether more is to leave.
    fn make_room(&mut self, looked: Instant) -> Result<bool, Stop> {
        self.brake.apply(&self.pager, &mut self.family, &self.arming.pids())?;
        self.look_time.ends("brake");
        self.family.survey(&self.pager, &self.arming.pids())?;
        self.look_time.ends("survey");
        let precedence = &mut self.precedence;
        self.arming.tick(&self.pager, &self.handlers, &mut self.family, looked, precedence)?;
        self.look_time.ends("arm");
        let evict = self.pager.evict();
        let more_to_reclaim = evict.reclaim(RECLAIM_PATIENCE, Taken::PassOver)?
            | evict.keep_quotas(RECLAIM_PATIENCE)?;
        self.arming.let_go_of_armed(more_to_reclaim);
        self.look_time.ends("evict");
        Ok(more_to_reclaim)
    }

    /// What a look is for beside the bound.
    fn look_further(&mut self) -> Result<(), Stop> {
        let after = self.all_are_looked_at().then_some(self.cold_after);
        self.sleepers.tick(&self.pager, &self.family);
        self.idle.tick(&self.pager, after, &self.sleepers)?;
        self.find_exposed();
        let is_due = self.ticks - self.compared >= TICKS_PER_COMPARISON;
        if self.quiet_ticks >= CALM_TICKS || is_due {
            self.compared = self.ticks;
            self.family.reconcile(&self.pager, &self.arming.pids())?;
        }
        if self.ticks - self.noted >= TICKS_PER_NOTE {
            self.noted = self.ticks;
            self.note_peaks();
        }
        self.finish();
        Ok(())
    }

    fn looks_for_idle(&self) -> bool {
        self.all_are_looked_at() || self.pager.quotas.any_idle() || self.sleepers.any()
    }

    /// Whether idle pages are looked for also in programs without a quota.
    fn all_are_looked_at(&self) -> bool {
        self.always_idle || self.resize.wants_idle(&self.pager)
    }

    /// Searches for pages that the kernel has copied without an event, as often as its share of
    /// time allows.
    fn find_copied(&mut self) -> Result<(), Stop> {
        let is_due = |&(when, cost): &(Instant, Duration)| when.elapsed() >= cost * 20;
        if !self.pager.shared.lock().any() || !self.copies_sought.as_ref().is_none_or(is_due) {
            return Ok(());
        }
        let when = Instant::now();
        for space in self.pager.all_spaces() {
            let Some(mut state) = space.state.try_lock() else { continue };
            let found = self.pager.events().find_copied(&mut state);
            self.pager.or_stop(found)?;
        }
        self.copies_sought = Some((when, when.elapsed()));
        Ok(())
    }

    /// Counts the plaintext, and keeps room for as much growth as was seen recently.
    fn measure(&mut self) {
        let measured = self.family.measure(&self.pager);
        self.look_time.ends("sizes");
        self.note_lateness();
        let Measured { untracked_pages, copied_pages, agents_pages, .. } = measured;
        self.pager.budget.set_found(untracked_pages, copied_pages, agents_pages);
        // Held, so that what is allowed meanwhile is added.
        let growing = self.pager.growing.lock();
        self.pager.budget.set_untouched(self.family.untouched(growing.allowed()));
        drop(growing);
        self.pace.measure(self.family.unarmed_growth());
        let grows = self.arming.is_busy() || self.family.unarmed_growing() > 0;
        let outruns = self.pace.outruns(self.pager.budget.free());
        self.haste.tick(outruns || grows && self.pager.budget.may_overflow_soon());
        let spare = match self.family.unarmed().next() {
            Some(_) => self.until_full(),
            None => Duration::MAX,
        };
        self.haste.learns(spare, self.family.processes.len());
        self.expected = (self.expected * 255 / 256).max(EXPECTED_GROWTHS * measured.grown_pages);
        self.pager.budget.expect(self.expected);
        self.steady_ticks = if measured.grown_pages > 0 { 0 } else { self.steady_ticks + 1 };
    }

    fn reap(&mut self) {
        while let Some((pid, end)) = system::reap(0) {
            if pid == self.main_pid {
                self.main_end = Some(end);
            }
        }
    }

    /// Reads how many threads want to run, and returns the pid that was assigned last.
    fn read_load(&mut self) -> Option<u64> {
        let load = self.load.as_ref().and_then(Load::get);
        self.runnable = load.map(|load| load.runnable);
        load.map(|load| load.last_pid)
    }

    /// Looks for new processes if the kernel has assigned a pid since the last look, `last` being
    /// the latest, or that look passed over one.
    fn census(&mut self, last: Option<u64>) {
        if !self.pager.has_begun.load(SeqCst) {
            return;
        }
        if last.is_none()
            || last != self.last_pid_seen
            || self.family.passed_over
            || self.ticks.is_multiple_of(TICKS_PER_CENSUS)
        {
            self.last_pid_seen = last;
            let (arming, agents) = (self.arming.pids(), self.arming.agents());
            let seen = self.family.census(&self.pager, &arming, &agents);
            self.pager.counts.processes_seen.store(seen, Relaxed);
        }
    }

    /// Counts what is not protected, names it at a new peak, and ends the run if it is too much.
    fn find_exposed(&mut self) {
        let unprotected = self.family.unprotected();
        self.note_unprotected(unprotected);
        let is_judged = self.required.is_some();
        self.find_protected(is_judged);
        self.exposed.tick(&self.family, unprotected.pages, &self.haste);
        let Some(required) = &mut self.required else { return };
        if !self.pager.has_begun.load(SeqCst) {
            return;
        }
        let main = self.main_end.is_none().then_some(self.main_pid);
        let share = self.family.share(&self.pager, main, unprotected);
        if let Some(ending) = required.judge(share) {
            self.exposed.list(&self.family, unprotected.pages);
            self.pager.stop_as(ending);
        }
    }

    /// Changes to ordinary handler threads while the idle class gets no time, and back.
    fn relieve(&mut self) {
        let spaces = self.pager.all_spaces();
        // The watcher's own thread is runnable too, and is not counted.
        let rivals = self.runnable.map_or(0, |n| n.saturating_sub(1));
        let starved = self.starvation.check(&spaces, &self.pager.counts.faults)
            | self.starvation.crowded(rivals, self.handlers.cpus());
        if starved && !self.handlers.is_busy() {
            add(&self.pager.counts.starvations, 1);
            self.handlers.set_busy(true, &spaces);
        } else if self.handlers.is_busy() && self.starvation.calm_ticks() > self.busy_patience {
            // Each change back doubles the wait before the next one.
            self.busy_patience = (self.busy_patience * 2).min(60_000);
            self.handlers.set_busy(false, &spaces);
        }
    }

    fn note_peaks(&self) {
        self.pager.note_peaks();
        self.note_unprotected(self.family.unprotected());
    }

    fn note_unprotected(&self, unprotected: Unprotected) {
        peak(&self.pager.counts.unprotected_pages_peak, unprotected.pages);
        peak(&self.pager.counts.unprotectable_pages_peak, unprotected.anonymous_pages);
    }

    /// The run ends when its last process has.
    fn finish(&mut self) {
        let Some(end) = self.main_end else { return };
        if self.family.census_is_empty(&self.pager) {
            self.judge_last();
            self.note_peaks();
            self.pager.stop_as(match end {
                ChildEnd::Exited(code) => Ending::Exited { code },
                ChildEnd::Signaled(signal) => Ending::Signaled { signal },
            });
        }
    }
}

/// Pages that a program can touch for the first time in a microsecond: one for each processor, as
/// long as the memory keeps up.
fn pages_per_us(cpus: usize) -> u64 {
    cpus.clamp(2, 8) as u64
}

/// Time since `then` that a periodic cost of `cost` allows at one twentieth of a CPU.
fn due(then: Instant, cost: Duration) -> bool {
    then.elapsed() >= (cost * 20).clamp(Duration::from_millis(1), Duration::from_millis(200))
}
