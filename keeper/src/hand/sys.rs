//! System calls that take raw memory, wrapped so that the rest of the module is safe code.
use crate::config::PAGE_BYTES;
use crate::sys::shortage::told;
use crate::sys::uffd::abi;
use std::ffi::c_void;
use std::io::{self, Error};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

fn checked(result: i64) -> io::Result<i64> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn descriptor(result: i64) -> io::Result<OwnedFd> {
    let fd = checked(result)? as RawFd;
    // SAFETY: callers pass the result of a call that makes a descriptor, so the OwnedFd is its only
    // owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let opened = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) });
    told(format_args!("a descriptor of process {pid}"), opened)
}

/// Of a thread, which may be another than the first (Linux 6.9; before that, of its process).
pub(super) fn pidfd_open_thread(tid: i32, pid: i32) -> io::Result<OwnedFd> {
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    // SAFETY: touches no memory.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, PIDFD_THREAD) })
        .or_else(|_| pidfd_open(pid))
}

pub(super) fn pidfd_getfd(pidfd: BorrowedFd<'_>, fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let taken =
        descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) });
    told("a descriptor of a program's", taken)
}

pub(super) fn pidfd_kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a null siginfo is allowed.
    checked(unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, 0_usize, 0)
    })?;
    Ok(())
}

/// Waits for the process of a pidfd to end; true if it has.
pub(super) fn pidfd_ended(pidfd: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd.
    unsafe { libc::poll(&raw mut poll, 1, patience.as_millis() as i32) > 0 }
}

/// Reaps the child of a pidfd if it has ended and is ours.
pub(super) fn pidfd_reap(pidfd: BorrowedFd<'_>) {
    // SAFETY: a null siginfo is allowed by the kernel.
    unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            pidfd.as_raw_fd(),
            0_usize,
            libc::WEXITED | libc::WNOHANG | libc::__WALL,
            0_usize,
        );
    }
}

/// Reads another process's memory; all of it or an error.
pub(super) fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: buffer.len() };
    // SAFETY: the local range is the buffer; the remote range is checked by the kernel.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    if checked(read as i64)? as usize == buffer.len() {
        Ok(())
    } else {
        Err(Error::from_raw_os_error(libc::EFAULT))
    }
}

/// Writes to another process's memory, waiting for pages that are not there; all of it or an error.
pub(super) fn write_memory(pid: i32, address: u64, bytes: &[u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: bytes.len() };
    // SAFETY: the local range is only read; the remote range is checked by the kernel.
    let written =
        unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    if checked(written as i64)? as usize == bytes.len() {
        Ok(())
    } else {
        Err(Error::from_raw_os_error(libc::EFAULT))
    }
}

/// An eventfd that was not rung yet.
pub(super) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    descriptor(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }.into())
}

/// Waits until `bell` was rung, which is silenced, or `beside` can be read.
pub(super) fn wait_for_either(bell: BorrowedFd<'_>, beside: BorrowedFd<'_>, patience: Duration) {
    let mut polls = [bell, beside].map(|fd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let mut rung = 0_u64;
    // SAFETY: two live pollfds; the read fills a live local of eight bytes.
    unsafe {
        libc::poll(polls.as_mut_ptr(), 2, patience.as_millis() as i32);
        if polls[0].revents != 0 {
            libc::read(bell.as_raw_fd(), (&raw mut rung).cast(), 8);
        }
    }
}

pub(super) fn read_u64(pid: i32, address: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    read_memory(pid, address, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Makes the calling process the one to which orphans below it are given.
pub(super) fn become_subreaper() -> io::Result<()> {
    // SAFETY: touches no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }.into())?;
    Ok(())
}

/// Makes the calling thread's short sleeps as short as they are asked for.
pub(super) fn nap_exactly() -> io::Result<()> {
    // SAFETY: touches no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) }.into())?;
    Ok(())
}

pub(super) fn current_thread() -> i32 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { libc::gettid() }
}

/// Leaves every signal of the calling thread to others.
pub(super) fn block_all_signals() -> io::Result<()> {
    // SAFETY: a set of signals is plain integers, filled before it is used; both calls get live
    // locals.
    let error = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut())
    };
    if error == 0 { Ok(()) } else { Err(Error::from_raw_os_error(error)) }
}

/// Lets the calling thread receive a signal.
pub(super) fn receive(signal: i32) -> io::Result<()> {
    // SAFETY: a set of signals is plain integers, filled before it is used; both calls get live
    // locals.
    let error = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut())
    };
    if error == 0 { Ok(()) } else { Err(Error::from_raw_os_error(error)) }
}

/// What handles a signal: its number, what is known of it, the interrupted thread's `ucontext_t`.
pub(super) type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut std::ffi::c_void);

/// Has a signal handled, and calls that it interrupts made again. The handler must do only what is
/// safe in one.
pub(super) fn install(signal: i32, handler: Handler) -> io::Result<()> {
    // SAFETY: the action is plain data, filled before use; the handler has the type that SA_SIGINFO
    // asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        checked(libc::sigaction(signal, &raw const action, std::ptr::null_mut()).into())?;
    }
    Ok(())
}

