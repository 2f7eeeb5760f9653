//! Locks a run, and lets it go on.
//!
//! ```text
//! every process gets an agent    only then can its pages leave          arming.rs
//! all threads stand still                                               hand/standstill.rs
//! every page leaves the Clear                                           evict/shrink.rs
//! threads of the keeper wait     and what came back meanwhile leaves    secret/points.rs
//! registers are taken            they are sealed with the keys          hand/taken.rs
//! keys are sealed                                                       secrets.rs
//! ```
//!
//! Until then the run can go on as it was, and does if a step fails. From then on the watcher only
//! waits for who has the private key, or for the end of the run.

use super::Watcher;
use super::process::Process;
use super::readable::Readable;
use crate::control::{LockAnswer, LockOrder, Locked, Obstacle, Refusal};
use crate::hand::{InjectError, Standstill, Taken};
use crate::lock::{self, LockError, LockKey, Offer, SealingKey};
use crate::outcome::Ending;
use crate::pager::Stop;
use crate::pager::space::Space;
use crate::secret::points;
use crate::secrets::{self, NotOpened, Sealed};
use crate::sys::procfs;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long every process is waited for until it has its agent.
const AGENTS_PATIENCE: Duration = Duration::from_secs(10);
/// How long threads are waited for until they stand still. One that takes longer is in a call that
/// is not interrupted, and stops at its end.
const THREADS_PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks at threads.
const THREADS_PAUSE: Duration = Duration::from_micros(500);
/// The time between two looks whether a locked run has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Locks that are ordered.
pub(super) struct Lock {
    orders: Option<Receiver<LockOrder>>,
    wanted: Option<Wanted>,
    /// Threads that go on as soon as they have stopped.
    thawing: Standstill,
}

/// A lock that is to come.
struct Wanted {
    key: LockKey,
    answer: Sender<LockAnswer>,
    since: Instant,
}

/// A run that is locked. What it holds must not be dropped before it is unlocked: threads would go
/// on without their registers.
struct LockedRun {
    still: ManuallyDrop<Standstill>,
    taken: Taken,
    /// None once it is lost.
    sealed: Option<Sealed>,
}

/// What came of a key.
enum Unlocked {
    GoesOn,
    WrongKey,
    /// The run cannot go on, and ends.
    Lost,
}

/// What a lock comes to that is not there yet.
enum NotYet {
    /// It can be tried again soon.
    Again,
    Refused(Refusal),
    Hindered(Obstacle),
}

/// What a step comes to, unless the run ends.
type Attempt<T> = Result<Result<T, NotYet>, Stop>;

impl Lock {
    pub fn by(orders: Option<Receiver<LockOrder>>) -> Self {
        Lock { orders, wanted: None, thawing: Standstill::default() }
    }

    /// Whether a lock is to come, or threads are to go on after one.
    pub fn is_under_way(&self) -> bool {
        self.wanted.is_some() || !self.thawing.is_empty()
    }

    /// Takes the next order if there is one.
    fn hear(&mut self) {
        match self.orders.as_ref().and_then(|orders| orders.try_recv().ok()) {
            Some(LockOrder::Lock { key, answer }) => {
                self.wanted = Some(Wanted { key, answer, since: Instant::now() });
            }
            // An error means that the caller has gone.
            Some(LockOrder::Unlock { answer, .. }) => {
                let _ = answer.send(LockAnswer::Refused(Refusal::NotLocked));
            }
            None => {}
        }
    }
}

impl Watcher {
    /// Takes the next step towards a lock that is ordered. Once the run is locked, returns when it
    /// is unlocked or has ended.
    pub(super) fn see_to_lock(&mut self) -> Result<(), Stop> {
        self.lock.thawing.let_go();
        if self.lock.wanted.is_none() {
            self.lock.hear();
            let is_wanted = self.lock.wanted.is_some();
            self.arming.arm_all_for_lock(is_wanted);
            if is_wanted {
                self.pager.budget.take_refusal();
            }
        }
        let Some(wanted) = self.lock.wanted.take() else { return Ok(()) };
        let answer = match self.lock_now(&wanted)? {
            Ok((run, offer, found)) => {
                let _ = wanted.answer.send(LockAnswer::Locked { offer, found });
                self.stay_locked(run);
                return Ok(());
            }
            Err(NotYet::Again) if wanted.since.elapsed() < AGENTS_PATIENCE => {
                self.lock.wanted = Some(wanted);
                return Ok(());
            }
            Err(NotYet::Again) => LockAnswer::Hindered(Obstacle::Agents),
            Err(NotYet::Refused(refusal)) => LockAnswer::Refused(refusal),
            Err(NotYet::Hindered(obstacle)) => LockAnswer::Hindered(obstacle),
        };
        let _ = wanted.answer.send(answer);
        Ok(())
    }

