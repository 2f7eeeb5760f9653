//! How an injection begins: the process is looked at and its thread seized.

use super::{Announcements, Injection, Injector, State, random};
use crate::hand::others::Others;
use crate::hand::process::{self, Status};
use crate::hand::release::begin_to_follow;
use crate::hand::tracee::{Seccomp, Tracee};
use crate::hand::{InjectError, seize, sys};
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;

impl Injector {
    /// An injector for the calling thread, whose timers become exact (no timer slack), as programs
    /// stand still while it naps. The calling process becomes a child subreaper, since agents are
    /// to be its children.
    ///
    /// # Errors
    /// If the kernel does not know subreapers, or there can be no further thread.
    pub fn new() -> io::Result<Injector> {
        sys::become_subreaper()?;
        sys::nap_exactly()?;
        seize::prepare()?;
        begin_to_follow();
        Ok(Injector { announces: false, not_send: PhantomData })
    }

    /// An injector that also has the programs' calls announced. The caller must serve the listener
    /// from [`Injection::take_announcements`], or the calls never return.
    #[must_use]
    pub fn announcing(self) -> Injector {
        Injector { announces: true, ..self }
    }

    /// Begins to put an agent into the memory of process `pid`. With `uffd_device` (an open
    /// `/dev/userfaultfd`) the agent needs no privilege for its userfaultfds.
    ///
    /// # Errors
    /// [`InjectError`] if the injection is impossible from the start; the program is untouched.
    pub fn begin(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
    ) -> Result<Injection, InjectError> {
        self.begin_as(pid, uffd_device, false, false)
    }

    /// As [`Injector::begin`] or, with `holds`, [`Injector::begin_holding`], for a process whose
    /// calls are announced already, since it descends from one that was armed.
    ///
    /// # Errors
    /// As [`Injector::begin`].
    pub fn begin_heard(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
        holds: bool,
    ) -> Result<Injection, InjectError> {
        self.begin_as(pid, uffd_device, holds, true)
    }

    /// [`Injector::begin`] for a program that must not run without its agent: all its threads are
    /// stopped until [`Injection::let_go`]. If the calling thread ends before that, the program is
    /// killed.
    ///
    /// # Errors
    /// As [`Injector::begin`].
    pub fn begin_holding(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
    ) -> Result<Injection, InjectError> {
        self.begin_as(pid, uffd_device, true, false)
    }

    fn begin_as(
        &self,
        pid: i32,
        uffd_device: Option<BorrowedFd<'_>>,
        holds: bool,
        is_heard: bool,
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
        let known = process::own_filters() + u32::from(is_heard);
        let seccomp = seccomp(&status, known);
        let is_alone = process::threads(pid).is_ok_and(|threads| threads.len() == 1);
        let others = if holds && !is_alone { Others::stop(pid, tid) } else { Others::none(pid) };
        let seized = seize_thread(pid, tid, seccomp, &status, known)?;
        let is_executing = seized.is_none();
        // The other threads must still be resumed.
        let tracee = seized.unwrap_or_else(|| Tracee::none(pid, tid));
        Ok(Injection {
            pid,
            tracee,
            others,
            holds,
            restored: false,
            is_over: false,
            // The first poll returns the failure.
            state: if is_executing { State::Ended } else { State::Stopping },
            saved: None,
            region: None,
            magic: random(),
            raised: None,
            dispatch: None,
            seccomp,
            is_strict: status.is_strict,
            intermediate: 0,
            newborn: None,
            listening_at: -1,
            announces: self.announces,
            announcements: Announcements::None,
            is_heard,
            agent: None,
            lost: None,
            error: is_executing.then_some(InjectError::Executing),
            deferred: None,
            known_filters: known,
            cancelled: false,
            device,
            inherited: None,
            not_send: PhantomData,
        })
    }
}

/// Whose filters a thread is under, of which `known` would be ours. The keeper itself is under some
/// of these, as everything in a container is: the program cannot have removed them, and they allow
/// the injection's calls. If its calls are announced, one more is the keeper's, which allows them
/// too.
fn seccomp(status: &Status, known: u32) -> Seccomp {
    match (status.filters > known || status.is_strict, status.filters) {
        (true, _) => Seccomp::Theirs,
        (false, 0) => Seccomp::None,
        (false, _) => Seccomp::Ours,
    }
}

/// Seizes a thread and asks it to stop; none while it executes another program.
fn seize_thread(
    pid: i32,
    tid: i32,
    seccomp: Seccomp,
    status: &Status,
    known: u32,
) -> Result<Option<Tracee>, InjectError> {
    match Tracee::seize(pid, tid, seccomp) {
        Ok(tracee) => {
            // A thread that died since is found by the first look.
            let _ = tracee.interrupt();
            Ok(Some(tracee))
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(match error.raw_os_error() {
            Some(libc::ESRCH) => InjectError::Gone,
            Some(libc::EOPNOTSUPP) if status.is_strict => InjectError::Strict,
            Some(libc::EOPNOTSUPP) => {
                InjectError::Filtered { filters: status.filters.saturating_sub(known) }
            }
            _ => InjectError::Attach(error),
        }),
    }
}
