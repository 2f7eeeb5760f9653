//! The capabilities that `casemate setup` grants an ordinary user's keeper.
//!
//! CAP_SYS_PTRACE is needed for the fork event of userfaultfd (AISE/BMT's fork without
//! re-encryption). Both are for programs that have closed themselves to their own user
//! (`PR_SET_DUMPABLE` 0): with the first the keeper traces them, with the second it opens what
//! `/proc` shows to its owner alone, which is root then.

use std::io;

const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_SYS_PTRACE: u32 = 19;

/// Leaves an ordinary user's keeper these capabilities and no other (root keeps what it has).
///
/// `only_own_processes`: all processes of the run are this user's, and none can become another's.
/// Then CAP_SYS_PTRACE stays in effect. Otherwise a program of another user could come under the
/// pager, whose memory this user may not read.
pub fn keep(only_own_processes: bool) {
    // SAFETY: geteuid takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0
        && let Some(sets) = Sets::now()
    {
        let trace = sets.permitted & (1 << CAP_SYS_PTRACE);
        let read = sets.permitted & (1 << CAP_DAC_READ_SEARCH);
        match only_own_processes {
            true => Sets { effective: trace, permitted: trace | read, inheritable: 0 }.set(),
            false => Sets { effective: 0, permitted: trace, inheritable: 0 }.set(),
        }
    }
}

/// Runs `f` with CAP_SYS_PTRACE in effect, if it is permitted.
pub fn with_ptrace<T>(f: impl FnOnce() -> T) -> T {
    with(CAP_SYS_PTRACE, f)
}

/// Opens a file below `/proc/PID` by `open`: once more, with CAP_DAC_READ_SEARCH in effect, if it
/// is refused and that is permitted.
pub(super) fn open_closed<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            with(CAP_DAC_READ_SEARCH, open)
        }
        answer => answer,
    }
}

/// Only for the calling thread: capabilities are a thread's own.
fn with<T>(capability: u32, f: impl FnOnce() -> T) -> T {
    let Some(before) = Sets::now() else { return f() };
    let raised = before.permitted & (1 << capability);
    Sets { effective: before.effective | raised, ..before }.set();
    let result = f();
    before.set();
    result
}

/// The low words of a thread's sets, which hold both capabilities.
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

impl Sets {
    fn now() -> Option<Self> {
        let header = [CAPABILITY_VERSION_3, 0];
        let mut data = [0u32; 6];
        // SAFETY: version 3 reads a header of two words and fills two triples of words.
        let r = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), data.as_mut_ptr()) };
        let [effective, permitted, inheritable, ..] = data;
        (r == 0).then_some(Sets { effective, permitted, inheritable })
    }

    fn set(self) {
        let header = [CAPABILITY_VERSION_3, 0];
        let mut data = [0u32; 6];
        // SAFETY: as in `now`; the high words are read first so that they stay.
        unsafe {
            libc::syscall(libc::SYS_capget, header.as_ptr(), data.as_mut_ptr());
            data[..3].copy_from_slice(&[self.effective, self.permitted, self.inheritable]);
            libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Root of a test has both in effect, or neither is permitted: what `f` sees is what there was,
    /// and afterwards nothing has changed.
    #[test]
    fn a_refused_file_is_asked_for_once_more_and_another_error_is_not() {
        let tries = |number: i32| {
            let seen = RefCell::new(0);
            let answer = open_closed(|| {
                *seen.borrow_mut() += 1;
                Err::<(), _>(io::Error::from_raw_os_error(number))
            });
            assert_eq!(answer.expect_err("refused").raw_os_error(), Some(number));
            seen.into_inner()
        };
        assert_eq!([libc::EACCES, libc::ENOENT, libc::ESRCH].map(tries), [2, 1, 1]);
    }

    #[test]
    fn a_capability_is_in_effect_for_as_long_as_it_is_needed() {
        let sets = || Sets::now().expect("of this thread");
        let before = sets();
        let dropped = before.effective & !(1 << CAP_DAC_READ_SEARCH);
        Sets { effective: dropped, ..before }.set();
        let bit = before.permitted & (1 << CAP_DAC_READ_SEARCH);
        let during = with(CAP_DAC_READ_SEARCH, || sets().effective);
        assert_eq!((during, sets().effective), (dropped | bit, dropped));
        before.set();
    }
}
