//! seccomp's strict mode for a thread whose calls are announced: the kernel refuses it to a thread
//! under a filter. The thread gets a filter that lets the same calls pass.
use super::filter;
use super::process::{self, Status};
use super::settle::{begin_anew, ends_in_call};
use super::sys;
use super::tracee::{Look, Seccomp, Tracee};
use libc::user_regs_struct as Registers;
use std::io;
use std::thread;
use std::time::Duration;

/// Attempts to seize a thread without a tracer, after which it counts as one that may not be
/// traced.
const ATTEMPTS: u32 = 3;
const NAP: Duration = Duration::from_micros(10);
/// The bytes below the stack pointer that the calling convention leaves to a function.
const RED_ZONE: u64 = 128;

/// Puts thread `tid` of process `pid` under a filter equal to the strict mode. The thread waits in
/// the call by which it asked for that, until `go_on` is called. False if another thread of the
/// keeper traces it: then `go_on` was not called.
pub fn enter_strict_mode(pid: i32, tid: i32, go_on: impl FnOnce()) -> bool {
    let Ok(status) = Status::read(pid, tid) else {
        go_on();
        return true;
    };
    // Under filters of its own the kernel would refuse it without the keeper, too.
    let mut seized = Err(Status::default());
    if status.filters <= process::own_filters() + 1 {
        seized = seize(pid, tid);
    }
    let mut tracee = match seized {
        Ok(tracee) => tracee,
        Err(other) if process::is_our_thread(other.tracer) => return false,
        Err(_) => {
            go_on();
            return true;
        }
    };
    // A thread that died since is found by the first look.
    let _ = tracee.interrupt();
    go_on();
    let mut visit = Visit { tracee: &mut tracee, deferred: 0 };
    let _ = visit.make();
    let deferred = visit.deferred;
    if tracee.detach(0).is_err() {
        // It was killed: buried if it is dead by now.
        tracee.look();
    } else if deferred != 0 {
        sys::kill(pid, deferred);
    }
    true
}

/// The thread, or its status, with what traces it already.
fn seize(pid: i32, tid: i32) -> Result<Tracee, Status> {
    let mut status = Status::default();
    for _ in 0..ATTEMPTS {
        if let Ok(tracee) = Tracee::seize(pid, tid, Seccomp::Ours) {
            return Ok(tracee);
        }
        status = Status::read(pid, tid).unwrap_or_default();
        if status.tracer != 0 {
            break;
        }
        // The former tracer has detached.
    }
    Err(status)
}

struct Visit<'a> {
    tracee: &'a mut Tracee,
    /// A signal that came meanwhile.
    deferred: i32,
}

impl Visit<'_> {
    /// Waits until the thread returns from its refused call, makes it set the filter, and sets the
    /// call's result to success. On any failure the call stays refused.
    fn make(&mut self) -> io::Result<()> {
        let refused = -i64::from(libc::EINVAL) as u64;
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        self.until(Look::Event, Tracee::resume).ok_or_else(gone)?;
        let registers = self.tracee.registers()?;
        if registers.rax != refused || !ends_in_call(self.tracee, &registers) {
            return Ok(());
        }
        let mask = self.tracee.signal_mask()?;
        self.tracee.set_signal_mask(u64::MAX)?;
        let result = self.set_filter(&registers);
        self.tracee.set_signal_mask(mask)?;
        let mut after = registers;
        // The kernel is to restart nothing.
        after.orig_rax = u64::MAX;
        if result.is_ok_and(|result| result == 0) {
            after.rax = 0;
        }
        self.tracee.set_registers(&after)
    }

    /// Makes the thread set the filter, which is written below its stack, and returns the result.
    fn set_filter(&mut self, registers: &Registers) -> io::Result<i64> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let len = filter::strict(0).len();
        let at = (registers.rsp.saturating_sub(RED_ZONE + len as u64)) & !15;
        let tid = self.tracee.tid();
        let mut before = vec![0; len];
        sys::read_memory(tid, at, &mut before)?;
        sys::write_memory(tid, at, &filter::strict(at))?;
        let mut set = *registers;
        set.orig_rax = libc::SYS_seccomp as u64;
        (set.rdi, set.rsi, set.rdx) = (u64::from(libc::SECCOMP_SET_MODE_FILTER), 0, at);
        begin_anew(&mut set);
        self.tracee.set_registers(&set)?;
        for _ in ["its entry", "its return"] {
            self.tracee.resume_to_call()?;
            self.until(Look::Call, Tracee::resume_to_call_with).ok_or_else(gone)?;
        }
        let result = self.tracee.registers()?.rax as i64;
        sys::write_memory(tid, at, &before)?;
        Ok(result)
    }

    /// Resumes the thread until it stops for `wanted`; none if it dies first.
    fn until(&mut self, wanted: Look, go_on: fn(&Tracee, i32) -> io::Result<()>) -> Option<()> {
        loop {
            let look = self.tracee.look();
            match look {
                look if look == wanted => return Some(()),
                Look::Gone => return None,
                Look::Running => thread::sleep(NAP),
                Look::Signal(signal) => {
                    if wanted == Look::Event {
                        let _ = self.tracee.interrupt();
                    }
                    // The thread goes on under its tracer. If its process is stopped still when it
                    // is detached, the kernel stops it.
                    let stop = if signal == libc::SIGSTOP { signal } else { 0 };
                    if stop == 0 {
                        self.deferred = signal;
                    }
                    let _ = go_on(self.tracee, stop);
                }
                _ => {
                    let _ = go_on(self.tracee, 0);
                }
            }
        }
    }
}
