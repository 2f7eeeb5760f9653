//! PTRACE_SEIZE that waits no longer than a moment.
//!
//! The kernel has a tracer wait for as long as the process executes another program. The thread that calls
//! `execve` waits in turn until all others have ended, those under ptrace until their tracer has seen it. A
//! tracer that seized the next thread then would wait for itself. No flag makes the call return, and a signal
//! only begins it anew: here the signal's handler steps over it (as musl's cancellation points do).
use super::sys;
use libc::{c_int, c_void};
use std::cell::OnceCell;
use std::io::{self, Error};
use std::sync::OnceLock;
use std::time::Duration;

/// A process is seized within microseconds unless it executes. It may take longer on a crowded machine: then it
/// is tried again later.
const PATIENCE: Duration = Duration::from_millis(10);
/// No program and no part of the kernel's sends it.
const SIGNAL: c_int = libc::SIGSTKFLT;

thread_local! {
    static TIMER: OnceCell<Timer> = const { OnceCell::new() };
}

/// Begins to trace thread `tid`, with ptrace's `options`.
///
/// # Errors
/// The kernel's; `EINTR` if its process seems to be executing.
pub(super) fn seize(tid: i32, options: i32) -> io::Result<()> {
    TIMER.with(|timer| {
        if timer.get().is_none() {
            let _ = timer.set(Timer::new()?);
        }
        let timer = timer.get().ok_or(io::ErrorKind::Other)?;
        timer.set(PATIENCE)?;
        // SAFETY: PTRACE_SEIZE takes plain numbers and changes only the tracee.
        let result = unsafe {
            casemate_call(
                libc::SYS_ptrace,
                libc::PTRACE_SEIZE.into(),
                tid.into(),
                0,
                options.into(),
            )
        };
        timer.set(Duration::ZERO)?;
        match i32::try_from(-result) {
            Ok(error) if error > 0 => Err(Error::from_raw_os_error(error)),
            _ => Ok(()),
        }
    })
}

unsafe extern "C" {
    /// A system call: its number, and four arguments. What the kernel returns, or `-EINTR` if [`step_over`]
    /// came in between.
    fn casemate_call(number: i64, first: i64, second: i64, third: i64, fourth: i64) -> i64;
    /// Its `syscall` instruction.
    static casemate_call_instruction: [u8; 2];
}

std::arch::global_asm!(
    ".pushsection .text.casemate_call,\"ax\",@progbits",
    ".globl casemate_call",
    ".hidden casemate_call",
    ".type casemate_call,@function",
    "casemate_call:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    ".globl casemate_call_instruction",
    ".hidden casemate_call_instruction",
    "casemate_call_instruction:",
    "syscall",
    "ret",
    ".size casemate_call, . - casemate_call",
    ".popsection",
);

/// If the thread is about to make the call, or to make it again: it has come back with `EINTR`. One that is
/// through with it keeps its result.
extern "C" fn step_over(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over a ucontext_t that lives as long as the handler runs, and that nothing
    // else refers to. Of the instruction only the address is taken.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let instruction = &raw const casemate_call_instruction as i64;
        let at = &mut registers[libc::REG_RIP as usize];
        if *at == instruction {
            *at += size_of::<[u8; 2]>() as i64;
            registers[libc::REG_RAX as usize] = i64::from(-libc::EINTR);
        }
    }
}

/// Sends [`SIGNAL`] to the thread that made it.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> io::Result<Timer> {
        static HANDLER: OnceLock<Option<i32>> = OnceLock::new();
        if let Some(error) = HANDLER.get_or_init(|| install().err()?.raw_os_error()) {
            return Err(Error::from_raw_os_error(*error));
        }
        // SAFETY: signal sets and events are plain data, filled before use; all pointers are to live locals.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, SIGNAL);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = sys::current_thread();
            let mut timer = std::mem::zeroed();
            match libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) {
                0 => Ok(Timer(timer)),
                _ => Err(Error::last_os_error()),
            }
        }
    }

    /// Sends it again and again, each time after `period`; no more if that is zero. (The first may come before
    /// the call has begun to wait.)
    fn set(&self, period: Duration) -> io::Result<()> {
        let period = libc::timespec {
            tv_sec: period.as_secs() as i64,
            tv_nsec: i64::from(period.subsec_nanos()),
        };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer is this thread's own; the times are a live local.
        match unsafe { libc::timer_settime(self.0, 0, &raw const times, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: nothing uses it any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

fn install() -> io::Result<()> {
    // SAFETY: the action is plain data, filled before use. The handler touches only what it is handed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = step_over as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        match libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}
