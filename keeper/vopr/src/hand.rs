//! The pager's `crate::hand` here: a hand as `keeper/src/hand.rs` has it, whose agent is the
//! shipped one (`agent/blob/serve.rs`) in a thread of the simulation.

use crate::calls;
use crate::canary::Canary;
use crate::kernel::{PAGE, Wait};
use crate::scheduler;
use crate::serve::serve;
use crate::start::{Mailbox, Post};
use crate::sys::uffd::Beside;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use casemate_agent::WAITS_ON_BELL;
pub use casemate_agent::{Action, HELD_PAGES, OPS, Op, STAGING_PAGES, StagingKind};

/// Steps for which the keeper waits before it looks after other things.
const IDLE: u64 = 30;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HandError {
    #[error("the agent is gone")]
    Gone,
    #[error("{0} ops are more than one request holds")]
    TooManyOps(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpResult {
    pub result: i64,
    pub error: i32,
}

impl OpResult {
    fn of(op: &Op, asked: &Op) -> OpResult {
        let is_move =
            asked.kind == Op::from(Action::MoveOut { src: 0, len: 0, staging: 0, index: 0 }).kind;
        let error = if op.result < 0 {
            -op.result as i32
        } else if is_move && op.result as u64 != asked.len {
            op.arg as i32
        } else {
            0
        };
        OpResult { result: op.result, error }
    }
}

/// An agent in a simulated address space.
#[derive(Debug)]
pub struct Hand {
    mailbox: Arc<Mailbox>,
    agent: i32,
    uffd: usize,
    staging_uffd: usize,
    stagings: [Option<Range<u64>>; StagingKind::ALL.len()],
    results: Vec<OpResult>,
    soiled: bool,
}

impl Hand {
    /// Puts an agent into an address space; `uffd` is its userfaultfd.
    pub fn new(mm: u32, uffd: usize) -> Hand {
        let kernel = scheduler::kernel();
        let (agent, staging_uffd) = {
            let mut state = kernel.lock();
            (state.new_task(mm, None, true), state.new_uffd(mm, false))
        };
        let mailbox = Arc::new(Mailbox::new());
        let post = Post {
            mailbox: mailbox.address(),
            program_uffd: uffd as i32,
            staging_uffd: staging_uffd as i32,
            keeper: 0,
            bell: 0,
            pipe: 0,
            program: 0,
        };
        let kept = Arc::clone(&mailbox);
        scheduler::spawn(&format!("agent-{agent}"), move || {
            // The mailbox lives as long as this thread.
            let _kept = kept;
            calls::become_agent(agent, uffd);
            serve(&post)
        });
        let (stagings, results) = (Default::default(), Vec::new());
        Hand { mailbox, agent, uffd, staging_uffd, stagings, results, soiled: false }
    }

    pub fn agent_pid(&self) -> i32 {
        self.agent
    }

    pub fn owned_ranges(&self) -> Vec<Range<u64>> {
        self.stagings.iter().flatten().cloned().collect()
    }

    /// No agent here is supervised.
    pub fn supervisor_found(&self) -> Option<&str> {
        None
    }

    pub fn has_staging(&self, kind: StagingKind) -> bool {
        self.stagings[kind.id() as usize].is_some()
    }

    pub fn staging_page(&self, kind: StagingKind, index: usize) -> Option<u64> {
        let range = self.stagings[kind.id() as usize].as_ref()?;
        Some(range.start + index as u64 * PAGE)
    }

    pub fn make_staging(
        &mut self,
        kind: StagingKind,
        register: &mut dyn FnMut(u64, u64) -> io::Result<()>,
        idle: &mut dyn FnMut(),
    ) -> io::Result<()> {
        if self.has_staging(kind) {
            return Ok(());
        }
        // No more mappings, or no more locked memory, for the time being.
        if scheduler::random(8) > 0 {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let make = Action::MakeStaging { staging: kind.id(), pages: STAGING_PAGES, kind };
        let results = self.run(&[make.into()], idle);
        let start = results.map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?[0].result;
        let start = u64::try_from(start).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let bytes = STAGING_PAGES * PAGE;
        register(start, bytes)?;
        let registered = scheduler::kernel().register(self.staging_uffd, start + bytes, bytes);
        registered.map_err(io::Error::from_raw_os_error)?;
        self.stagings[kind.id() as usize] = Some(start..start + 2 * bytes);
        Ok(())
    }

    pub fn soil(&mut self) {
        self.soiled = true;
    }

    pub fn clean_stagings(&mut self) -> Result<(), HandError> {
        if !std::mem::take(&mut self.soiled) {
            return Ok(());
        }
        let kinds = StagingKind::ALL.into_iter().filter(|kind| self.has_staging(*kind));
        let drop_all = |kind: StagingKind| Action::DropStaging {
            staging: kind.id(),
            index: 0,
            pages: STAGING_PAGES,
            all: true,
        };
        let ops: Vec<Op> = kinds.map(|kind| drop_all(kind).into()).collect();
        self.run(&ops, &mut || {}).map(drop)
    }

    /// Whether the agent was killed.
    fn has_ended(&self) -> bool {
        !scheduler::kernel().lock().tasks.contains_key(&self.agent)
    }

    pub fn run(&mut self, ops: &[Op], idle: &mut dyn FnMut()) -> Result<&[OpResult], HandError> {
        if ops.len() > OPS {
            return Err(HandError::TooManyOps(ops.len()));
        }
        scheduler::point();
        let header = self.mailbox.header();
        for (i, op) in ops.iter().enumerate() {
            self.mailbox.put_op(i, with_canary(*op));
        }
        header.ops.store(ops.len() as u32, SeqCst);
        let number = header.request.fetch_add(1, SeqCst) + 1;
        scheduler::wake(Wait::Request(self.agent).into());
        header.keeper_waits.store(WAITS_ON_BELL, SeqCst);
        while header.reply.load(SeqCst) != number {
            if self.has_ended() {
                return Err(HandError::Gone);
            }
            scheduler::sleep(Wait::Beside(self.uffd).into(), Some(IDLE));
            if header.reply.load(SeqCst) != number {
                idle();
            }
        }
        let results = ops.iter().enumerate().map(|(i, op)| OpResult::of(&self.mailbox.op(i), op));
        self.results = results.collect();
        Ok(&self.results)
    }

    pub fn run_beside(
        &mut self,
        ops: &[Op],
        _beside: Beside,
        idle: &mut dyn FnMut(),
    ) -> Result<&[OpResult], HandError> {
        self.run(ops, idle)
    }

    /// No mapping of a file is replaced here.
    pub fn begin_to_hold(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn holds_no_more(&mut self) {}

    pub fn take_held(&mut self, _into: &mut [u8; 4096]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn drop_held(&mut self) {}

    pub fn copy_data(&mut self, slot: usize, into: &mut [u8; 4096]) {
        *into = self.mailbox.take_slot(slot);
    }
}

/// The agent as it was: it empties a staging of all that is in it.
fn with_canary(op: Op) -> Op {
    let drop_counted = Action::DropStaging { staging: 0, index: 0, pages: 1, all: false };
    let is_put_back = Canary::BelievesMoves.is_put_back() || Canary::DropsUncounted.is_put_back();
    match is_put_back && op.kind == Op::from(drop_counted).kind {
        true => Op { arg: 1, ..op },
        false => op,
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        scheduler::kernel().lock().exit(self.agent);
        scheduler::wake(Wait::Request(self.agent).into());
    }
}

/// None of the simulated calls brings such a descriptor.
pub fn opens_for_devices(_number: i64) -> bool {
    false
}

/// Every call is announced.
pub fn is_announced(_number: i64) -> bool {
    true
}

/// No program asks for the strict mode here.
pub fn enter_strict_mode(_pid: i32, _tid: i32, go_on: impl FnOnce()) -> bool {
    go_on();
    true
}

/// No signal comes here.
pub struct Undisturbed;

impl Undisturbed {
    pub fn begin(_pid: i32, _tid: i32) -> Option<Undisturbed> {
        None
    }

    pub fn is_of(&self, _tid: i32) -> bool {
        false
    }

    pub fn is_over(&mut self) -> bool {
        true
    }
}

/// Holds no thread: whether one has left its call is known without that.
pub struct Hold;

impl Hold {
    pub fn running_thread(_pid: i32, _tid: i32) -> Hold {
        Hold
    }

    pub fn is_empty(&self) -> bool {
        true
    }

    pub fn let_go(&mut self) -> bool {
        true
    }
}
