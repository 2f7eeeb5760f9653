//! Processes: pidfds, waiting, signals, and properties of the keeper's own process.

use super::shortage::told;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor that becomes readable when the process ends.
pub fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed; the descriptor is new, so the OwnedFd is its only owner.
    let opened = unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    };
    told(format_args!("a descriptor of process {pid}"), opened)
}

/// A descriptor that becomes readable when the calling thread ends, whatever its process does
/// (Linux 6.9).
pub fn pidfd_of_this_thread() -> io::Result<OwnedFd> {
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    // SAFETY: no pointers are passed; the descriptor is new, so the OwnedFd is its only owner.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, libc::gettid(), PIDFD_THREAD);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}

/// Waits until a descriptor is readable, as a pidfd is when its process has ended, but no longer
/// than that.
pub fn becomes_readable(fd: &impl AsRawFd, timeout_ms: i32) {
    let mut fd = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure is live for the call.
    unsafe { libc::poll(&mut fd, 1, timeout_ms) };
}

/// Sends a signal to exactly the process of a pidfd.
pub fn signal_pidfd(fd: &impl AsRawFd, signal: i32) -> io::Result<()> {
    // SAFETY: a null siginfo is allowed and means "as kill(2) would fill it".
    let r = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            fd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a signal by number; the process may be gone.
pub fn signal(pid: i32, signal: i32) {
    if pid > 1 {
        // SAFETY: kill(2) takes no pointers; the guard keeps process groups out.
        unsafe { libc::kill(pid, signal) };
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEnd {
    /// By exit.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
}

/// Reaps one child that has ended, if there is one: `pid` 0 means any. Stops of traced children
/// are left for the tracer.
pub fn reap(pid: i32) -> Option<(i32, ChildEnd)> {
    let (kind, id) = if pid == 0 { (libc::P_ALL, 0) } else { (libc::P_PID, pid as u32) };
    let flags = libc::WEXITED | libc::WNOHANG | libc::__WALL;
    // Peek first: a wait for exits would also consume a traced child's stop.
    let peeked = waitid(kind, id, flags | libc::WNOWAIT)?;
    let (peeked_pid, _) = ended(&peeked)?;
    let taken = waitid(libc::P_PID, peeked_pid as u32, flags)?;
    ended(&taken)
}

/// Waits for a child to end, and reaps it; none if there is no such child.
pub fn wait(pid: i32) -> Option<ChildEnd> {
    let info = waitid(libc::P_PID, pid as u32, libc::WEXITED | libc::__WALL)?;
    ended(&info).map(|(_, end)| end)
}

fn waitid(kind: libc::idtype_t, id: u32, flags: i32) -> Option<libc::siginfo_t> {
    // SAFETY: siginfo_t is plain data, live for the call, for which all zeros is valid.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let r = libc::waitid(kind, id, &mut info, flags);
        (r == 0 && info.si_pid() != 0).then_some(info)
    }
}

fn ended(info: &libc::siginfo_t) -> Option<(i32, ChildEnd)> {
    // SAFETY: waitid filled the child fields of this siginfo.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    match info.si_code {
        libc::CLD_EXITED => Some((pid, ChildEnd::Exited(status))),
        libc::CLD_KILLED | libc::CLD_DUMPED => Some((pid, ChildEnd::Signaled(status))),
        _ => None,
    }
}

/// Whether two processes share one address space; false where the kernel cannot tell.
pub fn same_memory(a: i32, b: i32) -> bool {
    const KCMP_VM: i32 = 1;
    // SAFETY: kcmp takes plain numbers here.
    unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0 }
}

/// Whether two threads share one table of descriptors; false where the kernel cannot tell.
pub fn same_descriptors(a: i32, b: i32) -> bool {
    const KCMP_FILES: i32 = 2;
    // SAFETY: kcmp takes plain numbers here.
    unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_FILES, 0, 0) == 0 }
}

/// Limits to which the agent's own mappings count. RLIMIT_MEMLOCK is not among them: these mappings
/// are not locked, except for a few.
const MEMORY_LIMITS: [u32; 2] = [libc::RLIMIT_AS, libc::RLIMIT_DATA];

fn limit(pid: i32, resource: u32) -> Option<libc::rlimit64> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: one live block is filled.
    let r = unsafe { libc::prlimit64(pid, resource, std::ptr::null(), &mut limit) };
    (r == 0).then_some(limit)
}

fn set_limit(pid: i32, resource: u32, limit: libc::rlimit64) {
    // SAFETY: one live block is read.
    unsafe { libc::prlimit64(pid, resource, &limit, std::ptr::null_mut()) };
}

/// Whether a process is under a limit on the memory that it maps.
pub fn is_limited(pid: i32) -> bool {
    let is_finite = |now: libc::rlimit64| now.rlim_cur != libc::RLIM64_INFINITY;
    MEMORY_LIMITS.into_iter().any(|resource| limit(pid, resource).is_some_and(is_finite))
}

/// How many bytes a thread may lock in memory; none if no limit holds for it, or it has ended.
pub fn lock_limit(tid: i32) -> Option<u64> {
    const CAP_IPC_LOCK: u32 = 14;
    let held = super::procfs::status_field(tid, "CapEff")?;
    let is_free = u64::from_str_radix(&held, 16).ok()? & 1 << CAP_IPC_LOCK != 0
        && is_in_first_user_namespace(tid);
    // Of another user's process it is only to be read.
    let now = limit(tid, libc::RLIMIT_MEMLOCK).map(|limit| limit.rlim_cur);
    let now = now.or_else(|| super::procfs::soft_limit(tid, "Max locked memory"))?;
    (!is_free && now != libc::RLIM64_INFINITY).then_some(now)
}

