//! Processes that share memory (`CLONE_VM`) and outlive the one that the memory came from.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict, in_child};
use std::time::{Duration, Instant};

const ROUNDS: usize = 8;
const STACK_PAGES: usize = 64;
const CHILD: i32 = libc::CLONE_VM | libc::SIGCHLD;
const GOOD: u8 = 33;

/// What one process after the other has.
struct Shared<'a> {
    region: &'a Region,
    options: &'a Options,
    /// Where the last one says how it went.
    verdict: i32,
}

/// A forked child, or one whose memory is all paged out, begins a process that shares its memory;
/// that one begins another, and both end. The last one reads, grows and forks.
pub fn sharers_outlive(options: &Options) -> Verdict {
    outlive(options, ROUNDS, 0, |round, shared| {
        if round % 2 == 1 {
            shared.region.check(0)?;
        }
        begin(middle, CHILD, shared)
    })
}

/// The child of a vfork kills its parent, a forked child, and grows.
pub fn vfork_outlives(options: &Options) -> Verdict {
    outlive(options, ROUNDS / 2, libc::SIGKILL, |_, shared| {
        begin(killer, libc::CLONE_VFORK | CHILD, shared)
    })
}

/// Forked children that do `first`, and end with this status; the last process's verdict is heard.
fn outlive(
    options: &Options,
    rounds: usize,
    status: i32,
    first: impl Fn(usize, &Shared) -> Verdict,
) -> Verdict {
    let region = Region::map(options.pages() / 2, options.seed)?;
    region.fill(0);
    for round in 0..rounds {
        let (from, to) = sys::pipe()?;
        let child = in_child(|| {
            sys::close(from);
            let shared = Shared { region: &region, options, verdict: to };
            first(round, &shared)?;
            // The others use `shared`, which stays where it is: on the stack of this thread.
            // SAFETY: ends this process without a destructor.
            unsafe { libc::_exit(0) }
        })?;
        sys::same("the first process's status", status, child.status()?)?;
        sys::close(to);
        hear(from)?;
    }
    region.check(0)
}

/// A process that shares memory begins a thread, and its first thread ends: what `/proc` and `kcmp`
/// say of the process is that it has no memory.
pub fn sharer_without_leader(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 2, options.seed)?;
    region.fill(0);
    for _ in 0..ROUNDS / 2 {
        let (from, to) = sys::pipe()?;
        let shared = Shared { region: &region, options, verdict: to };
        begin(leader, CHILD, &shared)?;
        hear(from)?;
        sys::close(to);
    }
    region.check(0)
}

/// A forked child begins twelve processes that share its memory, and ends. They end one after
/// another, the first after more than two seconds: each time another one is left with the memory.
pub fn sharers_end_in_turn(options: &Options) -> Verdict {
    const HEIRS: usize = 12;
    let region = Region::map(options.pages() / 2, options.seed)?;
    region.fill(0);
    let (from, to) = sys::pipe()?;
    let child = in_child(|| {
        sys::close(from);
        let heirs: Vec<Heir> =
            (0..HEIRS).map(|number| Heir { region: &region, number, to }).collect();
        for heir in &heirs {
            begin(ends_in_turn, CHILD, heir)?;
        }
        // SAFETY: ends this process without a destructor: the others use `heirs`.
        unsafe { libc::_exit(0) }
    })?;
    child.wait()?;
    sys::close(to);
    let mut verdicts = [0; HEIRS];
    sys::read_all(from, verdicts.as_mut_ptr(), HEIRS)?;
    sys::same("the verdicts", [GOOD; HEIRS], verdicts)?;
    sys::close(from);
    region.check(0)
}

/// One of several processes that share memory.
struct Heir<'a> {
    region: &'a Region,
    number: usize,
    /// Where it says how it went.
    to: i32,
}

/// Reads all of the memory again and again.
extern "C" fn ends_in_turn(heir: *mut libc::c_void) -> i32 {
    // SAFETY: `begin` passes it; the memory is this process's as well.
    let heir = unsafe { &*heir.cast::<Heir>() };
    let until = Instant::now() + Duration::from_millis(2200 + 60 * heir.number as u64);
    let mut checked = Ok(());
    while checked.is_ok() && Instant::now() < until {
        checked = heir.region.check(0);
        std::thread::sleep(Duration::from_millis(1));
    }
    let byte = match checked {
        Ok(()) => GOOD,
        Err(trouble) => {
            eprintln!("process {} of those that end in turn: {trouble}", heir.number);
            0
        }
    };
    i32::from(sys::write_all(heir.to, &byte, 1).is_err())
}

