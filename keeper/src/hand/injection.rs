//! Puts an agent into a running program: stop one thread, make it map the agent's region and clone the
//! agent, give everything back, let it go. Every step can be waited for without blocking.
use super::calls::Call;
use super::image::Region;
use super::meeting::Meeting;
use super::process::{self, Status};
use super::settle::repeat_if_interrupted;
use super::tracee::{Look, Tracee};
use super::{Hand, InjectError, sys};
use libc::user_regs_struct as Registers;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long one `poll` gives the other side to get on.
const POLL_PATIENCE: Duration = Duration::from_micros(200);
/// How long it sleeps at a time.
const NAP: Duration = Duration::from_micros(10);
/// How long a dropped injection tries to let go before it kills the program.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// How far an injection has come.
#[derive(Debug)]
pub enum Progress {
    /// Call `poll` again later.
    Pending,
    /// The agent is in place.
    Done(Hand),
    /// There is no agent; the program goes on as before.
    Failed(InjectError),
}

/// Starts injections. Belongs to one thread, which becomes the tracer; nobody else may wait for stops.
pub struct Injector {
    not_send: PhantomData<*const ()>,
}

enum State {
    /// Waiting for the first stop.
    Stopping,
    /// Waiting for the call's entry (`entered` is false) or return.
    Calling { call: Call, entered: bool },
    /// Waiting for the last stop.
    Settling,
    /// The program is on its own again; waiting for the agent.
    Meeting(Box<Meeting>),
    /// Over; `poll` has said how.
    Ended,
}

/// What the thread had before we touched it.
struct Saved {
    registers: Registers,
    mask: u64,
    syscall_at: u64,
}

/// An injection under way. Keep polling until it is done or failed: while the thread is stopped the
/// program waits. Dropped early it lets the program go unharmed if that takes less than a second, and
/// kills it otherwise.
pub struct Injection {
    pid: i32,
    tracee: Tracee,
    state: State,
    saved: Option<Saved>,
    region: Option<Region>,
    magic: u64,
    intermediate: i32,
    agent: Option<(i32, OwnedFd)>,
    error: Option<InjectError>,
    deferred: Option<i32>,
    cancelled: bool,
    device: Option<OwnedFd>,
    inherited: Option<OwnedFd>,
    not_send: PhantomData<*const ()>,
}

impl Injector {
    /// An injector for the calling thread, whose timers become exact (no timer slack), as programs stand
    /// still while it naps. The calling process becomes a child subreaper, since agents are to be its
    /// children.
    ///
    /// # Errors
    /// If the kernel does not know subreapers.
    pub fn new() -> io::Result<Injector> {
        sys::become_subreaper()?;
        sys::nap_exactly()?;
        Ok(Injector { not_send: PhantomData })
    }

    /// Begins to put an agent into the memory of process `pid`. With `uffd_device` (an open
    /// `/dev/userfaultfd`) the agent needs no privilege for its userfaultfds.
    ///
    /// # Errors
    /// [`InjectError`] if it is plain from the start that it cannot be done; the program is untouched.
    pub fn begin(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
    ) -> Result<Injection, InjectError> {
        let gone = |_| InjectError::Gone;
        let tid = process::choose_thread(pid).map_err(gone)?.ok_or(InjectError::Gone)?;
        if !process::shares_pid_namespace(tid).map_err(gone)? {
            return Err(InjectError::PidNamespace);
        }
        let status = Status::read(pid, tid).map_err(gone)?;
        if status.tracer != 0 {
            return Err(InjectError::Traced { tracer: status.tracer });
        }
        let device = uffd_device.map(|fd| fd.try_clone_to_owned()).transpose();
        let device = device.map_err(InjectError::Keeper)?;
        // Those that the keeper is under itself, as everything in a container is: the program cannot have
        // taken them off, and they let our own calls through.
        let known = process::own_filters();
        let tracee = Tracee::seize(pid, tid, status.filters, known).map_err(|error| match error
            .raw_os_error()
        {
            Some(libc::ESRCH) => InjectError::Gone,
            Some(libc::EOPNOTSUPP) => InjectError::Filtered { filters: status.filters - known },
            _ => InjectError::Attach(error),
        })?;
        // A thread that died since is found by the first look.
        let _ = tracee.interrupt();
        Ok(Injection {
            pid,
            tracee,
            state: State::Stopping,
            saved: None,
            region: None,
            magic: random(),
            intermediate: 0,
            agent: None,
            error: None,
            deferred: None,
            cancelled: false,
            device,
            inherited: None,
            not_send: PhantomData,
        })
    }
}

