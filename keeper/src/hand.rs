//! The keeper's hand inside a protected program: an *agent*, a process that shares the program's
//! memory and makes there the calls that only the program itself may make.
//!
//! [`Injector`] puts an agent into a running process by a short ptrace; [`Hand`] is what the pager
//! then works with. In the program remain only one small region, one mailbox and the stagings in
//! its address space ([`Hand::owned_ranges`]), which its children do not inherit: no descriptor, no
//! thread, no child, no signal state.
//!
//! The agent becomes a child of the keeper (of a nearer subreaper, if the program has one above
//! it), so a thread that waits for any child there sees it end. While a thread is being injected,
//! such waits may also report its stops, which must be ignored.
mod avenger;
mod calls;
mod error;
mod filter;
mod hold;
mod image;
mod injection;
mod left;
mod limits;
mod mailbox;
mod meeting;
mod others;
mod place;
mod process;
mod release;
mod rest;
mod seize;
mod settle;
mod silence;
mod stagings;
mod standstill;
mod strict;
mod supervisor;
mod sys;
mod taken;
mod tracee;
mod undisturbed;

pub use casemate_agent::{Action, HELD_PAGES, OPS, Op, SLOTS, STAGING_PAGES, StagingKind};
pub use error::{HandError, InjectError};
pub use filter::{Early, is_announced, opens_for_devices, take_listener};
pub use hold::Hold;
pub use injection::{Announcements, Found, Injection, Injector, LostAgent, Progress};
pub use release::follow_transfers;
pub use silence::Stopper;
pub use standstill::{Standstill, Still};
pub use strict::enter_strict_mode;
pub use taken::Taken;
pub use undisturbed::Undisturbed;

use crate::sys::sched;
use crate::sys::uffd::feature;
use casemate_agent::{Limits, MAILBOX_BYTES, PAGE_BYTES, STAGINGS, validate};
use meeting::{Parts, end_agent};
use silence::Silence;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use zeroize::Zeroize;

/// Whether agents' code, stacks, mailboxes and stagings are put at such an address. A program may
/// have memory of its own there.
#[must_use]
pub fn is_place_of_agents(address: u64) -> bool {
    image::Region::PLACES.contains(&address)
}

/// How long the keeper waits for a reply before it calls `idle`.
const IDLE: Duration = Duration::from_millis(1);

/// The result of one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpResult {
    /// As the [`Action`] says; minus an error number if it failed.
    pub result: i64,
    /// The error number that ended the op, or 0. Set beside a positive `result` only by a `MoveOut`
    /// that moved fewer bytes than it was told to.
    pub error: i32,
}

impl OpResult {
    fn of(op: &Op, asked: &Op) -> OpResult {
        let is_move =
            asked.kind == Op::from(Action::MoveOut { src: 0, len: 0, staging: 0, index: 0 }).kind;
        let error = if op.result < 0 {
            i32::try_from(-op.result).unwrap_or(libc::EINVAL)
        } else if is_move && op.result as u64 != asked.len {
            op.arg as i32
        } else {
            0
        };
        OpResult { result: op.result, error }
    }

    /// The result as a `Result`: partial moves are successes.
    ///
    /// # Errors
    /// The op's error number.
    pub fn ok(self) -> io::Result<u64> {
        u64::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(self.error))
    }
}

/// An agent in a program's address space. Dropping it kills the agent and releases the address
/// space that it held.
pub struct Hand {
    parts: Parts,
    program_uffd: Option<OwnedFd>,
    staging_uffd: OwnedFd,
    /// Where pages come out that an [`Action::Replace`] holds, while there are such.
    held: Option<File>,
    stagings: [Option<Range<u64>>; StagingKind::ALL.len()],
    results: Vec<OpResult>,
    cpu: i32,
    /// Stagings may have pages in them, and are to be emptied before the next use.
    soiled: bool,
    /// Data slots, one bit each, that the agent filled and that have not been wiped since.
    filled: u128,
}

const _: () = assert!(SLOTS <= u128::BITS as u64);

impl std::fmt::Debug for Hand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hand")
            .field("agent", &self.parts.agent)
            .field("region", &self.parts.region)
            .finish_non_exhaustive()
    }
}

