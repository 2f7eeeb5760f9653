//! Handler threads: one for each CPU, pinned and of the idle class, serving the threads that fault
//! there; and unpinned ones of the ordinary class, which take over when a busy machine leaves the
//! idle class no time.
//!
//! The scheduler wakes a thread on the CPU where it slept if that CPU runs only idle-class threads.
//! A handler of the idle class therefore does not move the program to another CPU when it wakes it,
//! and a fault served on the same CPU costs some 5 µs instead of 40 to 80 (`casemate bench pager`).

use crate::event_counts::add;
use crate::pager::Pager;
use crate::pager::fault::has_left_over;
use crate::pager::space::Space;
use crate::profile::{self, Phase};
use crate::secrets;
use crate::sys::mutex::{Loan, Mutex};
use crate::sys::poll::{self, Epoll};
use crate::sys::sched::{self, CpuOfThread};
use casemate_pages::SpaceId;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The handler sets: which threads listen to which spaces.
pub struct Handlers {
    /// One per allowed CPU.
    near: Vec<Near>,
    /// Shared by the ordinary threads.
    relief: Epoll,
    /// Whether the machine is busy: then every space is in `relief`'s set.
    busy: AtomicBool,
    /// On which CPUs faulting threads were seen.
    sightings: Mutex<HashMap<SpaceId, Sightings>>,
}

struct Near {
    cpu: usize,
    epoll: Epoll,
}

/// Faults between two checks of a thread's CPU, unless a fault came late.
const FAULTS_PER_LOOK: u64 = 64;
/// Faults between two checks, however late the last one came.
const LEAST_FAULTS_PER_LOOK: u64 = 4;
/// How many times as long as usual a gap between faults is that may mean a change of the CPU.
const LONG_GAP: u64 = 3;
/// Checks, of all handlers together, after which a thread that was not seen again is forgotten.
const LOOKS_REMEMBERED: u64 = 8;
/// The number of spaces at which all sightings are dropped: most of these spaces have ended.
const MOST_SPACES_SEEN: usize = 1024;
const RELIEF_THREADS: usize = 2;
/// The time between two attempts to serve faults that wait for room.
const WAITING_PAUSE: Duration = Duration::from_millis(1);

impl Handlers {
    /// Sets for every CPU that this process may use.
    pub fn new() -> std::io::Result<Arc<Self>> {
        let near = sched::allowed_cpus()
            .into_iter()
            .take(64)
            .map(|cpu| Ok(Near { cpu, epoll: Epoll::new()? }))
            .collect::<std::io::Result<Vec<_>>>()?;
        Ok(Arc::new(Handlers {
            near,
            relief: Epoll::new()?,
            busy: AtomicBool::new(false),
            sightings: Mutex::default(),
        }))
    }

    /// Starts the threads; they run until the process ends.
    pub fn start(self: &Arc<Self>, pager: &Arc<Pager>) -> std::io::Result<()> {
        for index in 0..self.near.len() {
            let (handlers, pager) = (Arc::clone(self), Arc::clone(pager));
            secrets::spawn_server(&format!("handler-{index}"), move || {
                handlers.run_near(index, &pager)
            })?;
        }
        let waiting = Arc::clone(pager);
        secrets::spawn_server("waiting", move || see_to_waiting(&waiting))?;
        for index in 0..RELIEF_THREADS {
            let (handlers, pager) = (Arc::clone(self), Arc::clone(pager));
            secrets::spawn_server(&format!("relief-{index}"), move || handlers.run_relief(&pager))?;
        }
        Ok(())
    }

    /// Begins to listen to a space.
    pub fn listen(&self, space: &Space) {
        let number = u64::from(space.id.0);
        if self.busy.load(Relaxed) {
            let _ = self.relief.add(&space.uffd, number, true);
            return;
        }
        // Until the first fault shows where its threads run, the first CPU listens.
        self.set_listeners(space, 1);
    }

    /// Begins to listen to the space of a forked child, which waits already, on a CPU that is not
    /// known.
    pub fn listen_everywhere(&self, space: &Space) {
        if self.busy.load(Relaxed) {
            let _ = self.relief.add(&space.uffd, u64::from(space.id.0), true);
            return;
        }
        self.set_listeners(space, u64::MAX >> (64 - self.near.len()));
    }

