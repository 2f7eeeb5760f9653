//! What an injection does at each stop of the thread.
use super::super::calls::Call;
use super::super::image::Region;
use super::super::limits::Raised;
use super::super::meeting::Meeting;
use super::super::tracee::{Look, Seccomp, Tracee};
use super::super::{InjectError, filter, place, process, sys};
use super::{Announcements, Injection, Saved, State};
use crate::sys::procfs;
use casemate_core::PAGE_BYTES;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Signals by which the kernel tells a thread that an instruction of its own cannot go on, blocked
/// or not.
const FORCED: [i32; 6] =
    [libc::SIGSYS, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// The flags of a new program: interrupts are on, and the bit is set that always is.
const PLAIN_FLAGS: u64 = 1 << 9 | 1 << 1;

impl Injection {
    /// Handles a failure between two stops. If the thread is still stopped, undoes the changes and
    /// resumes it; if it died, the next look finds that out.
    pub(super) fn recover(&mut self, error: InjectError) {
        self.error.get_or_insert(error);
        if self.saved.is_none() {
            // Nothing was changed yet.
            if self.detach().is_ok() {
                self.state = State::Ended;
            }
        } else if !matches!(self.state, State::Settling) {
            let _ = self.settle();
        }
    }

    /// Takes the next step at a stop of the thread.
    pub(super) fn advance(&mut self, look: Look) -> Result<(), InjectError> {
        match (&self.state, look) {
            (State::Stopping, Look::Signal(signal)) => {
                self.tracee.interrupt()?;
                self.tracee.resume(signal)?;
            }
            (State::Stopping, Look::Event) => self.prepare()?,
            (State::Calling { call, entered: false }, Look::Call) => {
                let call = *call;
                self.tracee.resume_to_call()?;
                self.state = State::Calling { call, entered: true };
            }
            (State::Calling { call, entered: true }, Look::Call) => {
                let call = *call;
                let result = self.tracee.registers()?.rax as i64;
                self.returned(call, result)?;
            }
            (State::Calling { .. }, Look::Event) => self.tracee.resume_to_call()?,
            (State::Calling { .. }, Look::Signal(signal)) => {
                if FORCED.contains(&signal) {
                    // All signals are blocked: an instruction has failed, and no call was made. The
                    // kernel has dropped the program's handler, and it may have executed more.
                    sys::kill(self.pid, libc::SIGKILL);
                    return Err(InjectError::Disturbed { signal });
                }
                let signal = self.receives(signal);
                self.tracee.resume_to_call_with(signal)?;
            }
            (State::Settling, Look::Event) => self.release()?,
            (State::Settling, Look::Signal(signal)) => {
                let signal = self.receives(signal);
                self.tracee.interrupt()?;
                self.tracee.resume(signal)?;
            }
            (_, _) => self.tracee.resume(0)?,
        }
        Ok(())
    }

    /// What of a signal that comes during the injection's calls is delivered at once. All that can
    /// be are blocked. A stop is: the thread goes on under its tracer, and the kernel, which knows
    /// of a SIGCONT that comes at any moment, stops it when it is detached if its process is
    /// stopped still.
    fn receives(&mut self, signal: i32) -> i32 {
        if signal == libc::SIGSTOP {
            return signal;
        }
        self.deferred = Some(signal);
        0
    }

    fn prepare(&mut self) -> Result<(), InjectError> {
        if self.cancelled {
            return Err(InjectError::Cancelled);
        }
        // It is stopped before its descriptors are looked at, which takes as long as all else that
        // comes before: it may grow meanwhile.
        if process::reads_own_events(self.tracee.tid())? {
            return Err(InjectError::OwnEvents);
        }
        let mut registers = self.tracee.registers()?;
        let syscall_at =
            find_syscall(self.tracee.tid()).ok_or(InjectError::NoSyscallInstruction)?;
        if let Some(section) = self.tracee.critical_section() {
            section.abort_if_inside(&mut registers);
        }
        let mask = self.tracee.signal_mask()?;
        self.saved = Some(Saved { registers, mask, syscall_at });
        self.tracee.set_signal_mask(u64::MAX)?;
        self.raised = Some(Raised::of(self.pid));
        self.dispatch = self.tracee.suspend_dispatch().map_err(|error| {
            let is_refused = error.raw_os_error() == Some(libc::EINVAL);
            if is_refused { InjectError::Dispatched(error) } else { error.into() }
        })?;
        self.call(Call::Map)
    }

    /// Sets the thread to make a call and lets it run to the call's entry.
    fn call(&mut self, call: Call) -> Result<(), InjectError> {
        let saved = self.saved.as_ref().ok_or(InjectError::Gone)?;
        let mut regs = saved.registers;
        let is_first = self.inherited.is_none();
        let region =
            self.region.unwrap_or_else(|| place::choose(self.tracee.tid(), self.magic, is_first));
        let number = match call {
            Call::Close => self.listening_at,
            Call::Clone if self.is_supervised() => libc::CLONE_PTRACE,
            Call::Clone => 0,
            _ => self.intermediate,
        };
        let (nr, args) = call.request(region, number);
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = args;
        regs.rax = nr as u64;
        // Marks the thread as in no call; otherwise the kernel would restart the interrupted call
        // with these registers.
        regs.orig_rax = u64::MAX;
        regs.rip = if call == Call::Clone { region.code() } else { saved.syscall_at };
        regs.rbx = region.bootstrap();
        // Not the program's: it may step by itself (TF), or move backwards (DF), and the agent
        // begins with what its maker has.
        regs.eflags = PLAIN_FLAGS;
        self.tracee.set_registers(&regs)?;
        self.tracee.resume_to_call()?;
        self.state = State::Calling { call, entered: false };
        Ok(())
    }

    fn returned(&mut self, call: Call, result: i64) -> Result<(), InjectError> {
        // A stop interrupts a call that waits, as each does that is announced: it has done nothing.
        // (As root the thread's filters are set aside, and none is.)
        let restarts = (-516..=-512).contains(&result);
        let interrupted = result == -i64::from(libc::EINTR);
        if restarts || interrupted && matches!(call, Call::Clone | Call::Reap) {
            return self.call(call);
        }
        match call {
            Call::Filter => return self.filtered(result),
            Call::Close => return self.settle(),
            _ => {}
        }
        // Another thread of the program, waiting for any child, has reaped it first.
        let reaped = call == Call::Reap && result == -i64::from(libc::ECHILD);
        // A kernel that cannot tell leaves the word as it was.
        let is_needed = call != Call::Adopts && !reaped;
        if (-4095..0).contains(&result) && is_needed {
            let error = io::Error::from_raw_os_error(-result as i32);
            let is_refused = error.raw_os_error() == Some(libc::EAGAIN) && call == Call::Clone;
            let error = if is_refused && sys::has_deadline(self.tracee.tid()) {
                InjectError::Deadline
            } else {
                InjectError::call(self.pid, call.name(), error)
            };
            self.error.get_or_insert(error);
            // After the clone an agent may run in the region: it stays mapped.
            return if matches!(call, Call::Map | Call::Reap | Call::Unmap) {
                self.settle()
            } else {
                self.call(Call::Unmap)
            };
        }
        match call {
            Call::Map => {
                let region = Region::at(result as u64);
                self.region = Some(region);
                if region.is_in_place() {
                    self.call(Call::DontFork)
                } else {
                    // Its calls would be announced to those who wait for it.
                    self.error = Some(InjectError::NoPlace);
                    self.call(Call::Unmap)
                }
            }
            Call::DontFork => self.call(Call::DontDump),
            Call::DontDump => self.call(Call::Guard),
            Call::Guard => self.call(Call::Data),
            Call::Data => match self.furnish() {
                // Under filters of its own the program may not ask.
                Ok(()) if self.is_supervised() => self.call(Call::Clone),
                Ok(()) => self.call(Call::Adopts),
                Err(error) => {
                    self.error = Some(error);
                    self.call(Call::Unmap)
                }
            },
            Call::Adopts => self.call(Call::Clone),
            Call::Clone if self.adopts()? => self.meets(result as i32),
            Call::Clone => {
                self.intermediate = result as i32;
                if self.is_supervised() {
                    self.newborn = Some(Tracee::adopt(self.intermediate, self.intermediate));
                }
                self.call(Call::Reap)
            }
            Call::Reap => match self.noted_agent()? {
                Ok(agent) => self.meets(agent),
                Err(error) => {
                    self.error = Some(error);
                    self.call(Call::Unmap)
                }
            },
            Call::Unmap | Call::Filter | Call::Close => self.settle(),
        }
    }

    /// The agent is there.
    fn meets(&mut self, agent: i32) -> Result<(), InjectError> {
        match identify(agent, self.region, self.magic) {
            Ok(pidfd) => self.agent = Some((agent, pidfd)),
            Err(error) => {
                self.error = Some(error);
                return self.settle();
            }
        }
        if self.announces && self.is_strict {
            let why = "a process in seccomp's strict mode takes no filter";
            self.announcements = Announcements::Refused(why.to_owned());
        }
        // After the clone: the agent is not to be under it.
        let announces = self.announces && !self.is_strict;
        if announces { self.call(Call::Filter) } else { self.settle() }
    }

    /// Handles the result of setting the filter. Without the filter the program continues, and its
    /// changes are known by events only.
    fn filtered(&mut self, result: i64) -> Result<(), InjectError> {
        if result >= 0 {
            self.listening_at = result as i32;
            self.known_filters += 1;
            // A first thread that has ended has no descriptors any more.
            let listener = sys::pidfd_open_thread(self.tracee.tid(), self.pid)
                .and_then(|pidfd| sys::pidfd_getfd(pidfd.as_fd(), self.listening_at));
            // Without the listener every announced call fails: the program must not go on.
            match listener {
                Ok(listener) => self.announcements = Announcements::Listener(listener),
                Err(error) => {
                    // What is ending has no descriptors any more.
                    let is_gone = error.raw_os_error() == Some(libc::ESRCH)
                        || error.raw_os_error() == Some(libc::EBADF) && procfs::has_ended(self.pid);
                    sys::kill(self.pid, libc::SIGKILL);
                    self.error = Some(match is_gone {
                        true => InjectError::Gone,
                        false => InjectError::Unheard(error),
                    });
                }
            }
            return self.call(Call::Close);
        }
        let error = io::Error::from_raw_os_error(-result as i32);
        self.announcements = match error.raw_os_error() {
            // A process can have one listener, which its descendants inherit.
            Some(libc::EBUSY) if self.is_heard => Announcements::Inherited,
            Some(libc::EBUSY) => {
                Announcements::Refused("another process listens to its system calls".to_owned())
            }
            Some(libc::ESRCH) => {
                Announcements::Refused("its threads are under different filters".to_owned())
            }
            _ => Announcements::Refused(error.to_string()),
        };
        self.settle()
    }

    /// Whether the agent must be supervised, since the filters that it inherits could kill it.
    fn is_supervised(&self) -> bool {
        self.seccomp == Seccomp::Theirs
    }

    fn furnish(&self) -> Result<(), InjectError> {
        let region = self.region.ok_or(InjectError::Gone)?;
        self.tracee.write_memory(region.code(), &region.code_bytes())?;
        self.tracee.write_memory(
            region.bootstrap(),
            &region.bootstrap_bytes(self.magic, self.is_supervised()),
        )?;
        self.tracee.write_memory(region.filter(), &filter::block(region))?;
        Ok(())
    }

    /// Whether the process adopts orphans, as the kernel said. The agent is its child then: as an
    /// orphan it would be one that it waits for.
    fn adopts(&self) -> Result<bool, InjectError> {
        let region = self.region.ok_or(InjectError::Gone)?;
        Ok(sys::read_u64(self.tracee.tid(), region.go())? >> 32 != 0)
    }

    /// The agent's pid as the intermediate noted it, or why it could not make one.
    fn noted_agent(&self) -> Result<Result<i32, InjectError>, InjectError> {
        let bootstrap = self.region.ok_or(InjectError::Gone)?.bootstrap();
        let noted = (sys::read_u64(self.tracee.tid(), bootstrap + 8)? >> 32) as i32;
        Ok(match noted {
            1.. => Ok(noted),
            0 => Err(InjectError::AgentDied { error: 0 }),
            _ => {
                let error = io::Error::from_raw_os_error(-noted);
                Err(InjectError::call(self.pid, "clone of the agent", error))
            }
        })
    }

    /// Asks for one more stop: the kernel handles restart codes only after such a stop.
    fn settle(&mut self) -> Result<(), InjectError> {
        self.state = State::Settling;
        self.tracee.interrupt()?;
        self.tracee.resume(0)?;
        Ok(())
    }

    /// At the last stop: restores registers and mask, and detaches.
    fn release(&mut self) -> Result<(), InjectError> {
        self.raised = None;
        let saved = self.saved.as_ref().ok_or(InjectError::Gone)?;
        if let Some(dispatch) = &self.dispatch {
            self.tracee.set_dispatch(dispatch)?;
        }
        self.dispatch = None;
        self.tracee.set_signal_mask(saved.mask)?;
        self.tracee.set_registers(&saved.registers)?;
        self.restored = true;
        if !self.holds {
            self.let_go();
        }
        if self.error.is_some() {
            self.end_agent();
        }
        self.state = match (self.error.is_some(), self.region, self.agent.take()) {
            (false, Some(region), Some((agent, pidfd))) => {
                let (device, inherited) = (self.device.take(), self.inherited.take());
                let supervised = self.is_supervised();
                let (pid, magic) = (self.pid, self.magic);
                match Meeting::new(pid, agent, pidfd, region, magic, supervised, device, inherited)
                {
                    Ok(meeting) => State::Meeting(Box::new(meeting)),
                    Err(error) => {
                        self.error = Some(InjectError::Keeper(error));
                        State::Ended
                    }
                }
            }
            _ => State::Ended,
        };
        Ok(())
    }
}

/// The agent's pidfd, verified: the process shares the memory that holds the magic number.
pub(super) fn identify(
    agent: i32,
    region: Option<Region>,
    magic: u64,
) -> Result<OwnedFd, InjectError> {
    let bootstrap = region.ok_or(InjectError::Gone)?.bootstrap();
    let pidfd = sys::pidfd_open(agent)?;
    match sys::read_u64(agent, bootstrap) {
        Ok(found) if found == magic => Ok(pidfd),
        _ => Err(InjectError::AgentDied { error: 0 }),
    }
}

fn find_syscall(tid: i32) -> Option<u64> {
    for mapping in process::executable_mappings(tid).ok()? {
        let mut at = mapping.start;
        while at < mapping.end {
            let mut page = [0; PAGE_BYTES];
            if sys::read_memory(tid, at, &mut page).is_err() {
                break;
            }
            if let Some(offset) = page.windows(2).position(|w| w == [0x0f, 0x05]) {
                return Some(at + offset as u64);
            }
            at += PAGE_BYTES as u64;
        }
    }
    None
}