impl Hand {
    fn new(parts: Parts) -> Result<Hand, InjectError> {
        let header = parts.mailbox.header();
        let take = |fd: i32| sys::pidfd_getfd(parts.pidfd.as_fd(), fd);
        let uffds = take(header.program_uffd.load(SeqCst))
            .and_then(|program| Ok((program, take(header.staging_uffd.load(SeqCst))?)));
        let (program, staging) = match uffds {
            Ok(pair) => pair,
            Err(error) => {
                end_agent(&parts);
                return Err(InjectError::Keeper(error));
            }
        };
        let hand = Hand {
            parts,
            program_uffd: Some(program),
            staging_uffd: staging,
            held: None,
            stagings: Default::default(),
            results: Vec::with_capacity(OPS),
            cpu: -1,
            soiled: false,
            filled: 0,
        };
        // A whole batch and the faulting thread wait for the agent, so it takes precedence on a
        // busy machine.
        sched::hurry(hand.parts.agent);
        sys::uffd_api(hand.staging_uffd.as_fd(), feature::MOVE)?;
        Ok(hand)
    }

    /// The userfaultfd for the program's memory, before its `UFFDIO_API`. The agent keeps a
    /// descriptor of it as long as it lives. None if taken already.
    pub fn take_program_uffd(&mut self) -> Option<OwnedFd> {
        self.program_uffd.take()
    }

    /// The agent's process number.
    #[must_use]
    pub fn agent_pid(&self) -> i32 {
        self.parts.agent
    }