    /// CPUs that have a handler.
    pub fn cpus(&self) -> usize {
        self.near.len()
    }

    /// Whether faults are handled by ordinary threads now.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Relaxed)
    }

    /// Changes between idle-class handlers near the program and ordinary ones anywhere.
    pub fn set_busy(&self, busy: bool, spaces: &[Arc<Space>]) {
        self.busy.store(busy, Relaxed);
        for space in spaces {
            let number = u64::from(space.id.0);
            if busy {
                self.set_listeners(space, 0);
                let _ = self.relief.add(&space.uffd, number, true);
            } else {
                self.relief.remove(&space.uffd);
                self.set_listeners(space, 1);
            }
        }
    }

    /// Makes exactly the handlers of `mask` (bits by index) listen to `space`. Adding an edge-
    /// triggered entry reports what is waiting already, so nothing is missed in between.
    fn set_listeners(&self, space: &Space, mask: u64) {
        let old = space.listeners.swap(mask, Relaxed);
        for (index, near) in self.near.iter().enumerate() {
            let (was, is) = (old >> index & 1 == 1, mask >> index & 1 == 1);
            if is && !was {
                let _ = near.epoll.add(&space.uffd, u64::from(space.id.0), true);
            } else if was && !is {
                near.epoll.remove(&space.uffd);
            }
        }
    }

    fn run_near(&self, index: usize, pager: &Arc<Pager>) {
        let near = &self.near[index];
        // If pinning fails (the CPU was taken from the keeper), the handler still works, from
        // another CPU.
        let _ = sched::pin_self(near.cpu);
        let _ = sched::idle_self();
        let mut whereabouts = Whereabouts::default();
        let mut loan = Loan::default();
        self.run(
            &near.epoll,
            pager,
            || loan.give_back(),
            |space, tid, faults| {
                if let Some(mask) = whereabouts.look(self, space, tid, faults)
                    && !self.busy.load(Relaxed)
                {
                    add(&pager.counts.handler_migrations, 1);
                    self.set_listeners(space, mask);
                }
            },
        );
    }

    fn run_relief(&self, pager: &Arc<Pager>) {
        // These threads run when the machine is busy, and must be scheduled before the threads that
        // keep it busy.
        sched::hurry(0);
        self.run(&self.relief, pager, || {}, |_, _, _| {});
    }

    /// Serves what `epoll` says until the process ends. `rest` is called while nothing is served,
    /// `after` after each fault.
    fn run(
        &self,
        epoll: &Epoll,
        pager: &Arc<Pager>,
        mut rest: impl FnMut(),
        mut after: impl FnMut(&Arc<Space>, i32, u64),
    ) {
        let mut ready = Vec::new();
        pager.profiler.join();
        loop {
            ready.clear();
            rest();
            secrets::pass();
            if let Err(error) = epoll.wait(-1, &mut ready) {
                pager.stop(crate::pager::Stop::Internal(format!("waiting for faults: {error}")));
                return;
            }
            secrets::pass();
            profile::ended(Phase::Idle);
            for &number in &ready {
                let Some(space) = pager.space(SpaceId(number as u32)) else { continue };
                match pager
                    .fault()
                    .attend(&space, &mut |space, tid, faults| after(space, tid, faults))
                {
                    Ok(()) => {}
                    Err(stop) => pager.stop(stop),
                }
            }
        }
    }
}

/// Serves what no handler is told of: messages that another thread has read, when the bell rings,
/// and faults that wait for room, again and again. The watcher could not: it can itself be blocked
/// by a waiting thread (the kernel delays PTRACE_SEIZE until the process has read its arguments for
/// an `execve`), and while it waits for the room that one program needs, others grow.
fn see_to_waiting(pager: &Pager) {
    // As for the relief threads: what waits has waited already.
    sched::hurry(0);
    let mut retried = Instant::now();
    let mut pause = None;
    loop {
        secrets::pass();
        let is_rung = poll::readable(&pager.waiting, pause).0;
        if is_rung {
            pager.waiting.silence();
        }
        secrets::pass();
        // A fault that has to wait once more rings the bell again.
        let is_due = retried.elapsed() >= WAITING_PAUSE;
        let mut is_any_busy = false;
        for space in pager.all_spaces() {
            let left = has_left_over(&space);
            is_any_busy |= left.is_none();
            if left == Some(true) || is_due && space.waits.load(Relaxed) {
                let served = pager.fault().serve_left_over(&space);
                served.unwrap_or_else(|stop| pager.stop(stop));
            }
        }
        if is_due {
            retried = Instant::now();
        }
        let waits = pager.all_spaces().iter().any(|space| space.waits.load(Relaxed));
        pause = (waits || is_rung && is_any_busy).then_some(WAITING_PAUSE);
    }
}

