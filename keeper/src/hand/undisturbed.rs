//! A fork that signals keep from beginning: the kernel begins none while a signal is pending, and
//! has the call made again after the handler. A thread whose signals come faster than its calls are
//! answered would never fork. From one attempt to the next its signals are held back, until the
//! child exists or the call has failed; then parent and child get the mask that was in force.
use super::settle::ends_in_call;
use super::tracee::{Look, Tracee};
use std::io;

/// `ERESTARTNOINTR` of the kernel: the call is made again whatever the handler's flags say.
const AGAIN: i64 = -513;

/// A thread whose signals are held back while it forks. Belongs to the thread that began it.
pub struct Undisturbed {
    tracee: Tracee,
    mask: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its attempt is to end, since it was asked to stop.
    Stopping,
    /// Its signals are held back, and it makes the call again.
    Repeating,
    /// It is in the call.
    Forking,
    /// The parent goes on; the child is to stop before its first instruction.
    Born,
}

impl Undisturbed {
    /// Of thread `tid` of process `pid`, which waits to make the call. None if it cannot be traced.
    #[must_use]
    pub fn begin(pid: i32, tid: i32) -> Option<Undisturbed> {
        let tracee = Tracee::seize_with_children(pid, tid).ok()?;
        // A thread that died since is found by the first look.
        let _ = tracee.interrupt();
        Some(Undisturbed { tracee, mask: 0, stage: Stage::Stopping })
    }

    /// Whether it is this thread's fork.
    #[must_use]
    pub fn is_of(&self, tid: i32) -> bool {
        self.stage != Stage::Born && self.tracee.tid() == tid
    }

    /// Takes the steps that are due without waiting; whether nothing is traced any more.
    pub fn is_over(&mut self) -> bool {
        loop {
            let look = self.tracee.look();
            match look {
                Look::Running => return false,
                Look::Gone => return true,
                _ => {}
            }
            match self.step(look) {
                Ok(false) => {}
                Ok(true) => return true,
                // It was killed: the next look finds that.
                Err(_) => return self.tracee.look() == Look::Gone,
            }
        }
    }

    /// Takes the step at a stop; whether that was the last.
    fn step(&mut self, look: Look) -> io::Result<bool> {
        match (self.stage, look) {
            (Stage::Stopping, Look::Event) => {
                let registers = self.tracee.registers()?;
                if registers.rax as i64 != AGAIN || !ends_in_call(&self.tracee, &registers) {
                    // It forked after all, or a handler comes first.
                    self.tracee.detach(0)?;
                    return Ok(true);
                }
                self.mask = self.tracee.signal_mask()?;
                self.tracee.set_signal_mask(u64::MAX)?;
                self.go_to(Stage::Repeating)
            }
            (Stage::Stopping, Look::Signal(signal)) => {
                self.tracee.detach(signal)?;
                Ok(true)
            }
            (Stage::Repeating, Look::Call) => self.go_to(Stage::Forking),
            (Stage::Forking, Look::Forked) => {
                let child = self.tracee.message()? as i32;
                self.release(0)?;
                self.tracee = Tracee::adopt(child, child);
                self.stage = Stage::Born;
                Ok(false)
            }
            (_, Look::Signal(signal)) => self.release(signal),
            _ => self.release(0),
        }
    }

    fn go_to(&mut self, stage: Stage) -> io::Result<bool> {
        self.stage = stage;
        self.tracee.resume_to_call()?;
        Ok(false)
    }

    fn release(&mut self, signal: i32) -> io::Result<bool> {
        if self.stage != Stage::Stopping {
            self.tracee.set_signal_mask(self.mask)?;
        }
        self.tracee.detach(signal)?;
        Ok(true)
    }
}