    /// The agent's pidfd; readable once it has ended.
    #[must_use]
    pub fn agent_pidfd(&self) -> BorrowedFd<'_> {
        self.parts.pidfd.as_fd()
    }

    /// Whether the agent has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        sys::pidfd_ended(self.parts.pidfd.as_fd(), Duration::ZERO)
    }

    /// Why the agent was ended by its supervisor, if it was.
    #[must_use]
    pub fn supervisor_found(&self) -> Option<&str> {
        self.parts.supervisor.as_ref()?.found()
    }

    /// The agent's ranges in the program's address space. Must never be registered with the
    /// program's userfaultfd.
    #[must_use]
    pub fn owned_ranges(&self) -> Vec<Range<u64>> {
        let mailbox = self.parts.mailbox.header().address.load(SeqCst);
        let mut ranges = vec![self.parts.region.range(), mailbox..mailbox + MAILBOX_BYTES as u64];
        ranges.extend(self.stagings.iter().flatten().cloned());
        ranges
    }

    fn run_one(&mut self, action: Action, idle: &mut dyn FnMut()) -> io::Result<u64> {
        match self.run(&[action.into()], idle) {
            Ok(results) => results[0].ok(),
            Err(HandError::Gone) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Has the agent carry out `ops` in order and waits. While it works longer than a millisecond
    /// `idle` is called again and again: serve there what the agent itself may be waiting for
    /// (events of the program's userfaultfd).
    ///
    /// # Errors
    /// [`HandError::Gone`] if the agent died; some of the ops may have been carried out.
    pub fn run(&mut self, ops: &[Op], idle: &mut dyn FnMut()) -> Result<&[OpResult], HandError> {
        self.run_watched(ops, IDLE, idle)
    }

    /// [`Hand::run`] for ops that always need the caller: `idle` is called whenever the agent has
    /// worked for `patience`.
    ///
    /// # Errors
    /// As [`Hand::run`].
    pub fn run_watched(
        &mut self,
        ops: &[Op],
        patience: Duration,
        idle: &mut dyn FnMut(),
    ) -> Result<&[OpResult], HandError> {
        let number = self.post(ops)?;
        let mut silence = Silence::begun();
        while !self.parts.mailbox.await_reply(number, patience) {
            silence.judge(&self.parts)?;
            idle();
        }
        Ok(self.take_results(ops))
    }

    /// [`Hand::run`] for calls that raise events of the program's userfaultfd `beside`, which the
    /// caller must read before they can end: `idle` is called whenever there is a message.
    ///
    /// # Errors
    /// As [`Hand::run`].
    pub fn run_beside(
        &mut self,
        ops: &[Op],
        beside: BorrowedFd<'_>,
        idle: &mut dyn FnMut(),
    ) -> Result<&[OpResult], HandError> {
        let number = self.post(ops)?;
        let bell = self.parts.bell.as_fd();
        let mut silence = Silence::begun();
        while !self.parts.mailbox.await_reply_beside(number, bell, beside, IDLE) {
            silence.judge(&self.parts)?;
            idle();
        }
        Ok(self.take_results(ops))
    }

    /// Posts a request; returns its number.
    fn post(&mut self, ops: &[Op]) -> Result<u32, HandError> {
        if ops.len() > OPS {
            return Err(HandError::TooManyOps(ops.len()));
        }
        self.follow();
        self.wipe_left_over();
        self.filled = ops.iter().fold(0, |filled, op| filled | slots_of(op));
        Ok(self.parts.mailbox.post(ops))
    }

    fn take_results(&mut self, ops: &[Op]) -> &[OpResult] {
        let mailbox = &self.parts.mailbox;
        self.results.clear();
        let results = ops.iter().enumerate().map(|(i, op)| OpResult::of(&mailbox.op(i), op));
        self.results.extend(results);
        &self.results
    }

    /// Keeps the agent on the caller's CPU: a wake-up across CPUs costs many times the work.
    fn follow(&mut self) {
        let cpu = sys::current_cpu();
        if cpu != self.cpu {
            sys::bind_to_cpu(self.parts.agent, cpu);
            if let Some(supervisor) = &self.parts.supervisor {
                supervisor.bind_to_cpu(cpu);
            }
            self.cpu = cpu;
        }
    }

    /// Prepares to take what each [`Action::Replace`] holds, until [`Hand::holds_no_more`].
    ///
    /// # Errors
    /// Those of pidfd_getfd(2): too few descriptors are left.
    pub fn begin_to_hold(&mut self) -> io::Result<()> {
        if self.held.is_none() {
            let pipe = self.parts.mailbox.header().pipe.load(SeqCst);
            self.held = Some(sys::pidfd_getfd(self.parts.pidfd.as_fd(), pipe)?.into());
        }
        Ok(())
    }

    /// No pages are held any more.
    pub fn holds_no_more(&mut self) {
        self.held = None;
    }

    /// Takes the next page that an [`Action::Replace`] held.
    ///
    /// # Errors
    /// If there is none.
    pub fn take_held(&mut self, into: &mut [u8; casemate_core::PAGE_BYTES]) -> io::Result<()> {
        let Some(held) = &mut self.held else { return Err(io::ErrorKind::NotFound.into()) };
        held.read_exact(into)
    }

    /// Lets the pages go that an [`Action::Replace`] held which has failed.
    pub fn drop_held(&mut self) {
        let mut page = [0; casemate_core::PAGE_BYTES];
        while self.take_held(&mut page).is_ok() {}
        page.zeroize();
    }

    /// Takes the contents of a data slot and leaves zeros there. The memory is shared with the
    /// program: use only the copy.
    pub fn copy_data(&mut self, slot: usize, into: &mut [u8; casemate_core::PAGE_BYTES]) {
        self.parts.mailbox.copy_slot(slot, into);
        self.parts.mailbox.wipe_slot(slot);
        self.filled &= !(1 << slot);
    }

    /// Wipes the slots that were not taken: pages whose ciphertext was current.
    fn wipe_left_over(&mut self) {
        while self.filled != 0 {
            self.parts.mailbox.wipe_slot(self.filled.trailing_zeros() as usize);
            self.filled &= self.filled - 1;
        }
    }

    /// Where a data slot lies, as long as this hand lives; it holds what an op put there until it
    /// is copied or the next request is made. The program could write to it at any time.
    #[must_use]
    pub fn data(&self, slot: usize) -> *const [u8; casemate_core::PAGE_BYTES] {
        self.parts.mailbox.slot(slot)
    }

    /// Ends the agent. The program's userfaultfd stays open as long as the keeper holds it.
    pub fn kill(self) {}
}

impl Drop for Hand {
    fn drop(&mut self) {
        end_agent(&self.parts);
        // The program may have this memory mapped for longer.
        self.wipe_left_over();
    }
}

/// The data slots that an op fills, one bit each, if the agent obeys it.
fn slots_of(op: &Op) -> u128 {
    let limits = Limits { stagings: [STAGING_PAGES; STAGINGS] };
    let (first, count) = match validate(op, &limits) {
        Ok(Action::CopyOut { slot, pages, .. }) => (slot, pages),
        Ok(Action::TakeAside { slot, len, .. }) => (slot, len / PAGE_BYTES),
        _ => return 0,
    };
    (first..first + count).fold(0, |slots, slot| slots | 1 << slot)
}
