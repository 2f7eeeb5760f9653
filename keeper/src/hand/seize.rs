//! PTRACE_SEIZE with a time limit.
//!
//! The kernel makes a tracer wait while the process is in `execve`. The thread that calls `execve`
//! waits until all others have ended, and those under ptrace until their tracer has reaped them. A
//! tracer that seizes another thread of the process then waits for itself. No flag makes the call
//! return, and a signal only restarts it: here the signal's handler skips the call instruction (as
//! musl's cancellation points do).
use super::sys;
use libc::{c_int, c_void};
use std::cell::Cell;
use std::io::{self, Error};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Seizing takes microseconds unless the process is in `execve`. On a crowded machine it may take
/// longer; it is then tried again later.
const PATIENCE: Duration = Duration::from_millis(10);
/// A signal that neither programs nor the kernel send. (Not a real-time signal: those count against
/// a limit.)
const SIGNAL: c_int = libc::SIGSTKFLT;

thread_local! {
    static IS_PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Begins to trace thread `tid`, with ptrace's `options`.
///
/// # Errors
/// The kernel's; `EINTR` if its process seems to be executing.
pub(super) fn seize(tid: i32, options: i32) -> io::Result<()> {
    prepare()?;
    let waiting = Waiting::begin();
    // SAFETY: PTRACE_SEIZE takes plain numbers and changes only the tracee.
    let result = unsafe {
        casemate_call(libc::SYS_ptrace, libc::PTRACE_SEIZE.into(), tid.into(), 0, options.into())
    };
    drop(waiting);
    match i32::try_from(-result) {
        Ok(error) if error > 0 => Err(Error::from_raw_os_error(error)),
        _ => Ok(()),
    }
}

/// Starts the timekeeper thread if needed, and prepares the calling thread to be interrupted by it.
///
/// # Errors
/// If no thread can be created.
pub(super) fn prepare() -> io::Result<()> {
    if !IS_PREPARED.get() {
        timekeeper()?;
        sys::receive(SIGNAL)?;
        IS_PREPARED.set(true);
    }
    Ok(())
}

unsafe extern "C" {
    /// A system call: its number, and four arguments. What the kernel returns, or `-EINTR` if
    /// [`step_over`] came in between.
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

/// Makes the call return `EINTR` if the thread is about to make or restart it. A call that has
/// returned keeps its result.
extern "C" fn step_over(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over a ucontext_t that lives as long as the handler runs, and that
    // nothing else refers to. Of the instruction only the address is taken.
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

/// The calls in progress: the calling threads, and since when.
static UNDER_WAY: Mutex<Vec<(i32, Instant)>> = Mutex::new(Vec::new());

fn under_way<R>(work: impl FnOnce(&mut Vec<(i32, Instant)>) -> R) -> R {
    work(&mut UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// While this value exists, the timekeeper interrupts the calling thread when it waits for too
/// long.
struct Waiting(i32);

impl Waiting {
    fn begin() -> Waiting {
        let tid = sys::current_thread();
        under_way(|calls| calls.push((tid, Instant::now())));
        if let Ok(timekeeper) = timekeeper() {
            timekeeper.unpark();
        }
        Waiting(tid)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        under_way(|calls| calls.retain(|(tid, _)| *tid != self.0));
    }
}

/// The thread that interrupts others, started once for the process.
fn timekeeper() -> io::Result<&'static Thread> {
    static TIMEKEEPER: OnceLock<Result<Thread, i32>> = OnceLock::new();
    let begun = TIMEKEEPER.get_or_init(|| {
        sys::install(SIGNAL, step_over)
            .and_then(|()| {
                let builder = thread::Builder::new().name("timekeeper".to_owned());
                builder.stack_size(64 * 1024).spawn(keep_time)
            })
            .map(|handle| handle.thread().clone())
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))
    });
    begun.as_ref().map_err(|error| Error::from_raw_os_error(*error))
}

/// Sends [`SIGNAL`] repeatedly to threads that wait for too long: the first may arrive before the
/// call has started.
fn keep_time() {
    loop {
        match under_way(|calls| calls.iter().map(|(_, since)| *since).min()) {
            None => thread::park(),
            Some(_) => thread::park_timeout(PATIENCE),
        }
        // The lock keeps these threads from returning and from ending meanwhile.
        under_way(|calls| {
            for (tid, since) in calls.iter() {
                if since.elapsed() >= PATIENCE {
                    sys::signal_own_thread(*tid, SIGNAL);
                }
            }
        });
    }
}
