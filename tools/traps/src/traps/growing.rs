//! Programs whose memory grows by ways that a pager hears little of. They check their contents
//! here; how much of it lies in RAM meanwhile is judged from outside (`tests/clear_bound.rs`).

use super::exec::again;
use crate::support::children::{Child, describe, wait_all};
use crate::support::sys::{self, ANON, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::time::Duration;

/// Pages that are given back by `MADV_FREE` and used again at once, as allocators do.
pub fn free_again(options: &Options) -> Verdict {
    const CHUNK: usize = 256;
    let region = Region::map(options.pages() / CHUNK * CHUNK, options.seed)?;
    let chunks = || (0..region.pages / CHUNK).map(|chunk| region.part(chunk * CHUNK, CHUNK));
    for chunk in chunks() {
        chunk.fill(0);
        sys::advise(chunk.base, chunk.bytes(), libc::MADV_FREE)?;
        chunk.fill(1);
    }
    region.check(1)?;
    for chunk in chunks() {
        sys::advise(chunk.base, chunk.bytes(), libc::MADV_FREE)?;
    }
    region.fill(2);
    region.check(2)
}

/// Zero pages that are read while memory is plenty, and written when it is short.
pub fn zero_pages_written(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.check_zero()?;
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    region.fill(1);
    ballast.squeeze()?;
    region.check(1)
}

/// How long all of `children-write` have what they wrote, with `--mode held`.
const HELD: Duration = Duration::from_secs(3);

/// Twenty children that live together; each writes all that it has of its parent.
pub fn children_write(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 12, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    region.check(0)?;
    let (ready, tell) = sys::pipe()?;
    let (go_on, release) = sys::pipe()?;
    let children: Vec<Child> = (1..=20)
        .map(|number| {
            in_child(|| {
                region.check(0)?;
                region.fill(number);
                give_signs::<1>(tell)?;
                let mut byte = 0;
                sys::read_all(go_on, &mut byte, 1)?;
                region.check(number)
            })
        })
        .collect::<Result<_, _>>()?;
    let mut bytes = [0; 20];
    sys::read_all(ready, bytes.as_mut_ptr(), bytes.len())?;
    if options.mode == "held" {
        // Longer than a virtual processor on which one looks is taken away.
        std::thread::sleep(HELD);
    }
    sys::write_all(release, bytes.as_ptr(), bytes.len())?;
    wait_all(children)?;
    region.check(0)
}

/// New mappings that are touched as fast as it goes, and are gone before the watcher looks.
pub fn bursts(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    for round in 0..24 {
        let region = Region::map(options.pages() / 2, options.seed)?;
        for page in 0..region.pages {
            // SAFETY: within the mapping just made.
            unsafe { region.page(page).write_volatile(1) };
        }
        region.part(0, 64).fill(round);
        region.part(0, 64).check(round)?;
        region.unmap()?;
    }
    ballast.squeeze()
}

/// One call that touches more than the Clear holds: `MAP_POPULATE`.
pub fn map_populate(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let pages = options.pages() * 2 / 3;
    for round in 0..3 {
        let at = sys::map(std::ptr::null_mut(), pages * PAGE, RW, ANON | libc::MAP_POPULATE)?;
        let region = Region::at(at, pages, options.seed);
        region.check_zero()?;
        region.fill(round);
        ballast.squeeze()?;
        region.check(round)?;
        region.unmap()?;
    }
    Ok(())
}

/// One call that touches more than the Clear holds: `mlock`, which may be refused.
pub fn mlock_much(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    for round in 0..3 {
        region.fill(round);
        ballast.squeeze()?;
        // SAFETY: the range is the trap's own.
        let locked = unsafe { libc::mlock(region.base.cast(), region.bytes()) } == 0;
        if !locked && !matches!(sys::errno(), libc::ENOMEM | libc::EPERM | libc::EAGAIN) {
            check("mlock", -1)?;
        }
        region.check(round)?;
        ballast.squeeze()?;
        // SAFETY: as above.
        check("munlock", unsafe { libc::munlock(region.base.cast(), region.bytes()) })?;
        region.check(round)?;
    }
    Ok(())
}

/// Eight children at once, each of which maps memory, fills it, and maps more.
pub fn children_grow(options: &Options) -> Verdict {
    const CHILDREN: usize = 8;
    const STEPS: usize = 8;
    let region = Region::map(options.pages() / 8, options.seed)?;
    region.fill(0);
    let grow = |number: usize| {
        let step = |step| {
            let part =
                Region::map(options.pages() / CHILDREN / STEPS, options.seed + number as u64)?;
            part.fill(step);
            Ok(part)
        };
        let parts: Vec<Region> = (0..STEPS as u64).map(step).collect::<Result<_, Trouble>>()?;
        (0..).zip(&parts).try_for_each(|(step, part)| part.check(step))?;
        region.check(0)
    };
    let children: Result<_, _> = (0..CHILDREN).map(|number| in_child(|| grow(number))).collect();
    wait_all(children?)?;
    region.check(0)
}

/// A hundred children that live together: each maps so little that alone it would need no pager,
/// and fills it.
pub fn many_small(options: &Options) -> Verdict {
    const CHILDREN: usize = 100;
    let (ready, tell) = sys::pipe()?;
    let (go_on, release) = sys::pipe()?;
    let live = |number: u64| {
        let region = Region::map(options.pages() / 160, options.seed + number)?;
        region.fill(number);
        sys::write_all(tell, b"r".as_ptr(), 1)?;
        await_sign(go_on)?;
        region.check(number)
    };
    let children: Result<Vec<Child>, _> =
        (0..CHILDREN as u64).map(|number| in_child(|| live(number))).collect();
    let children = children?;
    sys::close(tell);
    await_signs::<CHILDREN>(ready)?;
    give_signs::<CHILDREN>(release)?;
    wait_all(children)
}

/// Waits until a process has given a sign by a pipe: one byte.
fn await_sign(pipe: i32) -> Verdict {
    await_signs::<1>(pipe)
}

fn await_signs<const COUNT: usize>(pipe: i32) -> Verdict {
    let mut bytes = [0; COUNT];
    sys::read_all(pipe, bytes.as_mut_ptr(), COUNT)
}

fn give_signs<const COUNT: usize>(pipe: i32) -> Verdict {
    let bytes = [b's'; COUNT];
    sys::write_all(pipe, bytes.as_ptr(), COUNT)
}

/// Twenty children are there before room is short, and fill their memory at the same moment.
pub fn children_grow_together(options: &Options) -> Verdict {
    const CHILDREN: usize = 20;
    let (begin, let_begin) = sys::pipe()?;
    let (filled, tell) = sys::pipe()?;
    let (end, let_end) = sys::pipe()?;
    let live = |number: u64| {
        await_sign(begin)?;
        let region = Region::map(options.pages() / CHILDREN, options.seed + number)?;
        region.fill(number);
        region.check(number)?;
        give_signs::<1>(tell)?;
        await_sign(end)?;
        region.check(number)
    };
    let children: Result<Vec<Child>, _> =
        (0..CHILDREN as u64).map(|number| in_child(|| live(number))).collect();
    let children = children?;
    sys::close(tell);
    give_signs::<CHILDREN>(let_begin)?;
    await_signs::<CHILDREN>(filled)?;
    give_signs::<CHILDREN>(let_end)?;
    wait_all(children)
}

/// One grows beside 150 that are small, and awake for a moment now and then: to look at all of them
/// takes long.
pub fn grows_beside_many(options: &Options) -> Verdict {
    const CHILDREN: u64 = 150;
    const SMALL_PAGES: usize = 20;
    let (end, let_end) = sys::pipe()?;
    let (begun, tell) = sys::pipe()?;
    let live = |number: u64| {
        let region = Region::map(SMALL_PAGES, options.seed + number)?;
        region.fill(number);
        give_signs::<1>(tell)?;
        let mut poll = libc::pollfd { fd: end, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live block is passed.
        while unsafe { libc::poll(&raw mut poll, 1, 20) } == 0 {}
        region.check(number)
    };
    let children: Result<Vec<Child>, _> =
        (0..CHILDREN).map(|number| in_child(|| live(number))).collect();
    let children = children?;
    await_signs::<{ CHILDREN as usize }>(begun)?;
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(1);
    region.check(1)?;
    // All of them see it.
    give_signs::<1>(let_end)?;
    wait_all(children)?;
    region.check(1)
}

/// Children of processes that have ended; the first call that each makes gets it memory.
pub fn orphans_grow(options: &Options) -> Verdict {
    const ORPHANS: u64 = 6;
    let (done, tell) = sys::pipe()?;
    let grow = |seed| {
        let region = Region::map(options.pages() / 4, seed)?;
        region.fill(1);
        region.check(1)?;
        sys::write_all(tell, b"r".as_ptr(), 1)
    };
    for number in 0..ORPHANS {
        in_child(|| in_child(|| grow(options.seed + number)).map(drop))?.wait()?;
    }
    sys::close(tell);
    let mut bytes = [0; ORPHANS as usize];
    sys::read_all(done, bytes.as_mut_ptr(), bytes.len())
}

/// A process and its child, with a name that is no text, grow.
pub fn grows_with_odd_name(options: &Options) -> Verdict {
    crate::generations::take_odd_name()?;
    let half = Options { mib: options.mib / 2, ..options.clone() };
    let grow = |seed| {
        let region = Region::map(half.pages(), seed)?;
        region.fill(1);
        region.check(1)
    };
    grow(options.seed)?;
    in_child(|| grow(options.seed + 1))?.wait()?;
    Ok(())
}

/// A child that shares this process's memory (`CLONE_VM`) maps more and fills it, while this one
/// waits for it.
pub fn shared_vm_grows(options: &Options) -> Verdict {
    child_grows(options, libc::CLONE_VM)
}

/// The same in the child of a `vfork`, whose parent cannot be stopped meanwhile.
pub fn vfork_grows(options: &Options) -> Verdict {
    child_grows(options, libc::CLONE_VM | libc::CLONE_VFORK)
}

/// The same in a child of fork that has no pager's agent yet: again and again, and then as much as
/// there is.
pub fn vfork_grows_in_a_child(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 8, options.seed)?;
    region.fill(0);
    let (some, most) = (Options { mib: 1, ..options.clone() }, options);
    for round in 0..12 {
        let options = if round == 11 { most } else { &some };
        in_child(|| {
            child_grows(options, libc::CLONE_VM | libc::CLONE_VFORK)?;
            region.check(0)
        })?
        .wait()?;
    }
    region.check(0)
}

/// What a child that shares memory makes there.
struct Grown<'a> {
    options: &'a Options,
    region: Option<Region>,
}