/// On which CPU each faulting thread of a space was seen last, by any handler. (One handler sees
/// only the threads on its own CPU; by its view alone the other handlers would be turned off.)
#[derive(Debug, Default)]
struct Sightings {
    looks: u64,
    seen: Vec<Sighting>,
}

#[derive(Debug)]
struct Sighting {
    tid: i32,
    /// The handler of the CPU that it was on.
    index: usize,
    /// The number of the look.
    look: u64,
}

impl Sightings {
    /// Notes a sighting and returns which handlers should listen, one bit each. A thread counts
    /// only on the CPU where it was seen last, so there are never more handlers than threads.
    /// Otherwise two handlers would race for every fault of one thread, and the one on the other
    /// CPU would pull the thread over when it wins.
    fn note(&mut self, tid: i32, index: usize) -> u64 {
        self.looks += 1;
        let look = self.looks;
        self.seen.retain(|s| s.tid != tid && s.look + LOOKS_REMEMBERED > look);
        self.seen.push(Sighting { tid, index, look });
        self.seen.iter().fold(0, |mask, s| mask | 1 << s.index)
    }
}

/// When one handler last checked the CPUs of its spaces' threads.
#[derive(Default)]
struct Whereabouts {
    threads: HashMap<i32, CpuOfThread>,
    spaces: HashMap<SpaceId, Pace>,
}

/// How one space's faults follow each other at one handler.
#[derive(Default)]
struct Pace {
    faults_since_look: u64,
    has_looked: bool,
    last_fault: Option<Instant>,
    /// Nanoseconds between faults, averaged over some sixteen.
    usual_gap_ns: u64,
}

impl Pace {
    /// Faults come `gap_ns` after those before. Whether to check now on which CPU the thread runs:
    /// to read that takes as long as a third of a miss. A gap much longer than is usual may mean
    /// that the thread moved to another CPU.
    fn is_due(&mut self, gap_ns: u64, faults: u64) -> bool {
        self.faults_since_look += faults;
        let is_long = gap_ns > LONG_GAP * self.usual_gap_ns;
        self.usual_gap_ns = (self.usual_gap_ns * 15 + gap_ns) / 16;
        let is_due = !self.has_looked
            || self.faults_since_look >= FAULTS_PER_LOOK
            || is_long && self.faults_since_look >= LEAST_FAULTS_PER_LOOK;
        if is_due {
            self.faults_since_look = 0;
            self.has_looked = true;
        }
        is_due
    }
}

impl Whereabouts {
    /// Checks from time to time on which CPU `tid` runs. Returns the new listeners if they should
    /// change.
    fn look(&mut self, handlers: &Handlers, space: &Space, tid: i32, faults: u64) -> Option<u64> {
        let pace = self.spaces.entry(space.id).or_default();
        let now = Instant::now();
        let gap = pace.last_fault.replace(now).map_or(Duration::ZERO, |last| now - last);
        if !pace.is_due(gap.as_nanos() as u64, faults) {
            return None;
        }
        if self.threads.len() > 256 {
            self.threads.clear();
        }
        let cpu = match self.threads.entry(tid) {
            std::collections::hash_map::Entry::Occupied(e) => e.get().get(),
            std::collections::hash_map::Entry::Vacant(e) => {
                CpuOfThread::open(tid).ok().and_then(|t| e.insert(t).get())
            }
        };
        let Some(cpu) = cpu else {
            self.threads.remove(&tid);
            return None;
        };
        let index = handlers.near.iter().position(|n| n.cpu == cpu)?;
        let mut sightings = handlers.sightings.lock();
        if sightings.len() > MOST_SPACES_SEEN {
            sightings.clear();
        }
        let mask = sightings.entry(space.id).or_default().note(tid, index);
        (mask != space.listeners.load(Relaxed)).then_some(mask)
    }
}

