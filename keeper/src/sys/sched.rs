//! Scheduling of the keeper's own threads, and where a program's thread last ran.

use super::procfs::KeptOpen;
use std::cell::Cell;
use std::io;
use std::time::Duration;

/// Binds the calling thread to one CPU. Fails harmlessly where the CPU is not allowed.
pub fn pin_self(cpu: usize) -> io::Result<()> {
    allow_self(&[cpu])
}

fn allow_self(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: `cpu_set_t` is a plain bit array for which all zeros is valid, and CPU_SET writes
    // inside it (it ignores numbers beyond its size).
    let r = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The CPUs that the calling thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: as in `pin_self`; the kernel writes at most the size that is passed.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: CPU_ISSET only reads inside the set.
    let cpus: Vec<usize> =
        (0..libc::CPU_SETSIZE as usize).filter(|&c| unsafe { libc::CPU_ISSET(c, &set) }).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// The CPU that the calling thread runs on.
pub fn own_cpu() -> usize {
    // SAFETY: takes nothing. It fails only on kernels without the call, which have no userfaultfd.
    unsafe { libc::sched_getcpu() }.max(0) as usize
}

/// Moves the calling thread to a CPU. It may run on any of `cpus` from then on, and its own threads
/// as well, but a real-time thread stays until that CPU is taken by another.
pub fn move_self(cpu: usize, cpus: &[usize]) -> io::Result<()> {
    allow_self(&[cpu])?;
    allow_self(cpus)
}

/// Gives the calling thread the idle policy. A CPU whose only runnable thread is idle-class counts
/// as idle when the scheduler places a woken thread, so the program stays where its handler is.
pub fn idle_self() -> io::Result<()> {
    set_idle(0)
}

/// Gives a thread (0: the calling one) the idle policy.
pub fn set_idle(tid: i32) -> io::Result<()> {
    // SAFETY: the parameter block is live for the call and its only field is zero, as required.
    let r = unsafe {
        let param: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(tid, libc::SCHED_IDLE, &param)
    };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a thread has the idle policy: on a busy machine it gets no time.
pub fn is_idle(tid: i32) -> bool {
    // SAFETY: takes and returns numbers.
    unsafe { libc::sched_getscheduler(tid) == libc::SCHED_IDLE }
}

/// Gives a thread (0: the calling one) precedence over ordinary ones: as root by a better nice
/// value, otherwise by a shorter slice, with which a woken thread need not wait for the end of a
/// long slice (Linux 6.12; older kernels ignore it). Best effort: without either nothing changes.
///
/// For the watcher there is [`hurry_self`]. False if the thread goes on as it was.
pub fn hurry(tid: i32) -> bool {
    set_ordinary(tid, -19).or_else(|_| set_ordinary(tid, 0)).is_ok()
}

/// The number of the calling thread.
pub fn own_tid() -> i32 {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { libc::gettid() }
}

/// Gives a thread the ordinary policy with a short slice. A thread of the idle policy may change to
/// it only if it may have that nice value: root may, others need a limit that is rarely set.
pub fn set_ordinary(tid: i32, nice: i32) -> io::Result<()> {
    const SLICE_NS: u64 = 100_000;
    /// `struct sched_attr` of linux/sched/types.h, as of its first version.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the block is live for the call, and says its own size.
    let r = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

thread_local! {
    static IS_REAL_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling thread precedence over ordinary ones by a real-time policy, if it is allowed
/// to: root is, for others nothing changes. A nice value is not enough: with
/// `sched_autogroup_enabled` it counts only within the session.
///
/// Such a thread must not wait for another by yielding, since the other would never run: use
/// [`give_way`].
pub fn hurry_self() {
    let lowest = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter block is live for the call; 0 means the calling thread.
    let is_real_time = unsafe { libc::sched_setscheduler(0, policy, &lowest) } == 0;
    IS_REAL_TIME.set(is_real_time);
    if !is_real_time {
        hurry(0);
    }
}

/// Whether the calling thread has the precedence of [`hurry_self`].
pub fn is_real_time() -> bool {
    IS_REAL_TIME.get()
}

/// Gives up what [`hurry_self`] has given the calling thread: it goes on as the keeper's others do.
pub fn be_ordinary() {
    if hurry(0) {
        IS_REAL_TIME.set(false);
    }
}

/// The processor time that the calling thread has used.
pub fn thread_time() -> Duration {
    // SAFETY: `timespec` is plain data, and the kernel fills the one that is passed.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The time for which a thread has waited for a processor although it could run, to be read
/// repeatedly.
#[derive(Debug)]
pub struct TimeWaited(KeptOpen);

impl TimeWaited {
    /// Of the calling thread. Fails where the kernel does not count it.
    pub fn of_this_thread() -> io::Result<Self> {
        KeptOpen::open("/proc/thread-self/schedstat").map(TimeWaited)
    }

    /// The time so far.
    pub fn get(&self) -> Option<Duration> {
        let second = |text: &str| text.split_ascii_whitespace().nth(1)?.parse().ok();
        self.0.read(second).map(Duration::from_nanos)
    }
}

/// Lets other threads run, for a caller that polls for something that they do.
pub fn give_way() {
    if IS_REAL_TIME.get() {
        std::thread::sleep(Duration::from_micros(10));
    } else {
        std::thread::yield_now();
    }
}

/// The CPU that a thread runs on or waits for; none if it does neither, or is gone.
pub fn cpu_of_running(tid: i32) -> Option<usize> {
    let thread = CpuOfThread::open(tid).ok()?;
    thread.read(|state, cpu| (state == "R").then_some(cpu)).flatten()
}

/// The CPU that a thread runs on or ran on last, to be read repeatedly.
#[derive(Debug)]
pub struct CpuOfThread(KeptOpen);

impl CpuOfThread {
    /// Opens the thread's statistics.
    pub fn open(tid: i32) -> io::Result<Self> {
        KeptOpen::open(&format!("/proc/{tid}/task/{tid}/stat")).map(CpuOfThread)
    }

    /// The CPU now; none when the thread is gone.
    pub fn get(&self) -> Option<usize> {
        self.read(|_, cpu| cpu)
    }

    fn read<T>(&self, of: impl FnOnce(&str, usize) -> T) -> Option<T> {
        self.0.read(|text| {
            // The name in parentheses may hold anything; field 39 counts from after its end.
            let after_name = &text[text.rfind(')')? + 1..];
            let mut fields = after_name.split_ascii_whitespace();
            let state = fields.next()?;
            let cpu = fields.nth(39 - 4)?.parse().ok()?;
            Some(of(state, cpu))
        })
    }
}
