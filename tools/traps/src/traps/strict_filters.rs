//! Seccomp filters that a program installs for itself, before it needs a pager: they are right to
//! refuse what the program does not call, and the pager has to manage without.

use super::places;
use crate::support::sys::{self, check};
use crate::support::{Options, Region, Trouble, Verdict, in_child};

/// What these programs call once they are in their sandbox, their ends included. No
/// `restart_syscall`, `mmap`, `madvise`, `clone`.
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_futex,
    libc::SYS_munmap,
    libc::SYS_sigaltstack,
];

/// An allow list that ends the program at any other call, from before there is any memory to speak
/// of.
pub fn filter_before_growth(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    in_child(|| {
        allow_only(ALLOWED)?;
        rounds(&region)
    })?
    .wait()?;
    // And in this process itself: nothing but its verdict comes after.
    allow_only(ALLOWED)?;
    rounds(&region)
}

/// The same list, when memory is out already.
pub fn filter_after_growth(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    rounds(&region)?;
    allow_only(ALLOWED)?;
    region.check(3)?;
    rounds(&region)
}

/// The allow list also allows `mmap`, `munmap` and `brk`, and the program grows in its sandbox.
pub fn filter_and_growth(options: &Options) -> Verdict {
    let more = [libc::SYS_mmap, libc::SYS_brk, libc::SYS_mremap];
    allow_only(&[ALLOWED, &more].concat())?;
    for seed in 0..3 {
        let region = Region::map(options.pages() / 2, options.seed + seed)?;
        rounds(&region)?;
        region.part(0, region.pages / 2).unmap()?;
        region.part(region.pages / 2, region.pages / 2).check(3)?;
    }
    Ok(())
}

/// Strict mode from before there is any memory: `read`, `write`, `exit` and `sigreturn`, or
/// SIGKILL.
pub fn strict_mode(options: &Options) -> Verdict {
    strictly(&Region::map(options.pages(), options.seed)?)
}

/// Strict mode, when memory is out already.
pub fn strict_mode_late(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    rounds(&region)?;
    strictly(&region)?;
    // What it may not call ends it: by SIGKILL, or by SIGSYS where a filter stands in for the mode.
    let status = in_child(|| {
        // SAFETY: from here on this process may do little, and the next call is its last.
        unsafe {
            check("PR_SET_SECCOMP", libc::prctl(libc::PR_SET_SECCOMP, 1))?;
            libc::syscall(libc::SYS_getpid);
        }
        Err(Trouble::from("getpid was let through"))
    })?
    .status()?;
    let ended = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    match ended {
        Some(libc::SIGKILL | libc::SIGSYS) => Ok(()),
        _ => Err(Trouble(format!("the strict mode is not strict: status {status:#x}"))),
    }
}

fn strictly(region: &Region) -> Verdict {
    in_child(|| {
        // SAFETY: from here on this process may do little, and does no more.
        check("PR_SET_SECCOMP", unsafe { libc::prctl(libc::PR_SET_SECCOMP, 1) })?;
        let verdict = rounds(region);
        // SAFETY: ends this process's only thread with `exit`; strict mode forbids `exit_group`.
        unsafe { libc::syscall(libc::SYS_exit, i32::from(verdict.is_err())) };
        verdict
    })?
    .wait()
}

/// Fills, checks and writes anew; a deep stack in between. Nothing here calls the kernel.
fn rounds(region: &Region) -> Verdict {
    for generation in 0..3 {
        region.fill(generation);
        places::deep(region.seed, 16, generation)?;
        region.check(generation)?;
        region.fill(generation + 1);
    }
    region.check(3)
}

