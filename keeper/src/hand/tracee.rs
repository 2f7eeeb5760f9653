//! One thread under ptrace: the raw requests, and its stops sorted into kinds. What a thread that
//! has stopped holds is in [`state`].
mod state;

pub(super) use state::Dispatch;

use super::process::Status;
use super::seize;
use super::sys;
use casemate_agent::confinement::AgentCall;
use std::ffi::c_void;
use std::io::{self, Error};

const PTRACE_GET_SYSCALL_INFO: u32 = 0x420e;
const PTRACE_LISTEN: u32 = 0x4208;
const PTRACE_O_SUSPEND_SECCOMP: i32 = 1 << 21;
/// `si_code` of a stop at a system call, with `PTRACE_O_TRACESYSGOOD`.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// The state of the thread at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It has not stopped.
    Running,
    /// It stopped because the keeper asked, or with its whole group.
    Event,
    /// It stopped on entry to, or on return from, a system call.
    Call,
    /// It has made a child, which is traced as well.
    Forked,
    /// It stopped to receive this signal.
    Signal(i32),
    /// It is dead or dying and no longer traced.
    Gone,
}

/// Whether a thread's seccomp filters must be suspended while it is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seccomp {
    /// It has none.
    None,
    /// They allow the injection's calls, and are suspended only if the keeper may do so.
    Ours,
    /// They are the program's own, or it is in the strict mode: they must be suspended.
    Theirs,
}

/// What a supervised agent stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentStop {
    /// It is dead.
    Gone,
    /// A system call, on its way in or out.
    Call,
    /// A request of the supervisor.
    Event,
    /// It is to receive this signal.
    Signal(i32),
    /// A stop by job control, until SIGCONT.
    Stopped,
}

/// Where a thread is that stopped for a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStage {
    /// It is about to make this call.
    Entry(AgentCall),
    /// It has returned from the call with this result.
    Return(i64),
    /// In no call.
    None,
}

/// `struct ptrace_syscall_info`.
#[repr(C)]
struct CallInformation {
    stage: u8,
    processor: u32,
    instruction: u64,
    stack: u64,
    /// On entry: the number, the arguments. On return: the result.
    words: [u64; 7],
    reserved: u64,
}

/// A thread that this thread has seized. It is killed if this thread dies before
/// [`Tracee::detach`].
pub(super) struct Tracee {
    pid: i32,
    tid: i32,
    attached: bool,
    /// It was found stopped with its group (SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU).
    stopped_with_group: bool,
}

impl Tracee {
    /// Attaches without stopping. While attached, the thread's seccomp filters are suspended as far
    /// as `seccomp` asks for it. Fails with `EOPNOTSUPP` if they must be suspended and the keeper
    /// may not do so, and with `EINTR` while the process is in `execve`.
    pub(super) fn seize(pid: i32, tid: i32, seccomp: Seccomp) -> io::Result<Tracee> {
        let options =
            libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXIT;
        let tracee = Tracee::adopt(pid, tid);
        let seize_with = |options: i32| {
            let gone = || Error::from_raw_os_error(libc::ESRCH);
            seize::seize(tid, options)
                .map_err(|error| if tracee.has_ended() { gone() } else { error })
        };
        match seccomp {
            Seccomp::None => seize_with(options)?,
            Seccomp::Ours if seize_with(options | PTRACE_O_SUSPEND_SECCOMP).is_ok() => {}
            Seccomp::Ours => seize_with(options)?,
            Seccomp::Theirs => {
                seize_with(options | PTRACE_O_SUSPEND_SECCOMP).map_err(|error| {
                    match error.raw_os_error() {
                        Some(libc::ESRCH | libc::EINTR) => error,
                        // If something else was refused, the next attempt returns it.
                        _ => Error::from_raw_os_error(libc::EOPNOTSUPP),
                    }
                })?;
            }
        }
        Ok(tracee)
    }

    /// Attaches to an agent whose filters are to stay suspended, and asks it to stop.
    pub(super) fn supervise(agent: i32) -> io::Result<Tracee> {
        let options =
            libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP;
        let tracee = Tracee::adopt(agent, agent);
        seize::seize(agent, options)?;
        tracee.interrupt()?;
        Ok(tracee)
    }

    /// Attaches to a thread that is only to be stopped.
    pub(super) fn hold(pid: i32, tid: i32) -> io::Result<Tracee> {
        seize::seize(tid, libc::PTRACE_O_EXITKILL)?;
        Ok(Tracee::adopt(pid, tid))
    }