    fn lock_now(&mut self, wanted: &Wanted) -> Attempt<(LockedRun, Offer, Locked)> {
        if self.pager.budget.take_refusal() {
            return Ok(Err(NotYet::Hindered(Obstacle::Agents)));
        }
        // Threads of an attempt before may not have been let go yet.
        if !self.lock.thawing.is_empty() || !self.is_all_armed() {
            return Ok(Err(NotYet::Again));
        }
        let (sealing, offer) = match lock::offer(wanted.key) {
            Ok(offered) => offered,
            Err(LockError::NoPublicKey) => {
                return Ok(Err(NotYet::Refused(Refusal::NoPublicKey)));
            }
            Err(LockError::NoKey) => return Ok(Err(NotYet::Hindered(Obstacle::Keeper))),
        };
        let mut still = Standstill::default();
        let outcome = self.empty_and_seal(&mut still, &sealing);
        let (taken, sealed) = match outcome {
            Ok(Ok(done)) => done,
            not_done => {
                self.lock.thawing = still;
                self.lock.thawing.let_go();
                return not_done.map(|why| Err(why.err().unwrap_or(NotYet::Again)));
            }
        };
        let found = self.found(&mut still, taken.left());
        let still = ManuallyDrop::new(still);
        Ok(Ok((LockedRun { still, taken, sealed: Some(sealed) }, offer, found)))
    }

    fn empty_and_seal(
        &mut self,
        still: &mut Standstill,
        sealing: &SealingKey,
    ) -> Attempt<(Taken, Sealed)> {
        if let Err(why) = self.stand_still(still) {
            return Ok(Err(why));
        }
        if self.pager.lets_out.get().is_some_and(|lets_out| !lets_out()) {
            return Ok(Err(NotYet::Hindered(Obstacle::Output)));
        }
        if !self.empty_all()? {
            return Ok(Err(NotYet::Hindered(Obstacle::Pages)));
        }
        for space in self.pager.all_spaces() {
            self.pager.fault().serve_left_over(&space)?;
        }
        let Some(closed) = points::close() else {
            return Ok(Err(NotYet::Hindered(Obstacle::Keeper)));
        };
        // No fault is served from here on, but some were since their space was emptied.
        if !self.empty_all()? {
            return Ok(Err(NotYet::Hindered(Obstacle::Pages)));
        }
        // A thread that was left in its call may have woken: it waits for its first page.
        let _ = self.stop_all(still);
        let mut taken = still.take();
        match secrets::seal(closed, sealing, taken.bytes()) {
            Some(sealed) => Ok(Ok((taken, sealed))),
            None => {
                still.give_back(taken);
                Ok(Err(NotYet::Hindered(Obstacle::Keeper)))
            }
        }
    }