/// A process begins one that shares its memory, is given its agent, and executes another program.
/// The one that shared has begun before the agent came, and grows when it is alone.
pub fn sharer_born_before(options: &Options) -> Verdict {
    use std::os::unix::process::CommandExt;
    let region = Region::map(1, options.seed)?;
    let shared = Shared { region: &region, options, verdict: -1 };
    begin(grows_late, CHILD, &shared)?;
    std::thread::sleep(Duration::from_millis(50));
    let words = ["-c", "echo ok sharer-born-before"];
    let error = std::process::Command::new("/bin/sh").args(words).exec();
    Err(Trouble(format!("executing another program: {error}")))
}

extern "C" fn grows_late(shared: *mut libc::c_void) -> i32 {
    // SAFETY: `begin` passes it; the memory is this process's as well.
    let options = unsafe { &*shared.cast::<Shared>() }.options;
    std::thread::sleep(Duration::from_millis(300));
    let grown = Region::map(options.pages(), options.seed).and_then(|region| {
        region.fill(1);
        region.check(1)
    });
    if let Err(trouble) = &grown {
        eprintln!("wrong: the process that grows: {trouble}");
    }
    i32::from(grown.is_err())
}

extern "C" fn leader(shared: *mut libc::c_void) -> i32 {
    const THREAD: i32 = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM;
    // SAFETY: `begin` passes it.
    let shared = unsafe { &*shared.cast::<Shared>() };
    let begun = begin(last, THREAD, shared);
    // SAFETY: ends this thread only, which owns nothing.
    unsafe { libc::syscall(libc::SYS_exit, i32::from(begun.is_err())) };
    0
}

/// The last process's verdict.
fn hear(from: i32) -> Verdict {
    let mut byte = 0;
    sys::read_all(from, &mut byte, 1)?;
    sys::same("the verdict of the last process", GOOD, byte)?;
    sys::close(from);
    Ok(())
}

extern "C" fn killer(shared: *mut libc::c_void) -> i32 {
    // SAFETY: kills the parent, which waits in vfork.
    unsafe { libc::kill(libc::getppid(), libc::SIGKILL) };
    last(shared)
}

extern "C" fn middle(shared: *mut libc::c_void) -> i32 {
    // SAFETY: `begin` passes it.
    let shared = unsafe { &*shared.cast::<Shared>() };
    i32::from(shared.region.check(0).and_then(|()| begin(last, CHILD, shared)).is_err())
}

extern "C" fn last(shared: *mut libc::c_void) -> i32 {
    // SAFETY: `begin` passes it.
    let shared = unsafe { &*shared.cast::<Shared>() };
    let byte = match lives_on(shared) {
        Ok(()) => GOOD,
        Err(trouble) => {
            eprintln!("the process that lives on: {trouble}");
            0
        }
    };
    i32::from(sys::write_all(shared.verdict, &byte, 1).is_err())
}

fn lives_on(shared: &Shared) -> Verdict {
    let (region, seed) = (shared.region, shared.options.seed);
    for turn in 0..3 {
        region.check(0)?;
        let own = Region::map(shared.options.pages() / 8, seed + turn)?;
        own.fill(turn);
        in_child(|| region.check(0).and_then(|()| own.check(turn)))?.wait()?;
        own.check(turn)?;
        own.unmap()?;
    }
    region.check(0)
}

/// Begins a process in this memory.
fn begin<T>(life: extern "C" fn(*mut libc::c_void) -> i32, flags: i32, shared: &T) -> Verdict {
    let stack = sys::map_pages(STACK_PAGES)?;
    // SAFETY: it has a stack of its own, and what it uses of the C library its parent, which waits
    // or ends next, does not use meanwhile.
    let pid = unsafe {
        let top = stack.add(STACK_PAGES * PAGE).cast();
        libc::clone(life, top, flags, (&raw const *shared).cast_mut().cast())
    };
    check("clone", pid).map(drop)
}
