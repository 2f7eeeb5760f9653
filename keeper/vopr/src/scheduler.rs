//! One thread runs at a time. At every lock and every simulated call the next one is drawn from the
//! seed, so that a run depends on nothing else.
//!
//! Threads are those of the system, since the pager has thread-local buffers; the one that has the
//! turn runs.

use crate::kernel::Kernel;
use crate::random::Random;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::Thread;

/// What a thread sleeps on: any number that its waker knows too.
pub type Channel = u64;

/// Steps without any progress of the program after which the run counts as hung.
const PATIENCE: u64 = 400_000;

/// With which a thread is unwound: the run is over, or it has ended itself.
struct Unwound;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Asleep { on: Channel, until: Option<u64> },
    Done,
}

struct Task {
    name: String,
    thread: Option<Thread>,
    state: State,
    /// How often it is drawn, beside the others.
    weight: u64,
    timed_out: bool,
}

struct Inner {
    tasks: Vec<Task>,
    random: Random,
    step: u64,
    switches: u64,
    /// The step of the program's last progress.
    progress: u64,
    ending: bool,
    failure: Option<String>,
    /// Of 256 switch points, those at which the running thread goes on without a draw.
    stay: u64,
    trace: bool,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Finished {
    pub steps: u64,
    pub switches: u64,
    pub failure: Option<String>,
}

pub struct Scheduler {
    inner: Mutex<Inner>,
    turn: AtomicUsize,
    kernel: Arc<Kernel>,
}

thread_local! {
    static CURRENT: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

const NO_THREAD: usize = usize::MAX;

/// Runs `main`, and all that it spawns, until [`end`] is called or something fails.
pub fn run(
    seed: u64,
    trace: bool,
    kernel: Arc<Kernel>,
    main: impl FnOnce() + Send + 'static,
) -> Finished {
    let mut random = Random::new(seed ^ 0x5eed);
    let stay = [0, 64, 160, 224, 248][random.below(5) as usize];
    let scheduler = Arc::new(Scheduler {
        inner: Mutex::new(Inner {
            tasks: Vec::new(),
            random,
            step: 0,
            switches: 0,
            progress: 0,
            ending: false,
            failure: None,
            stay,
            trace,
            threads: Vec::new(),
        }),
        turn: AtomicUsize::new(NO_THREAD),
        kernel,
    });
    scheduler.add("main", main);
    scheduler.turn.store(0, SeqCst);
    let first = scheduler.lock().tasks[0].thread.clone();
    first.expect("just added").unpark();
    loop {
        let Some(thread) = scheduler.lock().threads.pop() else { break };
        // What it panicked with was noted.
        let _ = thread.join();
    }
    let inner = scheduler.lock();
    Finished { steps: inner.step, switches: inner.switches, failure: inner.failure.clone() }
}

fn current() -> (Arc<Scheduler>, usize) {
    CURRENT.with_borrow(|current| current.clone().expect("a thread of a simulated run"))
}

/// The kernel of this run.
pub fn kernel() -> Arc<Kernel> {
    current().0.kernel.clone()
}

/// A place at which another thread may take over.
pub fn point() {
    if !std::thread::panicking() {
        let (scheduler, me) = current();
        scheduler.pass(me, false);
    }
}

/// [`point`], but another thread goes on if one can.
pub fn give_way() {
    if !std::thread::panicking() {
        let (scheduler, me) = current();
        scheduler.pass(me, true);
    }
}

/// Sleeps until another thread wakes `on`, or for `steps`. False if that time passed first.
pub fn sleep(on: Channel, steps: Option<u64>) -> bool {
    let (scheduler, me) = current();
    let mut inner = scheduler.lock();
    let until = steps.map(|steps| inner.step + steps);
    inner.tasks[me].state = State::Asleep { on, until };
    inner.tasks[me].timed_out = false;
    scheduler.hand_over(inner, me, false);
    !scheduler.lock().tasks[me].timed_out
}

/// Wakes the threads that sleep on a channel.
pub fn wake(on: Channel) {
    let (scheduler, _) = current();
    for task in &mut scheduler.lock().tasks {
        if matches!(task.state, State::Asleep { on: channel, .. } if channel == on) {
            task.state = State::Ready;
        }
    }
}

/// Steps since the run began.
pub fn now() -> u64 {
    current().0.lock().step
}

/// A number below `end` that depends on the seed.
pub fn random(end: u64) -> u64 {
    current().0.lock().random.below(end)
}

/// Starts a thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    current().0.add(name, work);
}

/// The program got on: it is not hung.
pub fn progress() {
    let (scheduler, _) = current();
    let mut inner = scheduler.lock();
    inner.progress = inner.step;
}

/// Ends this thread.
pub fn end_thread() -> ! {
    resume_unwind(Box::new(Unwound))
}

/// Ends the run; with a reason it has failed.
pub fn end(failure: Option<String>) {
    let (scheduler, _) = current();
    scheduler.lock().end(failure);
}

/// Notes something, if the run is traced.
pub fn trace(what: impl FnOnce() -> String) {
    let Some((scheduler, me)) = CURRENT.with_borrow(Clone::clone) else { return };
    let inner = scheduler.lock();
    if inner.trace {
        eprintln!("{:>8} {:<10} {}", inner.step, inner.tasks[me].name, what());
    }
}

impl Inner {
    fn end(&mut self, failure: Option<String>) {
        if !self.ending {
            self.failure = failure;
        }
        self.ending = true;
    }