/// Ticks of the watcher for which no fault was served before that counts as starvation. One or two
/// may be the hypervisor's doing, when it gave the processor to another machine.
const STARVED_TICKS: u32 = 5;

/// Signs that idle-class handlers get no time: faults that have waited for some ticks of the
/// watcher, or more threads that want to run than there are CPUs.
#[derive(Default)]
pub struct Starvation {
    /// Faults served when a space was first seen waiting, and for how many ticks it has waited.
    waiting: HashMap<SpaceId, (u64, u32)>,
    /// Runnable threads, in sixteenths, averaged over some sixteen ticks.
    runnable_x16: u32,
    calm_ticks: u64,
}

impl Starvation {
    /// Compares what is pending with the last ticks. True if some fault has waited for too long.
    pub fn check(&mut self, spaces: &[Arc<Space>], served: &AtomicU64) -> bool {
        let served = served.load(Relaxed);
        let mut starved = false;
        let mut waiting = HashMap::new();
        for space in spaces {
            if !space.is_gone() && space.uffd.has_message() {
                let ticks = match self.waiting.get(&space.id) {
                    Some(&(before, ticks)) if before == served => ticks + 1,
                    _ => 0,
                };
                starved |= ticks >= STARVED_TICKS;
                waiting.insert(space.id, (served, ticks));
            }
        }
        self.waiting = waiting;
        self.calm_ticks = if starved { 0 } else { self.calm_ticks + 1 };
        starved
    }

    /// Whether, for a while now, more threads have wanted to run than there are CPUs.
    pub fn crowded(&mut self, runnable: u32, cpus: usize) -> bool {
        self.runnable_x16 = self.runnable_x16 * 15 / 16 + runnable;
        let crowded = self.runnable_x16 > 16 * cpus as u32 + 8;
        if crowded {
            self.calm_ticks = 0;
        }
        crowded
    }

    /// Ticks since faults last had to wait.
    pub fn calm_ticks(&self) -> u64 {
        self.calm_ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread that faults every 30 µs is looked for every 64 faults, and after a gap of more
    /// than 90 µs at once; one slow as that from then on is not looked for each time.
    #[test]
    fn a_thread_is_looked_for_when_its_faults_come_late_for_it() {
        let mut pace = Pace::default();
        assert!(pace.is_due(0, 1), "the first fault");
        let due = |pace: &mut Pace, gap_us: u64, faults: u64| {
            (1..=faults).filter(|_| pace.is_due(gap_us * 1000, 1)).count()
        };
        due(&mut pace, 30, 10 * FAULTS_PER_LOOK);
        assert_eq!(due(&mut pace, 30, 10 * FAULTS_PER_LOOK), 10);
        while !pace.is_due(30_000, 1) {}
        assert_eq!(due(&mut pace, 30, LEAST_FAULTS_PER_LOOK), 0);
        assert!(!Pace { ..pace }.is_due(85_000, 1));
        assert!(pace.is_due(95_000, 1));
        assert!(due(&mut pace, 95, 20 * FAULTS_PER_LOOK) <= 22, "it is slow for good");
    }

    #[test]
    fn one_thread_has_one_handler_wherever_it_goes_and_two_have_two() {
        let mut sightings = Sightings::default();
        for cpu in [0, 1, 1, 0, 1] {
            assert_eq!(sightings.note(7, cpu), 1 << cpu);
        }
        // Each of two handlers looks at its own thread, as often as the other.
        assert_eq!(sightings.note(8, 0), 0b11);
        for _ in 0..4 {
            assert_eq!(sightings.note(7, 1), 0b11);
            assert_eq!(sightings.note(8, 0), 0b11);
        }
        // The first thread has stopped faulting: its handler is removed.
        let masks: Vec<u64> = (0..LOOKS_REMEMBERED).map(|_| sightings.note(8, 0)).collect();
        assert_eq!(masks.last(), Some(&0b01), "{masks:?}");
    }
}