/// Sends a signal to a thread of this process.
pub(super) fn signal_own_thread(tid: i32, signal: i32) {
    // SAFETY: touches no memory.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
}

/// Sends a signal to a process that may be gone.
pub(super) fn kill(pid: i32, signal: i32) {
    // SAFETY: touches no memory.
    unsafe { libc::kill(pid, signal) };
}

/// Whether a thread runs under SCHED_DEADLINE and its children would too.
pub(super) fn has_deadline(tid: i32) -> bool {
    // SAFETY: touches no memory.
    unsafe { libc::sched_getscheduler(tid) == libc::SCHED_DEADLINE }
}

pub(super) fn current_cpu() -> i32 {
    // SAFETY: touches no memory.
    unsafe { libc::sched_getcpu() }
}

/// Binds a process's only thread to one CPU; false if that was refused.
pub(super) fn bind_to_cpu(pid: i32, cpu: i32) -> bool {
    let Some(cpu) = usize::try_from(cpu).ok().filter(|c| *c < libc::CPU_SETSIZE as usize) else {
        return false;
    };
    // SAFETY: an all-zero cpu_set_t is the empty set; the index was checked; the set lives on the
    // stack.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// Sleeps while `*word == seen`, no longer than `patience`.
pub(super) fn futex_wait(word: &AtomicU32, seen: u32, patience: Duration) {
    let time = libc::timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    // SAFETY: the word and the timeout outlive the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const time);
    }
}

pub(super) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1);
    }
}

/// Sends descriptors (at most four) with eight bytes over a socket, without waiting.
pub(super) fn send_descriptors(socket: BorrowedFd<'_>, fds: &[RawFd]) -> io::Result<()> {
    #[repr(C, align(8))]
    struct Control {
        header: libc::cmsghdr,
        fds: [RawFd; 5],
    }
    let bytes = size_of_val(fds);
    let mut control = Control {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + bytes,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        fds: [-1; 5],
    };
    control.fds[..fds.len()].copy_from_slice(fds);
    let mut greeting = *b"casemate";
    let mut iov = libc::iovec { iov_base: greeting.as_mut_ptr().cast(), iov_len: greeting.len() };
    // SAFETY: an all-zero msghdr is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut iov;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<libc::cmsghdr>() + bytes.next_multiple_of(8);
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: every pointer in the message is to a live local of the length beside it.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    checked(sent as i64)?;
    Ok(())
}

/// Completes a userfaultfd's handshake with the given features.
pub(super) fn uffd_api(uffd: BorrowedFd<'_>, features: u64) -> io::Result<()> {
    let mut api = abi::ApiArg { api: abi::API, features, ioctls: 0 };
    // SAFETY: the struct is the one that UFFDIO_API reads and writes.
    checked(unsafe { libc::ioctl(uffd.as_raw_fd(), abi::UFFDIO_API, &raw mut api) }.into())?;
    Ok(())
}

/// Registers a range for missing pages.
pub(super) fn uffd_register_missing(uffd: BorrowedFd<'_>, start: u64, len: u64) -> io::Result<()> {
    let range = abi::RangeArg { start, len };
    let mut register = abi::RegisterArg { range, mode: abi::REGISTER_MISSING, ioctls: 0 };
    // SAFETY: the struct is the one that UFFDIO_REGISTER reads and writes.
    let done = unsafe { libc::ioctl(uffd.as_raw_fd(), abi::UFFDIO_REGISTER, &raw mut register) };
    checked(done.into())?;
    Ok(())
}

/// Pages that threads wait for at a userfaultfd, without waiting for more.
pub(super) fn uffd_missing(uffd: BorrowedFd<'_>) -> Vec<u64> {
    const MESSAGE_BYTES: usize = size_of::<abi::RawMessage>();
    let mut found = Vec::new();
    let mut message = abi::RawMessage::default();
    // SAFETY: the buffer is live and its size is passed exactly; the descriptor does not block.
    while unsafe { libc::read(uffd.as_raw_fd(), message.as_mut_ptr().cast(), MESSAGE_BYTES) }
        == MESSAGE_BYTES as isize
    {
        found.extend(abi::faulted_page(&message));
    }
    found
}

/// Fills the missing pages of a range with zeros and wakes the threads that wait for them.
pub(super) fn uffd_fill_zeros(uffd: BorrowedFd<'_>, range: Range<u64>) {
    for start in range.step_by(PAGE_BYTES) {
        let range = abi::RangeArg { start, len: PAGE_BYTES as u64 };
        let mut zeros = abi::ZeroArg { range, mode: 0, done: 0 };
        // SAFETY: the request is a live local of the ioctl's size. Pages that are there already are
        // refused, which is fine.
        unsafe { libc::ioctl(uffd.as_raw_fd(), abi::UFFDIO_ZEROPAGE, &raw mut zeros) };
    }
}

/// Puts the calling thread under a filter, of which the result is the listener's number.
pub(super) fn listen_to_self(filter: &[[u8; 8]]) -> io::Result<i32> {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let len = filter.len().try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut().cast() };
    // SAFETY: the kernel reads so many instructions of eight bytes, which live for the call,
    // wherever they lie.
    let number = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number as i32) }
}
