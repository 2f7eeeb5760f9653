//! Why a program got no agent, and why a request to an agent failed.

use super::image::Region;
use super::{Stopper, limits};
use crate::sys::own_limits::in_words;
use std::io;

/// Why a program got no agent. The program continues as if none had been tried.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The process, or the thread that was to be stopped, ended or called `execve`: try again.
    #[error("the process ended or changed its program before the agent was in place")]
    Gone,
    /// A thread of it executes another program, which takes a while: try again.
    #[error(
        "it executes another program, which takes long, and its threads cannot be stopped meanwhile"
    )]
    Executing,
    /// The caller changed its mind.
    #[error("the injection was cancelled")]
    Cancelled,
    /// Another process traces it already.
    #[error("the process is being traced by process {tracer}; detach that debugger first")]
    Traced {
        /// The tracer's number.
        tracer: i32,
    },
    /// The kernel refused the tracer.
    #[error("the process cannot be attached to: {0}")]
    Attach(#[source] io::Error),
    /// The process is in seccomp's strict mode, which its agent would inherit.
    #[error(
        "the process is in seccomp's strict mode, which only a keeper run as root can set aside"
    )]
    Strict,
    /// The process has its own seccomp filters, which might kill it for the injection's calls.
    #[error(
        "the process has {filters} seccomp filters of its own, which only a keeper run as root can set \
         aside"
    )]
    Filtered {
        /// How many, not counting those that the keeper is under itself.
        filters: u32,
    },
    /// The process, or its future children, live in another pid namespace.
    #[error("the process lives in, or made, another pid namespace")]
    PidNamespace,
    /// The process has a userfaultfd of its own that tells it of changes to its memory.
    #[error(
        "the process reads events of a userfaultfd of its own, and the reader's own faults would wait \
         for what it is told of"
    )]
    OwnEvents,
    /// The thread runs under a policy under which the kernel refuses every new process.
    #[error(
        "the process runs under SCHED_DEADLINE, under which the kernel lets it begin no other process; \
         begin it with `chrt --reset-on-fork`"
    )]
    Deadline,
    /// All addresses from which calls are not announced are taken.
    #[error(
        "the process has mapped all that lies between {:#x} and {:#x}, where its agent has to be",
        Region::PLACES.start,
        Region::PLACES.end
    )]
    NoPlace,
    /// The thread does not run 64-bit code.
    #[error("the process runs 32-bit code")]
    Not64Bit,
    /// A thread was busy in the kernel: the program was resumed, try again later.
    #[error("the program's threads did not all stop")]
    Unsettled,
    /// The kernel would not take back the thread's Syscall User Dispatch, so it stays.
    #[error("its Syscall User Dispatch cannot be set aside and put back: {0}")]
    Dispatched(#[source] io::Error),
    /// Its thread failed where it was to make a call for the keeper, and was killed: it may have
    /// executed what was not its own.
    #[error("its thread received signal {signal} where it was to make a call for the keeper")]
    Disturbed {
        /// Which.
        signal: i32,
    },
    /// Its calls wait for an answer, and the keeper could not take the descriptor by which they are
    /// heard. It was killed.
    #[error("its calls cannot be heard: {}", in_words(.0))]
    Unheard(#[source] io::Error),
    /// No `syscall` instruction was found in the program.
    #[error("the process has no executable memory with a system call instruction in it")]
    NoSyscallInstruction,
    /// A system call made inside the program failed.
    #[error("{call} inside the program failed: {error}")]
    Call {
        /// Which.
        call: &'static str,
        /// How.
        error: io::Error,
    },
    /// A limit of the program is used up, and this keeper may not raise it.
    #[error("{call} inside the program failed ({error}): it has used up {limits}")]
    Limited {
        /// Which call.
        call: &'static str,
        /// How.
        error: io::Error,
        /// Which limit, or limits.
        limits: String,
    },
    /// The agent was started and gave up.
    #[error("the agent ended before it was ready (error number {error})")]
    AgentDied {
        /// A Linux error number, or 0 if unknown.
        error: i32,
    },
    /// The agent was started and does not answer.
    #[error("the agent did not get ready in ten seconds")]
    AgentSilent,
    /// A call on the keeper's side failed.
    #[error("the keeper could not go on with the injection: {}", in_words(.0))]
    Keeper(#[source] io::Error),
}

impl InjectError {
    /// A call inside process `pid` failed.
    pub(crate) fn call(pid: i32, call: &'static str, error: io::Error) -> InjectError {
        match limits::Raised::met_by(pid, &error) {
            Some(limits) => InjectError::Limited { call, error, limits },
            None => InjectError::Call { call, error },
        }
    }
}

impl From<io::Error> for InjectError {
    fn from(error: io::Error) -> Self {
        match (error.raw_os_error(), error.kind()) {
            (Some(libc::ESRCH), _) => InjectError::Gone,
            (None, io::ErrorKind::Unsupported) => InjectError::Not64Bit,
            _ => InjectError::Keeper(error),
        }
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HandError {
    /// The agent ended, usually because the program was killed.
    #[error("the agent is gone")]
    Gone,
    /// The agent does not answer, since it was stopped.
    #[error("an agent (process {agent}) was stopped by {by} and does not answer")]
    Stopped {
        /// Its process number.
        agent: i32,
        /// What keeps it from going on.
        by: Stopper,
    },
    /// The agent works, or sleeps, and does not answer: the program has taken it over.
    #[error("an agent (process {agent}) does not answer: the program may have taken it over")]
    Silent {
        /// Its process number.
        agent: i32,
    },
    /// More ops than fit a mailbox.
    #[error("{0} ops are more than one request holds")]
    TooManyOps(usize),
}
