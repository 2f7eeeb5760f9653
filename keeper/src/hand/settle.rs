//! The registers with which a thread must be resumed so that the stop has no visible effect.
use super::sys;
use super::tracee::Tracee;
use libc::user_regs_struct as Registers;

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Calls whose `EINTR` says "nothing was done": they can be made again with the same arguments.
/// (Most others return a restart code, which the kernel handles when the thread goes on.)
const REPEATABLE: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    // The repeated call waits for the connection that it has started.
    libc::SYS_connect,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
];

/// Calls that the kernel never ends with `EINTR` of its own. Where they are announced, the wait for
/// the keeper ends with [`ERESTARTSYS`] if the stop comes before the keeper has received them.
const UNINTERRUPTIBLE: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
];

/// The kernel's own code for "make the call again, unless a signal handler without `SA_RESTART` is
/// to run: then it is `EINTR`".
const ERESTARTSYS: i64 = 512;

/// The kernel's own code for "make the call again, whatever handler runs".
const ERESTARTNOINTR: i64 = 513;

/// The kernel's own code for "make the call again, unless a signal handler is to run: then it is
/// `EINTR`".
const ERESTARTNOHAND: i64 = 514;

/// Repeats a call that ended in `EINTR` because of the stop. When the thread is resumed, the kernel
/// decides whether a signal handler must see the `EINTR`: none does of a call that has none. (A
/// signal that comes while the thread is stopped for long, as by a lock, is such a handler's.)
pub(super) fn repeat_if_interrupted(regs: &mut Registers) {
    let call = regs.orig_rax as i64;
    if regs.rax as i64 == -ERESTARTSYS && UNINTERRUPTIBLE.contains(&call) {
        regs.rax = -ERESTARTNOINTR as u64;
    }
    let interrupted = regs.rax as i64 == -i64::from(libc::EINTR);
    if interrupted && REPEATABLE.contains(&(regs.orig_rax as i64)) {
        regs.rax = -ERESTARTNOHAND as u64;
    }
}

/// The kernel's own code for "continue with `restart_syscall`".
const ERESTART_RESTARTBLOCK: i64 = 516;

/// Whether the kernel will continue the thread's call under another number.
pub(super) fn restarts_by_name(regs: &Registers) -> bool {
    regs.rax as i64 == -ERESTART_RESTARTBLOCK && regs.orig_rax as i64 >= 0
}

/// Repeats the thread's call as it was made; the thread is stopped after its instruction. A
/// time-out starts again.
pub(super) fn begin_anew(regs: &mut Registers) {
    regs.rax = regs.orig_rax;
    // Marks the thread as in no call, so that the kernel restarts nothing.
    regs.orig_rax = u64::MAX;
    regs.rip = regs.rip.wrapping_sub(2);
}

/// Whether the instruction before the next one is a system call.
pub(super) fn ends_in_call(tracee: &Tracee, registers: &Registers) -> bool {
    let mut instruction = [0; 2];
    sys::read_memory(tracee.tid(), registers.rip.wrapping_sub(2), &mut instruction).is_ok()
        && instruction == SYSCALL
}

/// The registers for the rest of a transfer that returned short; the thread is stopped after its
/// instruction.
pub(super) fn rest_of_transfer(regs: &Registers) -> Option<Registers> {
    let done = u64::try_from(regs.rax as i64).ok().filter(|done| *done > 0)?;
    let flags = regs.r10 as i32;
    let mut rest = *regs;
    match regs.orig_rax as i64 {
        libc::SYS_write => {}
        libc::SYS_sendto if flags & libc::MSG_DONTWAIT == 0 => {}
        libc::SYS_recvfrom
            if flags & (libc::MSG_WAITALL | libc::MSG_DONTWAIT) == libc::MSG_WAITALL => {}
        libc::SYS_sendfile if done < regs.r10 => {
            rest.r10 -= done;
            begin_anew(&mut rest);
            return Some(rest);
        }
        _ => return None,
    }
    if done >= regs.rdx || flags & libc::MSG_PEEK != 0 && regs.orig_rax as i64 == libc::SYS_recvfrom
    {
        return None;
    }
    rest.rsi += done;
    rest.rdx -= done;
    begin_anew(&mut rest);
    Some(rest)
}

