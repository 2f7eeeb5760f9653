//! What a program can see of itself must look the same under the pager.

use crate::support::sys::check;
use crate::support::{Ballast, Options, PAGE, Verdict};
use std::fs;

/// Prints what programs ask about themselves. The test compares a plain run's output with a
/// protected one's.
pub fn introspect(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let cpus = std::thread::available_parallelism().map_err(|e| e.to_string())?;
    println!("processors {cpus}");
    // SAFETY: plain data, filled by the call.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&set);
    // SAFETY: `set` is a valid place of that size.
    check("sched_getaffinity", unsafe { libc::sched_getaffinity(0, size, &mut set) })?;
    // SAFETY: `set` is initialised.
    println!("affinity {}", unsafe { libc::CPU_COUNT(&set) });
    let mut descriptors: Vec<i32> = fs::read_dir("/proc/self/fd")
        .map_err(|e| e.to_string())?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    descriptors.sort_unstable();
    // The last is the directory that is being read.
    println!(
        "descriptors below 100 {:?}",
        descriptors.iter().filter(|d| **d < 100).collect::<Vec<_>>()
    );
    let children = fs::read_to_string("/proc/self/task/".to_owned() + &thread_id() + "/children");
    println!("children {:?}", children.map_err(|e| e.to_string())?);
    let threads = fs::read_dir("/proc/self/task").map_err(|e| e.to_string())?.count();
    println!("threads {threads}");
    // SAFETY: waits for no child that could be ours.
    let waited = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    println!("waitpid {waited} {}", crate::support::sys::errno());
    limits()?;
    signals()?;
    // SAFETY: asks only.
    println!("page {} dumpable {}", unsafe { libc::sysconf(libc::_SC_PAGESIZE) }, unsafe {
        libc::prctl(libc::PR_GET_DUMPABLE)
    });
    println!("arguments {:?}", std::env::args().skip(1).collect::<Vec<_>>());
    let mut environment: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    environment.sort();
    println!("environment {environment:?}");
    println!("directory {:?}", std::env::current_dir().map_err(|e| e.to_string())?);
    println!("executable {:?}", std::env::current_exe().map_err(|e| e.to_string())?);
    let name = fs::read_to_string("/proc/self/comm").map_err(|e| e.to_string())?;
    println!("name {}", name.trim());
    println!("page size {PAGE}");
    Ok(())
}

fn thread_id() -> String {
    // SAFETY: asks only.
    unsafe { libc::gettid() }.to_string()
}

fn limits() -> Verdict {
    let names = [
        ("AS", libc::RLIMIT_AS),
        ("STACK", libc::RLIMIT_STACK),
        ("NOFILE", libc::RLIMIT_NOFILE),
        ("MEMLOCK", libc::RLIMIT_MEMLOCK),
        ("CORE", libc::RLIMIT_CORE),
        ("NPROC", libc::RLIMIT_NPROC),
    ];
    for (name, which) in names {
        // SAFETY: plain data, filled by the call.
        let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
        // SAFETY: `limit` is a valid place.
        check("getrlimit", unsafe { libc::getrlimit(which, &mut limit) })?;
        println!("limit {name} {} {}", limit.rlim_cur, limit.rlim_max);
    }
    Ok(())
}

/// Which signals are blocked, ignored or caught (the masks of `/proc/self/status`), and the user
/// and rights.
fn signals() -> Verdict {
    let status = fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    for wanted in ["Uid:", "Gid:", "Groups:", "SigBlk:", "SigIgn:", "SigCgt:", "CapEff:", "Umask:"]
    {
        if let Some(line) = status.lines().find(|line| line.starts_with(wanted)) {
            println!("{line}");
        }
    }
    Ok(())
}