    /// Attaches without stopping to a thread that is about to fork, and to its child.
    pub(super) fn seize_with_children(pid: i32, tid: i32) -> io::Result<Tracee> {
        let forks =
            libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
        seize::seize(tid, libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD | forks)?;
        Ok(Tracee::adopt(pid, tid))
    }

    /// A thread that this thread traces already.
    pub(super) fn adopt(pid: i32, tid: i32) -> Tracee {
        Tracee { pid, tid, attached: true, stopped_with_group: false }
    }

    /// A thread that this thread does not trace.
    pub(super) fn none(pid: i32, tid: i32) -> Tracee {
        Tracee { pid, tid, attached: false, stopped_with_group: false }
    }

    /// Whether it has ended: the kernel refuses to trace it then, with the same error as for
    /// another user's thread.
    fn has_ended(&self) -> bool {
        Status::read(self.pid, self.tid).map_or(true, |s| matches!(s.state, b'Z' | b'X'))
    }

    fn request(&self, request: u32, address: usize, data: usize) -> io::Result<()> {
        // SAFETY: callers pass requests whose `data` is a plain value or a pointer to a live local
        // of the size that the request uses; they change only the tracee.
        let result =
            unsafe { libc::ptrace(request, self.tid, address as *mut c_void, data as *mut c_void) };
        if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Hands the tracing over; this value counts as detached afterwards.
    pub(super) fn take(&mut self) -> Tracee {
        let attached = std::mem::replace(&mut self.attached, false);
        Tracee { attached, ..*self }
    }

    /// Makes a stopped thread's stops at calls distinguishable from signals.
    pub(super) fn report_calls(&self) -> io::Result<()> {
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
        self.request(libc::PTRACE_SETOPTIONS, 0, options as usize)
    }

    pub(super) fn tid(&self) -> i32 {
        self.tid
    }

    pub(super) fn attached(&self) -> bool {
        self.attached
    }

    /// Whether its group was stopped since it was seized, or before. The kernel has ended its call
    /// then as it does without a tracer.
    pub(super) fn stopped_with_group(&self) -> bool {
        self.stopped_with_group
    }

    /// Asks the thread to stop.
    pub(super) fn interrupt(&self) -> io::Result<()> {
        self.request(libc::PTRACE_INTERRUPT, 0, 0)
    }

    /// Checks whether the thread has stopped or died. Never takes the exit status of a child from
    /// the thread that waits for it, and works if another thread of this process took a stop's
    /// status.
    pub(super) fn look(&mut self) -> Look {
        if !self.attached {
            return Look::Gone;
        }
        match self.signal_information() {
            Ok(info) => {
                // Spares other threads that wait for children this report. `waitid` reports stops
                // of traced threads whether or not it is asked to.
                let _ = self.wait(libc::WSTOPPED);
                self.sort(&info)
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Look::Event,
            Err(_) => match self.wait(libc::WEXITED | libc::WNOWAIT) {
                Ok(Some(libc::CLD_TRAPPED | libc::CLD_STOPPED) | None) => Look::Running,
                Ok(Some(_)) | Err(_) => self.bury(),
            },
        }
    }

    /// [`Look::Gone`] if the thread is not ours any more, as after another thread's `execve`.
    pub(super) fn still_traced(&mut self) -> Look {
        let ours = sys::current_thread();
        match Status::read(self.pid, self.tid) {
            Ok(status) if status.tracer == ours => Look::Running,
            _ => self.bury(),
        }
    }

    /// What a stopped thread stopped for; fails on a thread that runs.
    fn signal_information(&self) -> io::Result<libc::siginfo_t> {
        // SAFETY: an all-zero siginfo_t is valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETSIGINFO, 0, (&raw mut info) as usize)?;
        Ok(info)
    }

    fn sort(&mut self, info: &libc::siginfo_t) -> Look {
        match (info.si_code >> 8, info.si_code & 0xff) {
            (libc::PTRACE_EVENT_STOP, signal) if signal == info.si_signo => {
                self.stopped_with_group |= signal != libc::SIGTRAP;
                Look::Event
            }
            (libc::PTRACE_EVENT_EXIT, libc::SIGTRAP) => {
                let _ = self.detach(0);
                Look::Gone
            }
            (
                libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE,
                libc::SIGTRAP,
            ) => Look::Forked,
            (0, SYSCALL_STOP) => Look::Call,
            _ => Look::Signal(info.si_signo),
        }
    }

    /// What the kernel says of the event that a thread stopped for: the number of its child.
    pub(super) fn message(&self) -> io::Result<u64> {
        let mut message = 0_u64;
        self.request(libc::PTRACE_GETEVENTMSG, 0, (&raw mut message) as usize)?;
        Ok(message)
    }

    /// The thread's change of state (`CLD_...`), if there is one that was not reported yet.
    fn wait(&self, what: i32) -> io::Result<Option<i32>> {
        // SAFETY: an all-zero siginfo_t is valid; waitid fills it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = what | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: the siginfo is a live local.
        let result = unsafe { libc::waitid(libc::P_PID, self.tid as u32, &raw mut info, flags) };
        if result < 0 {
            return Err(Error::last_os_error());
        }
        Ok((info.si_signo != 0).then_some(info.si_code))
    }

    /// A dead thread stays a zombie until its tracer has seen it; a process that is our own child
    /// keeps its status for the thread that waits for children.
    fn bury(&mut self) -> Look {
        self.attached = false;
        let own_child = self.tid == self.pid
            && Status::read(self.pid, self.tid)
                .map_or(true, |s| s.parent == std::process::id() as i32);
        if !own_child {
            let _ = self.wait(libc::WEXITED);
        }
        Look::Gone
    }

    /// Lets the thread run to its next system call, or to the end of the current one.
    pub(super) fn resume_to_call(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SYSCALL, 0, 0)
    }

    /// As [`Tracee::resume_to_call`], delivering a signal.
    pub(super) fn resume_to_call_with(&self, signal: i32) -> io::Result<()> {
        self.request(libc::PTRACE_SYSCALL, 0, signal as usize)
    }

    /// Leaves a thread stopped by job control stopped.
    pub(super) fn stay_stopped(&self) -> io::Result<()> {
        self.request(PTRACE_LISTEN, 0, 0)
    }

    /// Waits for this thread's next stop, or its end.
    pub(super) fn await_stop(&mut self) -> AgentStop {
        loop {
            let mut status = 0;
            // SAFETY: the status is a live local.
            let found = unsafe {
                libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::__WNOTHREAD)
            };
            if found < 0 && Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
                continue;
            }
            if found != self.tid || !libc::WIFSTOPPED(status) {
                self.attached = false;
                return AgentStop::Gone;
            }
            return match (status >> 16, libc::WSTOPSIG(status)) {
                (_, SYSCALL_STOP) => AgentStop::Call,
                (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => AgentStop::Event,
                (libc::PTRACE_EVENT_STOP, _) => AgentStop::Stopped,
                (_, signal) => AgentStop::Signal(signal),
            };
        }
    }

