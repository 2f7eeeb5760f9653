//! Scheduling of the keeper's own threads, and where a program's thread last ran.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Binds the calling thread to one CPU. Fails harmlessly where the CPU is not allowed.
pub fn pin_self(cpu: usize) -> io::Result<()> {
    // SAFETY: `cpu_set_t` is a plain bit array for which all zeros is valid, and CPU_SET writes
    // inside it (it ignores numbers beyond its size).
    let r = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
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

/// Gives the calling thread the idle policy. A CPU whose only runnable thread is idle-class counts
/// as idle when the scheduler places a woken thread, so the program stays where its handler is.
pub fn idle_self() -> io::Result<()> {
    // SAFETY: the parameter block is live for the call and its only field is zero, as required.
    let r = unsafe {
        let param: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &param)
    };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the calling thread go before ordinary ones, where it may: root can, others go on as they are.
/// (Not a real-time class: a thread that waits for another by yielding would never let it run.)
pub fn hurry_self() {
    const NICE: i32 = -19;
    // SAFETY: plain numbers; 0 means the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// The CPU that a thread runs on or ran on last, asked again and again.
#[derive(Debug)]
pub struct CpuOfThread(File);

impl CpuOfThread {
    /// Opens the thread's statistics.
    pub fn open(tid: i32) -> io::Result<Self> {
        File::open(format!("/proc/{tid}/task/{tid}/stat")).map(CpuOfThread)
    }

    /// The CPU now; none when the thread is gone.
    pub fn get(&self) -> Option<usize> {
        let mut buffer = [0u8; 1024];
        let n = self.0.read_at(&mut buffer, 0).ok()?;
        // The name in parentheses may hold anything; field 39 counts from after its end.
        let text = std::str::from_utf8(&buffer[..n]).ok()?;
        let after_name = &text[text.rfind(')')? + 1..];
        after_name.split_ascii_whitespace().nth(39 - 3)?.parse().ok()
    }
}