    /// Takes out of all spaces what can leave. False if there are no places for it.
    fn empty_all(&self) -> Result<bool, Stop> {
        for space in self.pager.all_spaces() {
            if !self.pager.evict().empty(&space)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether every process has its agent, and none is being given one.
    fn is_all_armed(&self) -> bool {
        let can_leave = |space: &Arc<Space>| {
            space.is_gone() || space.agent.load(Relaxed) != 0 || space.unarmable.load(Relaxed)
        };
        let is_armed = |process: &Process| {
            process.space.is_some()
                || process.has_ended()
                || process.shares_with.is_some()
                || process.unprotectable
                || process.resident.anon_pages == 0
        };
        !self.arming.is_busy()
            && !self.brake.is_on()
            && self.pager.all_spaces().iter().all(can_leave)
            && self.family.processes.values().all(is_armed)
    }

    /// Has all threads stop, until none is new.
    fn stand_still(&mut self, still: &mut Standstill) -> Result<(), NotYet> {
        let until = Instant::now() + THREADS_PATIENCE;
        let mut known = 0;
        loop {
            self.last_pid_seen = None;
            self.census(None);
            self.stop_all(still)?;
            let now = still.look();
            let is_all = known == now.threads && now.in_calls == 0;
            if is_all || Instant::now() > until {
                break;
            }
            known = now.threads;
            std::thread::sleep(THREADS_PAUSE);
        }
        // One that was born or executed meanwhile has no agent yet.
        if self.is_all_armed() { Ok(()) } else { Err(NotYet::Again) }
    }

    fn stop_all(&self, still: &mut Standstill) -> Result<(), NotYet> {
        let heard = self.pager.heard.lock();
        let parent = |pid| procfs::state_and_parent(pid).map(|(_, parent)| parent);
        let living = self.family.processes.values().filter(|process| !process.has_ended());
        let each = living.map(|process| (process.pid, heard.includes(process.pid, parent)));
        still.stop(each).map_err(|error| match error {
            InjectError::Executing => NotYet::Again,
            _ => NotYet::Hindered(Obstacle::Threads),
        })
    }

    /// What can be read still, after all has left that could but the registers of `left` threads.
    fn found(&self, still: &mut Standstill, left: u64) -> Locked {
        let threads = still.look();
        let Readable { private_pages, outside_pages } = Readable::of(&self.family);
        Locked {
            plaintext_pages: private_pages,
            outside_pages,
            threads: threads.threads + threads.left_alone,
            threads_in_calls: threads.in_calls + threads.left_alone + left,
        }
    }

    /// Waits for the right key. Does not return if the run ends first.
    fn stay_locked(&mut self, mut run: LockedRun) {
        // What led to the lock has returned.
        points::sweep();
        while self.pager.ending().is_none() {
            match self.next_order() {
                Some(LockOrder::Lock { answer, .. }) => {
                    let _ = answer.send(LockAnswer::Refused(Refusal::Locked));
                }
                Some(LockOrder::Unlock { sealing, answer }) => {
                    match self.unlock(&mut run, &sealing) {
                        Unlocked::GoesOn => {
                            // It looked at nothing meanwhile, since nothing went on.
                            self.looked = None;
                            let _ = answer.send(LockAnswer::Unlocked);
                            return;
                        }
                        Unlocked::WrongKey => {
                            let _ = answer.send(LockAnswer::Refused(Refusal::WrongKey));
                        }
                        Unlocked::Lost => break,
                    }
                }
                None => {
                    run.still.look();
                    self.reap();
                    self.finish();
                }
            }
        }
        // The library frees what it keeps for a thread when that ends, and finds it sealed. The
        // process ends soon.
        loop {
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for an order for a while.
    fn next_order(&self) -> Option<LockOrder> {
        match self.lock.orders.as_ref().map(|orders| orders.recv_timeout(LOOK)) {
            Some(Ok(order)) => Some(order),
            Some(Err(RecvTimeoutError::Timeout)) => None,
            // There is no door any more.
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                std::thread::sleep(LOOK);
                None
            }
        }
    }

    /// Lets the run go on if the key is right.
    fn unlock(&mut self, run: &mut LockedRun, sealing: &SealingKey) -> Unlocked {
        let Some(sealed) = run.sealed.take() else { return Unlocked::Lost };
        match sealed.open(sealing, run.taken.bytes()) {
            Ok(()) => {}
            Err(NotOpened::WrongKey(sealed)) => {
                run.sealed = Some(sealed);
                return Unlocked::WrongKey;
            }
            Err(NotOpened::Changed) => {
                let what = "its sealed keys were changed while it was locked".to_owned();
                self.pager.stop_as(Ending::KeeperFailed { what });
                return Unlocked::Lost;
            }
        }
        self.lock.thawing = std::mem::take(&mut *run.still);
        self.lock.thawing.give_back(std::mem::take(&mut run.taken));
        self.lock.thawing.let_go();
        Unlocked::GoesOn
    }
}
