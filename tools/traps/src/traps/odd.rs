//! Programs in states that make it hard to help them from outside.

use crate::support::children::{Child, wait_all};
use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, Region, Trouble, Verdict, in_child};

/// Squeezes, checks and rewrites a few rounds, and forks once in between.
fn rounds(region: &Region, ballast: &mut Ballast, from: u64) -> Verdict {
    for generation in from..from + 3 {
        ballast.squeeze()?;
        region.check(generation)?;
        region.fill(generation + 1);
        in_child(|| region.check(generation + 1))?.wait()?;
    }
    region.check(from + 3)
}

fn prepare(options: &Options) -> Result<(Region, Ballast), Trouble> {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    Ok((region, Ballast::new(options)?))
}

/// Closes every descriptor above standard error, as daemons do; more than once.
pub fn close_all(options: &Options) -> Verdict {
    let (region, mut ballast) = prepare(options)?;
    for round in 0..3 {
        // SAFETY: this trap uses none of them.
        let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
        check("close_range", done)?;
        rounds(&region, &mut ballast, round * 3)?;
    }
    Ok(())
}

/// Lives with few descriptors, so that no further one can be opened in it.
pub fn few_descriptors(options: &Options) -> Verdict {
    let (region, mut ballast) = prepare(options)?;
    let limit = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
    // SAFETY: `limit` is initialised.
    check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    rounds(&region, &mut ballast, 0)
}

/// The first thread ends; the others go on, and the process with them.
pub fn leader_exits(options: &Options) -> Verdict {
    let options = options.clone();
    let child = in_child(|| {
        let worker = move || {
            let verdict = prepare(&options)
                .and_then(|(region, mut ballast)| rounds(&region, &mut ballast, 0));
            if let Err(trouble) = &verdict {
                eprintln!("after the leader's end: {trouble}");
            }
            // SAFETY: ends the process with its verdict.
            unsafe { libc::_exit(i32::from(verdict.is_err())) }
        };
        std::thread::spawn(worker);
        // SAFETY: ends this thread only; nothing of it is borrowed elsewhere.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        Err("the first thread came back from exit".into())
    })?;
    child.wait()
}

/// The first thread ends, and another uses much memory from then on.
pub fn grows_without_leader(options: &Options) -> Verdict {
    let (pages, seed) = (options.pages(), options.seed);
    grow_without_leader(pages, seed, Some("grows-without-leader"))
}

/// The same in forked children, whose parent has its first thread.
pub fn children_grow_without_leader(options: &Options) -> Verdict {
    let pages = options.pages() / 3;
    let begin = |n| in_child(|| grow_without_leader(pages, options.seed + n, None));
    wait_all((0..3).map(begin).collect::<Result<_, _>>()?)
}

/// Ends this process, with a line if it has a name.
fn grow_without_leader(pages: usize, seed: u64, name: Option<&'static str>) -> Verdict {
    std::thread::spawn(move || {
        // Until the first thread has ended: a look at the process then finds one without memory.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let verdict = Region::map(pages, seed).and_then(|region| {
            (0..3).try_for_each(|generation| {
                region.fill(generation);
                region.check(generation)
            })
        });
        match (&verdict, name) {
            (Ok(()), Some(name)) => println!("ok {name}"),
            (Ok(()), None) => {}
            (Err(trouble), _) => eprintln!("wrong: without the first thread: {trouble}"),
        }
        // SAFETY: ends the process with its verdict; what is printed ends with a line, and is
        // written.
        unsafe { libc::_exit(i32::from(verdict.is_err())) }
    });
    // SAFETY: ends this thread only; nothing of it is borrowed elsewhere.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    Err("the first thread came back from exit".into())
}

const SHARED_STACK: usize = 64 * 1024;

struct Shared {
    region: Region,
    from: u64,
}

extern "C" fn other_process(argument: *mut libc::c_void) -> i32 {
    // SAFETY: `shared_vm` passes this, and waits for this process before it goes away.
    let shared = unsafe { &*argument.cast::<Shared>() };
    for generation in shared.from..shared.from + 4 {
        for page in 0..shared.region.pages {
            if shared.region.check_page(page, generation).is_err() {
                return 1;
            }
            shared.region.fill_page(page, generation + 1);
        }
    }
    0
}