/// Sleeps are begun before a pager comes, and must come back as if it had not: the kernel continues
/// what it interrupts by `restart_syscall`, which is not allowed here.
pub fn filter_while_asleep(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    let (out, into) = sys::pipe()?;
    let sleeper = std::thread::spawn(move || -> Verdict {
        allow_only(&[ALLOWED, &[libc::SYS_madvise, libc::SYS_rt_sigprocmask]].concat())?;
        sys::write_all(into, b"s".as_ptr(), 1)?;
        // A relative sleep is continued by `restart_syscall`.
        let time = libc::timespec { tv_sec: 0, tv_nsec: 700_000_000 };
        // SAFETY: `time` is initialised.
        let slept =
            unsafe { libc::syscall(libc::SYS_nanosleep, &time, std::ptr::null_mut::<u8>()) };
        check("nanosleep", slept).map(drop)
    });
    let mut byte = 0;
    sys::read_all(out, &mut byte, 1)?;
    let mut generation = 0;
    while !sleeper.is_finished() {
        region.fill(generation);
        region.check(generation)?;
        generation += 1;
    }
    sleeper.join().map_err(|_| Trouble::from("the sleeper panicked"))?
}

/// From now on this thread, and what it makes, may call nothing else.
pub fn allow_only(calls: &[i64]) -> Verdict {
    filter(calls, 0)
}

/// The same for all threads of this process.
fn allow_only_in_all_threads(calls: &[i64]) -> Verdict {
    filter(calls, libc::SECCOMP_FILTER_FLAG_TSYNC)
}

fn filter(calls: &[i64], flags: u64) -> Verdict {
    let instruction =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for (i, call) in calls.iter().enumerate() {
        program.push(instruction(equal, (calls.len() - i) as u8, 0, *call as u32));
    }
    program.push(instruction(give, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    program.push(instruction(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter outlives the call, which copies it.
    unsafe {
        check("PR_SET_NO_NEW_PRIVS", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        check("seccomp", libc::syscall(libc::SYS_seccomp, mode, flags, &filter)).map(drop)
    }
}

/// The calls of a browser's renderer in its sandbox: no `restart_syscall`, `madvise`, `mprotect`,
/// `clone`, `close`.
const RENDERER: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_futex,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
];

/// A child in a renderer's sandbox grows, shrinks and grows.
pub fn filter_renderer(options: &Options) -> Verdict {
    in_child(|| {
        allow_only(RENDERER)?;
        for seed in 0..3 {
            let region = Region::map(options.pages() / 2, options.seed + seed)?;
            rounds(&region)?;
            region.unmap()?;
        }
        Ok(())
    })?
    .wait()
}

/// One thread puts all of them into a sandbox at once, as browsers do; then they grow together.
pub fn filter_threads(options: &Options) -> Verdict {
    const THREADS: usize = 4;
    in_child(|| {
        let begun = std::sync::Barrier::new(THREADS + 1);
        let pages = options.pages() / THREADS;
        std::thread::scope(|scope| {
            let works = |seed: u64| {
                let begun = &begun;
                move || {
                    begun.wait();
                    begun.wait();
                    rounds(&Region::map(pages, seed)?)
                }
            };
            let threads: Vec<_> =
                (0..THREADS as u64).map(|i| scope.spawn(works(options.seed + i))).collect();
            begun.wait();
            let more = [libc::SYS_mmap, libc::SYS_madvise, libc::SYS_rt_sigprocmask, libc::SYS_brk];
            allow_only_in_all_threads(&[ALLOWED, &more].concat())?;
            begun.wait();
            let end = |thread: std::thread::ScopedJoinHandle<'_, Verdict>| {
                thread.join().map_err(|_| Trouble::from("a thread panicked"))?
            };
            threads.into_iter().try_for_each(end)
        })
    })?
    .wait()
}

/// A sandbox whose process forks: each child is in it as well, and grows.
pub fn filter_and_forks(options: &Options) -> Verdict {
    in_child(|| {
        let more = [
            libc::SYS_mmap,
            libc::SYS_brk,
            libc::SYS_clone,
            libc::SYS_wait4,
            libc::SYS_set_robust_list,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rseq,
        ];
        allow_only(&[ALLOWED, &more].concat())?;
        let region = Region::map(options.pages() / 2, options.seed)?;
        rounds(&region)?;
        for generation in 4..6 {
            in_child(|| {
                region.check(generation - 1)?;
                rounds(&Region::map(options.pages() / 4, options.seed + generation)?)?;
                region.fill(9);
                region.check(9)
            })?
            .wait()?;
            region.check(generation - 1)?;
            region.fill(generation);
        }
        region.check(5)
    })?
    .wait()
}