/// A restartable sequence (rseq) as the program described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CriticalSection {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) abort: u64,
}

impl CriticalSection {
    pub(super) const BYTES: usize = 32;

    pub(super) fn parse(bytes: &[u8; Self::BYTES]) -> CriticalSection {
        let word = |i: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_le_bytes(b)
        };
        CriticalSection { start: word(1), length: word(2), abort: word(3) }
    }

    /// Sends a thread inside the section to the abort handler, as the kernel does when it
    /// interrupts one. The kernel sees the thread only at the injected calls, which are outside the
    /// section.
    pub(super) fn abort_if_inside(&self, regs: &mut Registers) {
        if regs.rip.wrapping_sub(self.start) < self.length {
            regs.rip = self.abort;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel without a listener returns -513 for a fork, and no error for a mapping.
    #[test]
    fn an_announced_call_that_the_kernel_does_not_interrupt_is_made_again_whatever_handler_runs() {
        let after = |call, result| {
            let mut regs = registers(call, result);
            repeat_if_interrupted(&mut regs);
            regs.rax as i64
        };
        assert_eq!(after(libc::SYS_clone, -512), -513);
        assert_eq!(after(libc::SYS_mmap, -512), -513);
        assert_eq!(after(libc::SYS_futex, -512), -512);
        assert_eq!(after(libc::SYS_wait4, -512), -512);
        assert_eq!(after(libc::SYS_clone, -libc::EAGAIN as i64), -libc::EAGAIN as i64);
    }

    fn registers(call: i64, result: i64) -> Registers {
        // SAFETY: registers are plain integers.
        let mut regs: Registers = unsafe { std::mem::zeroed() };
        (regs.orig_rax, regs.rax, regs.rip) = (call as u64, result as u64, 1002);
        regs
    }

    #[test]
    fn an_interrupted_call_is_left_to_the_kernel_if_it_can_be_repeated() {
        let cases = [
            (libc::SYS_epoll_wait, -4, -514),
            (libc::SYS_epoll_wait, 3, 3),
            (libc::SYS_connect, -4, -514),
            (libc::SYS_close, -4, -4),
            (-1, -4, -4),
        ];
        for (call, result, after) in cases {
            let mut regs = registers(call, result);
            repeat_if_interrupted(&mut regs);
            assert_eq!((regs.orig_rax as i64, regs.rax as i64, regs.rip), (call, after, 1002));
        }
    }

    #[test]
    fn the_rest_of_a_short_transfer_is_asked_for() {
        let transfer = |call, result, flags: i32| {
            let mut regs = registers(call, result);
            (regs.rsi, regs.rdx, regs.r10) = (5000, 100, flags as u64);
            rest_of_transfer(&regs)
        };
        let rest = transfer(libc::SYS_write, 40, 0).expect("60 bytes are left");
        assert_eq!((rest.rax as i64, rest.rip), (libc::SYS_write, 1000));
        assert_eq!((rest.rsi, rest.rdx, rest.orig_rax), (5040, 60, u64::MAX));
        assert!(transfer(libc::SYS_write, 100, 0).is_none());
        assert!(transfer(libc::SYS_write, -4, 0).is_none());
        assert!(transfer(libc::SYS_read, 40, 0).is_none());
        assert!(transfer(libc::SYS_recvfrom, 40, 0).is_none());
        assert!(transfer(libc::SYS_recvfrom, 40, libc::MSG_WAITALL).is_some());
        assert!(transfer(libc::SYS_sendto, 40, libc::MSG_DONTWAIT).is_none());
    }

    #[test]
    fn a_thread_inside_a_restartable_sequence_is_sent_to_its_abort_handler() {
        let section = CriticalSection { start: 1000, length: 10, abort: 5000 };
        for (rip, after) in [(999, 999), (1000, 5000), (1009, 5000), (1010, 1010)] {
            let mut regs = registers(-1, 0);
            regs.rip = rip;
            section.abort_if_inside(&mut regs);
            assert_eq!(regs.rip, after);
        }
    }
}