    /// The task that goes on. None if none ever can.
    fn draw(&mut self, me: usize, others_first: bool) -> Option<usize> {
        if self.ending {
            return self.tasks.iter().position(|task| task.state != State::Done);
        }
        let step = self.step;
        for task in &mut self.tasks {
            if matches!(task.state, State::Asleep { until: Some(until), .. } if until <= step) {
                task.state = State::Ready;
                task.timed_out = true;
            }
        }
        let is_ready = |task: &Task| task.state == State::Ready;
        if is_ready(&self.tasks[me]) && !others_first && self.random.below(256) < self.stay {
            return Some(me);
        }
        let leave_out = if others_first { me } else { NO_THREAD };
        let weigh = |(i, task): (usize, &Task)| match is_ready(task) && i != leave_out {
            true => task.weight,
            false => 0,
        };
        let sum: u64 = self.tasks.iter().enumerate().map(weigh).sum();
        if sum == 0 {
            return self.draw_at_rest(me);
        }
        let mut at = self.random.below(sum);
        for (i, task) in self.tasks.iter().enumerate() {
            let weight = weigh((i, task));
            if at < weight {
                return Some(i);
            }
            at -= weight;
        }
        None
    }

    /// No other task is ready: time passes until one is.
    fn draw_at_rest(&mut self, me: usize) -> Option<usize> {
        if self.tasks[me].state == State::Ready {
            return Some(me);
        }
        let next = self.tasks.iter().enumerate().filter_map(|(i, task)| match task.state {
            State::Asleep { until: Some(until), .. } => Some((until, i)),
            _ => None,
        });
        let (until, i) = next.min()?;
        self.step = self.step.max(until);
        self.tasks[i].state = State::Ready;
        self.tasks[i].timed_out = true;
        Some(i)
    }

    fn who_waits(&self) -> String {
        let lines = self.tasks.iter().filter(|task| task.state != State::Done);
        lines.map(|task| format!("\n  {}: {:x?}", task.name, task.state)).collect()
    }
}

impl Scheduler {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn pass(&self, me: usize, others_first: bool) {
        let inner = self.lock();
        self.hand_over(inner, me, others_first);
    }

    /// Gives the turn to the task that is drawn, and waits for the next turn.
    fn hand_over<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, me: usize, others_first: bool) {
        inner.step += 1;
        if inner.step > inner.progress + PATIENCE && !inner.ending {
            let who = inner.who_waits();
            inner.end(Some(format!("the program does not get on: {who}")));
        }
        let next = inner.draw(me, others_first).or_else(|| {
            let who = inner.who_waits();
            inner.end(Some(format!("a deadlock: {who}")));
            inner.draw(me, others_first)
        });
        let next = next.expect("this thread has not ended");
        if next != me {
            inner.switches += 1;
            self.turn.store(next, SeqCst);
            if let Some(thread) = &inner.tasks[next].thread {
                thread.unpark();
            }
            drop(inner);
            self.await_turn(me);
            inner = self.lock();
        }
        if inner.ending {
            drop(inner);
            resume_unwind(Box::new(Unwound));
        }
    }

    fn await_turn(&self, me: usize) {
        while self.turn.load(SeqCst) != me {
            std::thread::park();
        }
    }

    fn add(self: &Arc<Self>, name: &str, work: impl FnOnce() + Send + 'static) {
        let mut inner = self.lock();
        let me = inner.tasks.len();
        let weight = [1, 1, 3, 10, 40][inner.random.below(5) as usize];
        inner.tasks.push(Task {
            name: name.to_owned(),
            thread: None,
            state: State::Ready,
            weight,
            timed_out: false,
        });
        let scheduler = Arc::clone(self);
        let body = move || {
            CURRENT.set(Some((Arc::clone(&scheduler), me)));
            scheduler.await_turn(me);
            let ended = catch_unwind(AssertUnwindSafe(|| {
                if !scheduler.lock().ending {
                    work();
                }
            }));
            scheduler.leave(me, ended.err());
            CURRENT.set(None);
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread.expect("a thread");
        inner.tasks[me].thread = Some(thread.thread().clone());
        inner.threads.push(thread);
    }

    /// A thread has ended.
    fn leave(&self, me: usize, panic: Option<Box<dyn Any + Send>>) {
        let mut inner = self.lock();
        inner.tasks[me].state = State::Done;
        if let Some(panic) = panic.filter(|panic| !panic.is::<Unwound>()) {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let name = inner.tasks[me].name.clone();
            inner.end(Some(format!("{name} panicked: {}", text.unwrap_or_default())));
        }
        let mut next = inner.draw(me, true);
        if next.is_none() && inner.tasks.iter().any(|task| task.state != State::Done) {
            let who = inner.who_waits();
            inner.end(Some(format!("a deadlock: {who}")));
            next = inner.draw(me, true);
        }
        let Some(next) = next else { return };
        self.turn.store(next, SeqCst);
        if let Some(thread) = &inner.tasks[next].thread {
            thread.unpark();
        }
    }
}
