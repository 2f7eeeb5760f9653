//! Resumes stopped threads without an effect of the stop that they could see. If the stop made a
//! transfer return short, the thread makes the rest of it while it is traced, and gets the sum as
//! its result.
use super::process::Status;
use super::settle::{self, ends_in_call};
use super::tracee::{Look, Tracee};
use crate::sys::procfs;
use libc::user_regs_struct as Registers;
use std::cell::{Cell, RefCell};
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

/// A transfer younger than this is checked often.
const BUSY: Duration = Duration::from_secs(1);
/// How long dropping waits for a transfer.
const DROP_PATIENCE: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_micros(10);

thread_local! {
    static UNFINISHED: RefCell<Vec<Transfer>> = const { RefCell::new(Vec::new()) };
    static FOLLOWS: Cell<bool> = const { Cell::new(false) };
}

/// This thread will call [`follow_transfers`] again and again.
pub(super) fn begin_to_follow() {
    FOLLOWS.set(true);
}

/// Continues the transfers that this thread completes for threads that it has stopped. Returns
/// whether some should be checked again soon.
pub fn follow_transfers() -> bool {
    UNFINISHED.with_borrow_mut(|transfers| {
        transfers.retain_mut(|transfer| !transfer.is_over());
        transfers.iter().any(|transfer| transfer.since.elapsed() < BUSY)
    })
}

/// Whether this thread traces thread `tid` only until its transfer is complete.
pub(super) fn is_followed(tid: i32) -> bool {
    UNFINISHED.with_borrow(|transfers| transfers.iter().any(|other| other.tracee.tid() == tid))
}

/// Resumes a stopped thread, unless it died: detaches it, or follows its transfer. It is under
/// `known_filters` filters that are not the program's. What its call returns because its group was
/// stopped it is to see.
pub(super) fn release(tracee: &mut Tracee, signal: i32, known_filters: u32) -> std::io::Result<()> {
    if signal == 0
        && FOLLOWS.get()
        && !tracee.stopped_with_group()
        && let Ok(registers) = tracee.registers()
        && let Some(transfer) = Transfer::of(tracee, &registers)
    {
        UNFINISHED.with_borrow_mut(|transfers| transfers.push(transfer));
        return Ok(());
    }
    release_at_once(tracee, signal, known_filters)
}

/// As [`release`], for a thread with a signal to deliver, which may end its transfer early.
pub(super) fn release_at_once(
    tracee: &mut Tracee,
    signal: i32,
    known_filters: u32,
) -> std::io::Result<()> {
    if tracee.stopped_with_group() {
        return tracee.detach(signal);
    }
    let Ok(mut registers) = tracee.registers() else { return tracee.detach(signal) };
    let before = registers;
    settle::repeat_if_interrupted(&mut registers);
    if settle::restarts_by_name(&registers)
        && has_own_filters(tracee, known_filters)
        && ends_in_call(tracee, &registers)
    {
        settle::begin_anew(&mut registers);
    }
    if (registers.rax, registers.rip) != (before.rax, before.rip) {
        tracee.set_registers(&registers)?;
    }
    tracee.detach(signal)
}

/// Whether the thread has filters of the program, which may forbid `restart_syscall`. (The keeper's
/// filter allows it.)
fn has_own_filters(tracee: &Tracee, known_filters: u32) -> bool {
    Status::read(tracee.pid(), tracee.tid())
        .is_ok_and(|status| status.is_strict || status.filters > known_filters)
}

/// A transfer that the thread is completing.
struct Transfer {
    tracee: Tracee,
    /// The registers with the short result.
    short: Registers,
    is_in_call: bool,
    since: Instant,
}

impl Transfer {
    /// Makes the thread start the rest of a transfer, if it returned short because of the stop.
    fn of(tracee: &mut Tracee, short: &Registers) -> Option<Transfer> {
        let rest = settle::rest_of_transfer(short)?;
        if !waits_for_all(tracee.tid(), short) || !ends_in_call(tracee, short) {
            return None;
        }
        tracee.report_calls().ok()?;
        tracee.set_registers(&rest).ok()?;
        if tracee.resume_to_call().is_err() {
            // Killed meanwhile.
            let _ = tracee.set_registers(short);
            return None;
        }
        let (tracee, short) = (tracee.take(), *short);
        Some(Transfer { tracee, short, is_in_call: false, since: Instant::now() })
    }

    /// Continues the transfer; returns whether the thread is untraced again.
    fn is_over(&mut self) -> bool {
        match self.tracee.look() {
            Look::Running => false,
            Look::Gone => true,
            Look::Call if !self.is_in_call => {
                self.is_in_call = true;
                self.tracee.resume_to_call().is_err()
            }
            // A failure now means that the transfer would have ended short in any case.
            Look::Call => {
                let more = self.tracee.registers().map_or(0, |registers| registers.rax as i64);
                self.end(more.max(0) as u64, 0)
            }
            Look::Signal(signal) if !self.is_in_call => self.end(0, signal),
            Look::Event if !self.is_in_call => self.end(0, 0),
            Look::Signal(_) | Look::Forked | Look::Event => self.tracee.resume_to_call().is_err(),
        }
    }

    /// Sets the thread's result, and resumes it.
    fn end(&mut self, more: u64, signal: i32) -> bool {
        let mut registers = self.short;
        registers.rax += more;
        self.tracee.set_registers(&registers).is_err() || self.tracee.detach(signal).is_ok()
    }
}

impl Drop for Transfer {
    /// Ends the transfer with the short result.
    fn drop(&mut self) {
        if !self.tracee.attached() {
            return;
        }
        let _ = self.tracee.interrupt();
        let end = Instant::now() + DROP_PATIENCE;
        while self.tracee.attached() && !self.is_over() && Instant::now() < end {
            std::thread::sleep(NAP);
        }
    }
}

/// Whether calls on the descriptor of a transfer wait until all bytes are transferred.
fn waits_for_all(tid: i32, registers: &Registers) -> bool {
    let fd = registers.rdi as i32;
    let is_stream = procfs::descriptor(tid, fd).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_char_device()
    });
    let text = procfs::text(format!("/proc/{tid}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok());
    is_stream && flags.is_some_and(|flags| flags & libc::O_NONBLOCK == 0)
}
