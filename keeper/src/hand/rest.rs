//! What a thread is doing, and the effect that a stop has on it. Several system calls end early if
//! their caller is stopped and continued, though no signal handler ran (signal(7), "Interruption of
//! system calls"), and a partly done transfer that waits returns short. Threads that sleep in calls
//! are therefore not stopped.
use super::process::Status;
use crate::sys::procfs;

/// What a thread is doing, in the order of preference for being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rest {
    /// It runs, or waits for a processor: in its program or in a call.
    Runs,
    /// It waits for a page.
    Faults,
    /// It sleeps in a call that the kernel continues without a visible effect.
    Restarts,
    /// It sleeps in a call that is made again with `restart_syscall`, which a filter may forbid.
    RestartsByName,
    /// It sleeps in a call that the keeper must repeat (`settle.rs`); its time-out starts again.
    Repeats,
    /// It sleeps in a call of unknown behaviour.
    Unknown,
    /// It sleeps in a call that may have been done in part.
    Transfers,
    /// It waits for something that cannot be interrupted.
    Uninterruptible,
    /// It has ended.
    Ended,
}

impl Rest {
    pub(super) fn of(pid: i32, tid: i32) -> Rest {
        let Ok(status) = Status::read(pid, tid) else { return Rest::Ended };
        match status.state {
            b'Z' | b'X' => Rest::Ended,
            b'R' => Rest::Runs,
            b'D' => Rest::Uninterruptible,
            _ => procfs::text(format!("/proc/{pid}/task/{tid}/syscall"))
                .map_or(Rest::Unknown, |text| Rest::in_call(&text)),
        }
    }

    /// Whether it must be stopped, since it may touch memory at any time.
    pub(super) fn must_be_held(self) -> bool {
        matches!(self, Rest::Runs | Rest::Faults)
    }

    /// Whether a thread can be stopped, wherever it is, without an effect that it sees but a
    /// time-out that begins anew. Of the calls that may have been done in part these are completed
    /// ([`release`](super::release)) or have done nothing while they sleep.
    pub(super) fn can_be_stopped(pid: i32, tid: i32) -> bool {
        let is_stopped = Status::read(pid, tid).is_ok_and(|status| status.state == b'T');
        is_stopped
            || match Rest::of(pid, tid) {
                Rest::Unknown => false,
                Rest::Transfers => procfs::text(format!("/proc/{pid}/task/{tid}/syscall"))
                    .is_ok_and(|text| is_completed(&text)),
                _ => true,
            }
    }

    /// `/proc` says: the call's number, its arguments, the stack, the next instruction.
    fn in_call(text: &str) -> Rest {
        let mut words = text.split_ascii_whitespace();
        let number = match words.next() {
            Some("running") => return Rest::Runs,
            Some(word) => word.parse().unwrap_or(i64::MAX),
            None => return Rest::Unknown,
        };
        match number {
            -1 => Rest::Faults,
            libc::SYS_futex
            | libc::SYS_read
            | libc::SYS_pause
            | libc::SYS_rt_sigsuspend
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_flock
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_ppoll
            | libc::SYS_accept
            | libc::SYS_accept4
            // Announced, and not received yet: in no other case does one sleep in these that could
            // be interrupted.
            | libc::SYS_fork
            | libc::SYS_vfork
            | libc::SYS_clone
            | libc::SYS_clone3 => Rest::Restarts,
            libc::SYS_poll
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_restart_syscall => Rest::RestartsByName,
            libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_connect
            | libc::SYS_msgrcv
            | libc::SYS_io_getevents => Rest::Repeats,
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_pwrite64
            | libc::SYS_readv
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_sendfile
            | libc::SYS_splice
            | libc::SYS_tee
            | libc::SYS_vmsplice
            | libc::SYS_copy_file_range
            | libc::SYS_io_uring_enter => Rest::Transfers,
            _ => Rest::Unknown,
        }
    }
}

/// Whether what a stop leaves undone of this call is done afterwards.
fn is_completed(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse().ok());
    let third =
        words.nth(2).and_then(|word| i64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    match number {
        Some(libc::SYS_write | libc::SYS_sendto | libc::SYS_recvfrom | libc::SYS_sendfile) => true,
        // It sleeps until the first byte is there, unless it waits for all.
        Some(libc::SYS_recvmsg) => third.is_some_and(|flags| flags as i32 & libc::MSG_WAITALL == 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_interrupted_only_if_the_rest_of_it_is_made() {
        let call = |number: i64, flags: i32| {
            is_completed(&format!("{number} 0x3 0x7ffc0000 {flags:#x} 0x0 0x0 0x0 0x7f 0x7f\n"))
        };
        assert!(call(libc::SYS_write, 0) && call(libc::SYS_recvmsg, 0));
        assert!(!call(libc::SYS_recvmsg, libc::MSG_WAITALL));
        assert!(!call(libc::SYS_writev, 0) && !call(libc::SYS_io_uring_enter, 0));
        assert!(!is_completed("running\n") && !is_completed("47\n") && !is_completed(""));
    }

    #[test]
    fn who_sleeps_in_a_call_is_known_by_it() {
        let sleeps =
            |number: i64| Rest::in_call(&format!("{number} 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n"));
        assert_eq!(sleeps(libc::SYS_futex), Rest::Restarts);
        assert_eq!(sleeps(libc::SYS_clone), Rest::Restarts);
        assert_eq!(sleeps(libc::SYS_write), Rest::Transfers);
        assert_eq!(Rest::in_call("-1 0x7ffc0000 0x7f00\n"), Rest::Faults);
        assert_eq!(Rest::in_call("running\n"), Rest::Runs);
        assert!(sleeps(libc::SYS_write) > sleeps(libc::SYS_epoll_wait));
        assert!(!sleeps(libc::SYS_poll).must_be_held() && Rest::Faults.must_be_held());
    }
}