/// A second process that shares this one's memory but is no thread of it (`clone` with CLONE_VM).
pub fn shared_vm(options: &Options) -> Verdict {
    let pages = options.pages() / 2;
    let (own, other) = (Region::map(pages, options.seed)?, Region::map(pages, options.seed + 1)?);
    own.fill(0);
    other.fill(0);
    let stack = sys::map_pages(SHARED_STACK / crate::support::PAGE)?;
    for round in 0..3 {
        let mut shared = Shared { region: other, from: round * 4 };
        // SAFETY: the child has a stack of its own, calls nothing that allocates or uses the C
        // library's thread state, and is waited for before `shared` ends.
        let pid = unsafe {
            libc::clone(
                other_process,
                stack.add(SHARED_STACK).cast(),
                libc::CLONE_VM | libc::SIGCHLD,
                (&raw mut shared).cast(),
            )
        };
        let child = Child { pid: check("clone", pid)? as i32 };
        let mut verdict = Ok(());
        for generation in round * 4..round * 4 + 4 {
            verdict = verdict.and_then(|()| own.check(generation));
            own.fill(generation + 1);
        }
        child.wait()?;
        verdict?;
        other.check(round * 4 + 4)?;
    }
    Ok(())
}

/// A process that only privileged ones may look into (PR_SET_DUMPABLE 0).
pub fn undumpable(options: &Options) -> Verdict {
    let (region, mut ballast) = prepare(options)?;
    // SAFETY: changes an attribute of this process only.
    check("PR_SET_DUMPABLE", unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) })?;
    rounds(&region, &mut ballast, 0)
}

/// The same from its first moment on, before any of its memory could be protected; so are its
/// children, which grow.
pub fn undumpable_early(options: &Options) -> Verdict {
    // SAFETY: changes an attribute of this process only.
    check("PR_SET_DUMPABLE", unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) })?;
    let (region, mut ballast) = prepare(options)?;
    rounds(&region, &mut ballast, 0)?;
    let child = |n| {
        let (pages, seed) = (options.pages() / 6, options.seed + n);
        in_child(move || {
            let own = Region::map(pages, seed)?;
            own.fill(1);
            region.check(3)?;
            own.check(1)
        })
    };
    wait_all((1..4).map(child).collect::<Result<_, _>>()?)
}

/// All signals are blocked, in every thread.
pub fn blocked_signals(options: &Options) -> Verdict {
    // SAFETY: plain data, filled by the calls.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        check("sigprocmask", libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut()))?;
    }
    let (region, mut ballast) = prepare(options)?;
    rounds(&region, &mut ballast, 0)
}

/// Gives up root for good, if it is root, and goes on.
pub fn drop_privileges(options: &Options) -> Verdict {
    let (region, mut ballast) = prepare(options)?;
    ballast.squeeze()?;
    // SAFETY: changes this process's credentials only.
    unsafe {
        if libc::geteuid() == 0 {
            check("setgroups", libc::setgroups(0, std::ptr::null()))?;
            check("setresgid", libc::setresgid(65_534, 65_534, 65_534))?;
            check("setresuid", libc::setresuid(65_534, 65_534, 65_534))?;
        }
    }
    rounds(&region, &mut ballast, 0)?;
    let (out, into) = sys::pipe()?;
    for page in 0..region.pages {
        sys::write_all(into, region.page(page), crate::support::PAGE)?;
        sys::read_all(out, region.page(page), crate::support::PAGE)?;
    }
    region.check(3)
}

/// A filter of the program's own that refuses what it does not need itself, as sandboxes do.
pub fn own_seccomp(options: &Options) -> Verdict {
    let (region, mut ballast) = prepare(options)?;
    let refused = [
        libc::SYS_ioctl,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_userfaultfd,
        libc::SYS_process_vm_readv,
        libc::SYS_recvmsg,
        libc::SYS_sendmsg,
        libc::SYS_poll,
        libc::SYS_clone3,
    ];
    let instruction =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![instruction(load, 0, 0, 0)];
    for (i, call) in refused.iter().enumerate() {
        program.push(instruction(equal, (refused.len() - i) as u8, 0, *call as u32));
    }
    program.push(instruction(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    program.push(instruction(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter outlives the call, which copies it.
    unsafe {
        check("PR_SET_NO_NEW_PRIVS", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter);
        check("PR_SET_SECCOMP", set)?;
    }
    if sys::advise(region.base, region.bytes(), libc::MADV_NORMAL).is_ok() {
        return Err("the filter does not refuse madvise: the trap tries nothing".into());
    }
    rounds(&region, &mut ballast, 0)
}