/// Whether a capability that a process has is one in the whole machine. Where that is not to be
/// seen, it counts as one.
fn is_in_first_user_namespace(pid: i32) -> bool {
    /// The kernel's number for it (`PROC_USER_INIT_INO`).
    const FIRST: &str = "user:[4026531837]";
    let name = super::procfs::link(format!("/proc/{pid}/ns/user"));
    name.map_or(true, |name| name.as_os_str() == FIRST)
}

/// Gives `to` the memory limits of `from`, raised by `more` bytes. Best effort: a limit that cannot
/// be set stays as it is.
pub fn copy_limits(from: i32, to: i32, more: u64) {
    for (resource, more) in MEMORY_LIMITS
        .map(|resource| (resource, more))
        .into_iter()
        .chain([(libc::RLIMIT_MEMLOCK, 0)])
    {
        if let (Some(theirs), Some(own)) = (limit(from, resource), limit(to, resource)) {
            let rlim_cur = theirs.rlim_cur.saturating_add(more).min(own.rlim_max);
            set_limit(to, resource, libc::rlimit64 { rlim_cur, ..own });
        }
    }
}

/// Removes the limits on mapped memory that [`copy_limits`] set.
pub fn lift_limits(pid: i32) {
    for resource in MEMORY_LIMITS {
        if let Some(own) = limit(pid, resource) {
            set_limit(pid, resource, libc::rlimit64 { rlim_cur: own.rlim_max, ..own });
        }
    }
}

/// Where a thread keeps its list of robust mutexes; none if it has none, or has ended.
pub fn robust_list(tid: i32) -> Option<u64> {
    let (mut head, mut len) = (0_u64, 0_usize);
    // SAFETY: the kernel fills two live locals of the size that it expects.
    let r = unsafe { libc::syscall(libc::SYS_get_robust_list, tid, &raw mut head, &raw mut len) };
    (r == 0 && head != 0).then_some(head)
}

/// Whether a thread is still there.
pub fn exists(tid: i32) -> bool {
    // SAFETY: signal 0 is none; no pointers are passed.
    let r = unsafe { libc::syscall(libc::SYS_tkill, tid, 0) };
    r == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Whether a thread is one of this process.
pub fn is_own_thread(tid: i32) -> bool {
    // SAFETY: signal 0 is none; no pointers are passed.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), tid, 0) == 0 }
}

/// Reads a word of another process's memory.
pub fn read_u64(pid: i32, address: u64) -> io::Result<u64> {
    let mut word = [0_u8; 8];
    let local = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 8 };
    // SAFETY: the local range is a live array; the kernel checks the remote one.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    match read {
        8 => Ok(u64::from_ne_bytes(word)),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
    }
}

/// Whether this user may have a say in what this process does: it is the same, or root.
pub fn is_ours(uid: u32) -> bool {
    // SAFETY: geteuid takes no arguments and cannot fail.
    uid == 0 || uid == unsafe { libc::geteuid() }
}

/// Whether a process has ended, by its pidfd.
pub fn has_ended(pidfd: &impl AsRawFd) -> bool {
    super::poll::readable(pidfd, Some(Duration::ZERO)).0
}

/// prctl(2) with one number.
pub fn control(option: i32, value: u64) -> io::Result<()> {
    // SAFETY: every option used in this crate takes plain numbers.
    let r = unsafe { libc::prctl(option, value, 0, 0, 0) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How much RAM and how much swap the machine has, in bytes; none where the kernel does not tell.
pub fn machine_memory() -> Option<(u64, u64)> {
    // SAFETY: sysinfo is plain data, for which zeros are valid, and the kernel fills it.
    let (told, info) = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        (libc::sysinfo(&mut info) == 0, info)
    };
    let bytes = |units: u64| units.saturating_mul(u64::from(info.mem_unit));
    told.then(|| (bytes(info.totalram), bytes(info.totalswap)))
}

/// The time that the threads of a process had processors so far; none if it has ended.
pub fn processor_time(pid: i32) -> Option<Duration> {
    // A clock for each process: its number, inverted, above the kind of clock (`CPUCLOCK_SCHED`).
    let clock = (!pid << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills one timespec.
    let r = unsafe { libc::clock_gettime(clock, &mut time) };
    (r == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Gives the calling process a name of at most 15 bytes.
pub fn set_name(name: &std::ffi::CStr) {
    // SAFETY: the string is NUL-terminated and live; the kernel copies 16 bytes at most.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Has `/proc/PID/cmdline` show `name`, as far as it fits in the place of the arguments, for the
/// calling process: a forked child that executes no program and does not read its arguments.
pub fn set_arguments(name: &std::ffi::CStr) {
    let own = std::process::id() as i32;
    let [place, _] = super::procfs::arguments_and_environment(own);
    let room_bytes = (place.end - place.start) as usize;
    if room_bytes == 0 {
        return;
    }
    let name = &name.to_bytes()[..name.count_bytes().min(room_bytes - 1)];
    // SAFETY: the kernel has put the arguments there, on the stack, which is writable, and this
    // process, which has one thread, does not read them; `name` lies elsewhere, and is shorter.
    unsafe {
        let place = place.start as *mut u8;
        place.write_bytes(0, room_bytes);
        place.copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
}

/// User and system time of the calling process so far.
pub fn own_cpu_seconds() -> f64 {
    // SAFETY: rusage is plain data that the kernel fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