    /// Where a thread is that stopped for a system call.
    pub(super) fn call_stage(&self) -> io::Result<CallStage> {
        const ENTRY: u8 = 1;
        const EXIT: u8 = 2;
        // SAFETY: the block is plain integers.
        let mut info: CallInformation = unsafe { std::mem::zeroed() };
        self.request(
            PTRACE_GET_SYSCALL_INFO,
            size_of::<CallInformation>(),
            (&raw mut info) as usize,
        )?;
        let [number, first, second, third, ..] = info.words;
        Ok(match info.stage {
            ENTRY => CallStage::Entry(AgentCall {
                processor: info.processor,
                // One that does not fit is none.
                number: u32::try_from(number).unwrap_or(u32::MAX),
                arguments: [first, second, third],
            }),
            EXIT => CallStage::Return(number as i64),
            _ => CallStage::None,
        })
    }

    /// Skips the call that a thread is about to make.
    pub(super) fn replace_call(&self) -> io::Result<()> {
        let mut registers = self.registers()?;
        registers.orig_rax = u64::MAX;
        self.set_registers(&registers)
    }

    /// Sets the call's result.
    pub(super) fn set_result(&self, result: i64) -> io::Result<()> {
        let mut registers = self.registers()?;
        registers.rax = result as u64;
        self.set_registers(&registers)
    }

    /// Lets the thread run, delivering a signal if not 0.
    pub(super) fn resume(&self, signal: i32) -> io::Result<()> {
        self.request(libc::PTRACE_CONT, 0, signal as usize)
    }

    /// Detaches from the stopped thread.
    pub(super) fn detach(&mut self, signal: i32) -> io::Result<()> {
        self.request(libc::PTRACE_DETACH, 0, signal as usize)?;
        self.attached = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_gone_and_not_forbidden() {
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id() as i32;
        // The child ends, and stays a zombie until its status is read.
        while Status::read(pid, pid).expect("a child of ours").state != b'Z' {
            std::thread::yield_now();
        }
        let error = Tracee::seize(pid, pid, Seccomp::None).map(|_| ()).expect_err("it has ended");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{error}");
        child.wait().expect("its status");
    }
}
