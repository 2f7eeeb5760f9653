//! A kernel of our own: address spaces, userfaultfd, calls, as far as the pager and its program see
//! them.
//!
//! What Linux does under its locks happens at once here; where it lets others go on, so do we
//! ([`scheduler::point`]). `tests/real.rs` compares it with the real one.

mod access;
mod calls;
mod events;
mod fork;
mod memory;
mod moves;
mod uffd;

pub use access::Signal;
pub use calls::{ASIDE, BROKEN_FILE, FILE, REFUSED_FILE};
pub use memory::{Mapping, Mm, Pte, Rights};
pub use uffd::{Fill, Raw};

use crate::canary::Canary;
use crate::scheduler::{self, Channel};
use memory::Frame;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uffd::Uffd;

pub const PAGE: u64 = casemate_core::PAGE_BYTES as u64;

/// Names what a thread waits for.
#[derive(Debug, Clone, Copy)]
pub enum Wait {
    /// A fault of this number is served.
    Fault(u64),
    /// An event of this number is read.
    Event(u64),
    /// The lock of an address space.
    Mm(u32),
    /// Any userfaultfd has a message.
    Epoll,
    /// A page has another frame.
    Migration,
    /// A request for an agent.
    Request(i32),
    /// Its reply, or a message of its program's userfaultfd.
    Beside(usize),
    /// A call is announced.
    Listener,
    /// An announced call is answered.
    Answer(i32),
    /// Something is rung.
    Bell(u64),
    /// A task of the simulation itself has ended.
    Over,
}

impl From<Wait> for Channel {
    fn from(wait: Wait) -> Channel {
        let (kind, number) = match wait {
            Wait::Fault(n) => (1, n),
            Wait::Event(n) => (2, n),
            Wait::Mm(n) => (3, n.into()),
            Wait::Epoll => (4, 0),
            Wait::Migration => (5, 0),
            Wait::Request(n) => (6, n as u64),
            Wait::Beside(n) => (7, n as u64),
            Wait::Listener => (8, 0),
            Wait::Answer(n) => (9, n as u64),
            Wait::Bell(n) => (10, n),
            Wait::Over => (11, 0),
        };
        kind << 56 | number
    }
}

/// A thread of the program, or an agent.
#[derive(Debug, Clone)]
pub struct Task {
    pub pid: i32,
    pub mm: u32,
    /// The call that it is in.
    pub call: Option<i64>,
    /// An agent of ours.
    pub is_agent: bool,
}

/// What was decided of an announced call.
#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    Result(i64),
    GoOn,
}

/// How the kernel behaves, drawn for each run.
#[derive(Debug, Clone, Default)]
pub struct Nature {
    /// Pages that `UFFDIO_MOVE` takes together.
    pub batch: u64,
    /// One in so many batches is begun anew though some of its pages are moved; 0: none.
    pub uncounted: u64,
    /// One page in so many is pinned when it is to be moved; 0: none.
    pub pinned: u64,
    /// Calls of armed programs are announced.
    pub announces: bool,
}

pub struct State {
    pub(crate) frames: Vec<Frame>,
    pub(crate) free: Vec<usize>,
    pub mms: BTreeMap<u32, Mm>,
    pub(crate) uffds: Vec<Uffd>,
    pub tasks: BTreeMap<i32, Task>,
    pub nature: Nature,
    pub announced: VecDeque<(u64, i32, i64, [u64; 6])>,
    pub verdicts: BTreeMap<u64, Verdict>,
    next_number: u64,
    next_pid: i32,
    next_mm: u32,
    /// Pages of plaintext in the program, and the most there ever were.
    pub resident: u64,
    pub resident_peak: u64,
}

/// One kernel; its state is locked for what happens at once, never across a switch.
pub struct Kernel {
    state: Mutex<State>,
    pub canary: Option<Canary>,
}

impl Kernel {
    pub fn new(nature: Nature, canary: Option<Canary>) -> Self {
        let state = State {
            frames: Vec::new(),
            free: Vec::new(),
            mms: BTreeMap::new(),
            uffds: Vec::new(),
            tasks: BTreeMap::new(),
            nature,
            announced: VecDeque::new(),
            verdicts: BTreeMap::new(),
            next_number: 1,
            next_pid: 1000,
            next_mm: 1,
            resident: 0,
            resident_peak: 0,
        };
        Kernel { state: Mutex::new(state), canary }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to read an address space, as a fill or a move does.
    pub(crate) fn begin_reading(&self, mm: u32) {
        loop {
            {
                let mut state = self.lock();
                let mm = state.mm(mm);
                if mm.writers == 0 {
                    mm.readers += 1;
                    return;
                }
            }
            scheduler::sleep(Wait::Mm(mm).into(), None);
        }
    }

    pub(crate) fn end_reading(&self, mm: u32) {
        self.lock().mm(mm).readers -= 1;
        scheduler::wake(Wait::Mm(mm).into());
    }

    /// Changes an address space, at once, when no thread reads it.
    pub(crate) fn write<T>(&self, mm: u32, change: impl FnOnce(&mut State) -> T) -> T {
        self.lock().mm(mm).writers += 1;
        loop {
            {
                let mut state = self.lock();
                if state.mm(mm).readers == 0 {
                    state.mm(mm).writers -= 1;
                    let result = change(&mut state);
                    drop(state);
                    scheduler::wake(Wait::Mm(mm).into());
                    return result;
                }
            }
            scheduler::sleep(Wait::Mm(mm).into(), None);
        }
    }
}

impl State {
    /// An address space; those that have ended are kept, empty.
    pub fn mm(&mut self, mm: u32) -> &mut Mm {
        self.mms.get_mut(&mm).expect("an address space")
    }

    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// An address space with nothing in it.
    pub fn new_mm(&mut self) -> u32 {
        self.next_mm += 1;
        self.mms.insert(self.next_mm, Mm::default());
        self.next_mm
    }

    /// A thread in `mm`: of process `pid`, or the first of a new one.
    pub fn new_task(&mut self, mm: u32, pid: Option<i32>, is_agent: bool) -> i32 {
        self.next_pid += 1;
        let tid = self.next_pid;
        self.tasks.insert(tid, Task { pid: pid.unwrap_or(tid), mm, call: None, is_agent });
        self.mm(mm).users += 1;
        tid
    }

    /// A thread ends; with the last one its address space.
    pub fn exit(&mut self, tid: i32) {
        let Some(task) = self.tasks.remove(&tid) else { return };
        self.mm(task.mm).users -= 1;
        if self.mm(task.mm).users == 0 {
            self.unmap(task.mm, &(0..1 << 50));
        }
    }

    pub fn threads_of(&self, pid: i32) -> Vec<i32> {
        self.tasks.iter().filter(|(_, task)| task.pid == pid).map(|(tid, _)| *tid).collect()
    }
}