fn child_grows(options: &Options, flags: i32) -> Verdict {
    extern "C" fn grow(argument: *mut libc::c_void) -> i32 {
        // SAFETY: `child_grows` passes this, and touches it again only when this process has ended.
        let grown = unsafe { &mut *argument.cast::<Grown>() };
        let region = Region::map(grown.options.pages(), grown.options.seed).and_then(|region| {
            region.fill(1);
            region.check(1)?;
            Ok(region)
        });
        grown.region = region.ok();
        i32::from(grown.region.is_none())
    }
    const STACK_PAGES: usize = 64;
    let stack = sys::map_pages(STACK_PAGES)?;
    let mut grown = Grown { options, region: None };
    // SAFETY: the child has a stack of its own, calls nothing that allocates, and is waited for.
    let pid = unsafe {
        let top = stack.add(STACK_PAGES * PAGE).cast();
        libc::clone(grow, top, flags | libc::SIGCHLD, (&raw mut grown).cast())
    };
    Child { pid: check("clone", pid)? as i32 }.wait()?;
    let region = grown.region.ok_or("the child made nothing")?;
    region.check(1)?;
    region.fill(2);
    region.check(2)
}

/// A child that grows while this process attaches to it, stops it and lets it go, again and again.
pub fn attached_while_growing(options: &Options) -> Verdict {
    const STEPS: usize = 12;
    let child = in_child(|| {
        let step = |number: usize| {
            let part = Region::map(options.pages() / STEPS, options.seed + number as u64)?;
            part.fill(1);
            Ok(part)
        };
        let parts: Vec<Region> = (0..STEPS).map(step).collect::<Result<_, Trouble>>()?;
        parts.iter().try_for_each(|part| part.check(1))
    })?;
    let request = |what: libc::c_uint| {
        // SAFETY: these requests take no memory of ours.
        unsafe { libc::ptrace(what, child.pid, 0, 0) }
    };
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place; the child is ours.
        let got = unsafe { libc::waitpid(child.pid, &mut status, libc::WNOHANG) };
        if got == child.pid {
            return describe("child", child.pid, status);
        }
        // The keeper may have it at this moment.
        if request(libc::PTRACE_SEIZE) == 0 {
            request(libc::PTRACE_INTERRUPT);
            let status = child.status()?;
            if !libc::WIFSTOPPED(status) {
                return describe("child", child.pid, status);
            }
            request(libc::PTRACE_DETACH);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Grows by a little every two milliseconds.
pub fn grows_in_steps(options: &Options) -> Verdict {
    const STEPS: usize = 256;
    let step = |number: usize| {
        let part = Region::map(options.pages() / STEPS, options.seed + number as u64)?;
        part.fill(1);
        std::thread::sleep(Duration::from_millis(2));
        Ok(part)
    };
    let parts: Vec<Region> = (0..STEPS).map(step).collect::<Result<_, Trouble>>()?;
    parts.iter().try_for_each(|part| part.check(1))
}

/// A child does that, while this process has it as a debugger has from its first instruction on.
pub fn traced_while_growing(options: &Options) -> Verdict {
    let child = in_child(|| {
        // SAFETY: the request takes no memory.
        check("PTRACE_TRACEME", unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) })?;
        again(options, "grows-in-steps", 0, true)
    })?;
    loop {
        let status = child.status()?;
        if !libc::WIFSTOPPED(status) {
            return describe("child", child.pid, status);
        }
        let signal = Some(libc::WSTOPSIG(status)).filter(|&signal| signal != libc::SIGTRAP);
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_CONT, child.pid, 0, signal.unwrap_or(0)) };
    }
}
