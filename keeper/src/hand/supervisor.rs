//! An agent is made by a thread of the program and inherits its seccomp filters, which may end a
//! process that makes an agent's calls. While a tracer with CAP_SYS_ADMIN traces a thread its
//! filters can rest, all of them: the program's, and the agent's own, which keeps a program that
//! takes its agent over from what the program itself may not do. So each call of such an agent is
//! judged here before it is made, by the agent's own filter.
use super::avenger::Avenger;
use super::image::Region;
use super::sys;
use super::tracee::{AgentStop, CallStage, Tracee};
use crate::sys::sched;
use casemate_agent::confinement::{self, AgentCall, Instruction};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

/// The watcher's census skips processes of this name, which this thread's children inherit.
const NAME: &str = "casemate-agent";
const STACK_BYTES: usize = 64 * 1024;

/// A thread that judges one agent's calls for as long as the agent lives.
pub(super) struct Supervisor {
    tid: i32,
    found: Arc<OnceLock<String>>,
}

impl Supervisor {
    /// Takes over an agent that has made no call yet, and lets it begin.
    ///
    /// # Errors
    /// If there can be no further thread, or the agent may not be traced so; it has not begun then.
    pub(super) fn begin(program: i32, agent: i32, region: Region) -> io::Result<Supervisor> {
        let found = Arc::new(OnceLock::new());
        let (tell, told): (SyncSender<io::Result<i32>>, Receiver<_>) = sync_channel(1);
        let theirs = Arc::clone(&found);
        let work = move || {
            let begun = sys::block_all_signals()
                .and_then(|()| Ok((Avenger::begin(program)?, Tracee::supervise(agent)?)));
            match begun {
                Ok((_avenger, tracee)) => {
                    let _ = tell.send(Ok(sys::current_thread()));
                    sched::hurry(0);
                    Supervised { tracee, program, region, stage: Stage::NotBegun }.follow(&theirs);
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        };
        thread::Builder::new().name(NAME.to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        let tid = told.recv().map_err(io::Error::other)??;
        Ok(Supervisor { tid, found })
    }

    /// Keeps this thread where its agent is.
    pub(super) fn bind_to_cpu(&self, cpu: i32) {
        sys::bind_to_cpu(self.tid, cpu);
    }

    /// Why the agent was ended, if it was ended here.
    pub(super) fn found(&self) -> Option<&str> {
        self.found.get().map(String::as_str)
    }
}

/// How far an agent has come.
enum Stage {
    /// It was not resumed yet.
    NotBegun,
    /// It still has the program's descriptors, and closes them.
    Entering,
    /// It sets itself up.
    Starting,
    /// It is opening its program's process, by which it may send a signal later.
    Opening,
    /// It has that descriptor, and must give up its rights next.
    Opened { program: i32 },
    /// It is setting its filter, which is in force here from now on.
    Confining([Instruction; confinement::LENGTH]),
    /// It is in its loop.
    Confined([Instruction; confinement::LENGTH]),
}

struct Supervised {
    tracee: Tracee,
    program: i32,
    region: Region,
    stage: Stage,
}

impl Supervised {
    /// Judges the agent's calls until it has ended.
    fn follow(mut self, found: &OnceLock<String>) {
        loop {
            let done = match self.tracee.await_stop() {
                AgentStop::Gone => return,
                AgentStop::Call => self.call(found),
                AgentStop::Signal(signal) => self.tracee.resume_to_call_with(signal),
                AgentStop::Stopped => self.tracee.stay_stopped(),
                AgentStop::Event => self.begin().and_then(|()| self.tracee.resume_to_call()),
            };
            if let Err(error) = done
                && error.raw_os_error() != Some(libc::ESRCH)
            {
                self.end(found, format!("cannot be supervised ({error})"));
            }
        }
    }

    /// Lets the agent make its first call.
    fn begin(&mut self) -> io::Result<()> {
        if matches!(self.stage, Stage::NotBegun) {
            self.tracee.write_memory(self.region.go(), &1_u64.to_le_bytes())?;
            self.stage = Stage::Entering;
        }
        Ok(())
    }

    fn call(&mut self, found: &OnceLock<String>) -> io::Result<()> {
        match self.tracee.call_stage()? {
            CallStage::Entry(call) if self.may_make(&call) => {
                if matches!(self.stage, Stage::Confining(_)) {
                    // The filter is in force already, here; the kernel would let it rest.
                    self.tracee.replace_call()?;
                }
            }
            CallStage::Entry(call) => {
                self.tracee.replace_call()?;
                let number = call.number;
                self.end(
                    found,
                    format!("was about to make a call that agents do not make ({number})"),
                );
            }
            CallStage::Return(result) => self.returned(result)?,
            CallStage::None => {}
        }
        self.tracee.resume_to_call()
    }

    /// Whether the agent may make this call now; updates the stage.
    fn may_make(&mut self, call: &AgentCall) -> bool {
        match &self.stage {
            Stage::Confined(filter) => confinement::allows(filter, call),
            Stage::Entering if confinement::closes_all(call) => {
                self.stage = Stage::Starting;
                true
            }
            Stage::Starting if confinement::is_first_step(call, self.program as u32) => {
                if call.number == confinement::PIDFD_OPEN {
                    self.stage = Stage::Opening;
                }
                true
            }
            Stage::Opened { program } if confinement::confines(call) => {
                self.stage = Stage::Confining(confinement::filter(*program));
                true
            }
            Stage::Opened { .. } => confinement::is_last_step(call),
            _ => false,
        }
    }

    fn returned(&mut self, result: i64) -> io::Result<()> {
        match &self.stage {
            Stage::Opening => {
                self.stage = match i32::try_from(result) {
                    Ok(program) if program >= 0 => Stage::Opened { program },
                    // It reports the error and ends.
                    _ => Stage::Starting,
                };
            }
            Stage::Confining(filter) => {
                self.stage = Stage::Confined(*filter);
                self.tracee.set_result(0)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the agent, and with it the run.
    fn end(&self, found: &OnceLock<String>, what: String) {
        let _ = found.set(format!("the agent of process {} {what}", self.program));
        sys::kill(self.tracee.tid(), libc::SIGKILL);
    }
}