impl Injection {
    /// The userfaultfd that the process's memory is registered with already, as a child of fork
    /// inherits it: the agent will use it, and make none of its own for the program.
    pub fn inherit(&mut self, program_uffd: OwnedFd) {
        self.inherited = Some(program_uffd);
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The agent, once it exists: it may be found among the processes before the injection is done. It is
    /// not a process to be protected.
    #[must_use]
    pub fn agent_pid(&self) -> Option<i32> {
        match &self.state {
            State::Meeting(meeting) => meeting.agent(),
            _ => self.agent.as_ref().map(|(pid, _)| *pid),
        }
    }

    /// Gives up as soon as that can be done without harm; go on polling until it failed (or was done
    /// first).
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Polls until there is an end or `patience` is over (`Pending` then).
    pub fn wait(&mut self, patience: Duration) -> Progress {
        let end = Instant::now() + patience;
        loop {
            match self.poll() {
                Progress::Pending if Instant::now() < end => std::thread::yield_now(),
                progress => return progress,
            }
        }
    }

    /// Goes on as far as is possible without waiting longer than a fraction of a millisecond.
    pub fn poll(&mut self) -> Progress {
        let mut last = Instant::now();
        loop {
            if let State::Meeting(meeting) = &mut self.state {
                if self.cancelled {
                    self.state = State::Ended;
                    return Progress::Failed(InjectError::Cancelled);
                }
                let progress = meeting.poll();
                if !matches!(progress, Progress::Pending) {
                    self.state = State::Ended;
                    return progress;
                }
            } else if matches!(self.state, State::Ended) {
                return Progress::Failed(self.error.take().unwrap_or(InjectError::Gone));
            } else {
                match self.tracee.look() {
                    Look::Running => {}
                    Look::Gone => return self.fail_now(InjectError::Gone),
                    look => {
                        if let Err(error) = self.advance(look) {
                            self.recover(error);
                        }
                        last = Instant::now();
                        continue;
                    }
                }
            }
            if last.elapsed() > POLL_PATIENCE {
                return self.still_pending();
            }
            // The other side may need this very CPU; a yield could leave it waiting for a whole slice.
            std::thread::sleep(NAP);
        }
    }

    fn still_pending(&mut self) -> Progress {
        let traced = !matches!(self.state, State::Meeting(_) | State::Ended);
        if traced && self.tracee.still_traced() == Look::Gone {
            return self.fail_now(InjectError::Gone);
        }
        Progress::Pending
    }

    fn fail_now(&mut self, error: InjectError) -> Progress {
        self.state = State::Ended;
        Progress::Failed(self.error.take().unwrap_or(error))
    }

    /// Something failed between two stops. If the thread still stands there, undo and let go; if it
    /// died, the next look finds that out.
    fn recover(&mut self, error: InjectError) {
        self.error.get_or_insert(error);
        if self.saved.is_none() {
            // Nothing was changed yet.
            if self.tracee.detach(0).is_ok() {
                self.state = State::Ended;
            }
        } else if !matches!(self.state, State::Settling) {
            let _ = self.settle();
        }
    }

    /// The thread stands still: do what comes next.
    fn advance(&mut self, look: Look) -> Result<(), InjectError> {
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
                self.deferred = Some(signal);
                self.tracee.resume_to_call()?;
            }
            (State::Settling, Look::Event) => self.release()?,
            (State::Settling, Look::Signal(signal)) => {
                self.deferred = Some(signal);
                self.tracee.interrupt()?;
                self.tracee.resume(0)?;
            }
            (_, _) => self.tracee.resume(0)?,
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), InjectError> {
        if self.cancelled {
            return Err(InjectError::Cancelled);
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
        self.call(Call::Map)
    }

    /// Sets the thread to make a call and lets it run to the call's entry.
    fn call(&mut self, call: Call) -> Result<(), InjectError> {
        let saved = self.saved.as_ref().ok_or(InjectError::Gone)?;
        let mut regs = saved.registers;
        let region = self.region.unwrap_or(Region::at(0));
        let (nr, args) = call.request(region, self.intermediate);
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = args;
        regs.rax = nr as u64;
        // Not in a call: or the kernel would restart the interrupted one with these registers.
        regs.orig_rax = u64::MAX;
        regs.rip = if call == Call::Clone { region.code() } else { saved.syscall_at };
        regs.rbx = region.bootstrap();
        self.tracee.set_registers(&regs)?;
        self.tracee.resume_to_call()?;
        self.state = State::Calling { call, entered: false };
        Ok(())
    }

    fn returned(&mut self, call: Call, result: i64) -> Result<(), InjectError> {
        let interrupted = (-516..=-512).contains(&result) || result == -i64::from(libc::EINTR);
        if interrupted && call == Call::Reap {
            return self.call(call);
        }
        // Another thread of the program waited for every kind of child and was quicker.
        let reaped = call == Call::Reap && result == -i64::from(libc::ECHILD);
        if (-4095..0).contains(&result) && !reaped {
            let error = io::Error::from_raw_os_error(-result as i32);
            self.error.get_or_insert(InjectError::Call { call: call.name(), error });
            // After the clone the region may have somebody in it; better it stays.
            return if matches!(call, Call::Map | Call::Reap | Call::Unmap) {
                self.settle()
            } else {
                self.call(Call::Unmap)
            };
        }
        match call {
            Call::Map => {
                self.region = Some(Region::at(result as u64));
                self.call(Call::DontFork)
            }
            Call::DontFork => self.call(Call::DontDump),
            Call::DontDump => self.call(Call::Guard),
            Call::Guard => self.call(Call::Data),
            Call::Data => match self.furnish() {
                Ok(()) => self.call(Call::Clone),
                Err(error) => {
                    self.error = Some(error);
                    self.call(Call::Unmap)
                }
            },
            Call::Clone => {
                self.intermediate = result as i32;
                self.call(Call::Reap)
            }
            Call::Reap => match self.noted_agent()? {
                Ok(agent) => {
                    match identify(agent, self.region, self.magic) {
                        Ok(pidfd) => self.agent = Some((agent, pidfd)),
                        Err(error) => self.error = Some(error),
                    }
                    self.settle()
                }
                Err(error) => {
                    self.error = Some(error);
                    self.call(Call::Unmap)
                }
            },
            Call::Unmap => self.settle(),
        }
    }

    fn furnish(&self) -> Result<(), InjectError> {
        let region = self.region.ok_or(InjectError::Gone)?;
        self.tracee.write_memory(region.code(), &region.code_bytes())?;
        self.tracee.write_memory(region.bootstrap(), &region.bootstrap_bytes(self.magic))?;
        Ok(())
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
                Err(InjectError::Call { call: "clone of the agent", error })
            }
        })
    }

    /// Asks for one more stop, since only after such a one does the kernel look at restart codes again.
    fn settle(&mut self) -> Result<(), InjectError> {
        self.state = State::Settling;
        self.tracee.interrupt()?;
        self.tracee.resume(0)?;
        Ok(())
    }

    /// The last stop: give registers and mask back, and let go.
    fn release(&mut self) -> Result<(), InjectError> {
        let saved = self.saved.as_ref().ok_or(InjectError::Gone)?;
        let mut registers = saved.registers;
        repeat_if_interrupted(&mut registers);
        self.tracee.set_signal_mask(saved.mask)?;
        self.tracee.set_registers(&registers)?;
        self.tracee.detach(0)?;
        if let Some(signal) = self.deferred.take() {
            // SAFETY: touches no memory.
            unsafe { libc::kill(self.pid, signal) };
        }
        self.state = match (self.error.is_some(), self.region, self.agent.take()) {
            (false, Some(region), Some((agent, pidfd))) => {
                let (device, inherited) = (self.device.take(), self.inherited.take());
                let (pid, magic) = (self.pid, self.magic);
                match Meeting::new(pid, agent, pidfd, region, magic, device, inherited) {
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

impl Drop for Injection {
    fn drop(&mut self) {
        self.cancel();
        let end = Instant::now() + DROP_PATIENCE;
        while self.tracee.attached() && Instant::now() < end {
            if !matches!(self.poll(), Progress::Pending) {
                return;
            }
        }
        if self.tracee.attached() {
            // It would stop as soon as it can, and nobody would ever let it go on.
            // SAFETY: touches no memory.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
    }
}

/// The agent's pidfd, made sure of: it shares the memory with our magic number in it.
fn identify(agent: i32, region: Option<Region>, magic: u64) -> Result<OwnedFd, InjectError> {
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
            let mut page = [0; 4096];
            if sys::read_memory(tid, at, &mut page).is_err() {
                break;
            }
            if let Some(offset) = page.windows(2).position(|w| w == [0x0f, 0x05]) {
                return Some(at + offset as u64);
            }
            at += 4096;
        }
    }
    None
}

/// Tells one address space from another; not a secret.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) | 1
}
