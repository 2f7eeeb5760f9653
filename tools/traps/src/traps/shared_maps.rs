//! Address spaces that are changed by another process that shares them.

use crate::support::children::Child;
use crate::support::sys::{self, ANON, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict};

const STACK_PAGES: usize = 16;

/// What the other process works on. It may not allocate: it uses its parent's thread state.
struct Work {
    /// Given back and mapped anew.
    region: Region,
    /// Another range, that something new is mapped over.
    place: *mut u8,
    generation: u64,
}

/// Maps `pages` at `at`, whatever is there; says whether it could.
fn map_over(at: *mut u8, pages: usize) -> bool {
    let flags = ANON | libc::MAP_FIXED;
    // SAFETY: `change` passes ranges of its `Work`, which are reached through raw pointers only and
    // may be replaced.
    unsafe { libc::mmap(at.cast(), pages * PAGE, RW, flags, -1, 0) == at.cast() }
}

/// Replaces the region's second half, drops its last quarter, and fills a new mapping.
fn change(work: &Work) -> bool {
    let (region, half) = (&work.region, work.region.pages / 2);
    let quarter = region.pages / 4;
    let kept = region.part(0, half).check(work.generation).is_ok();
    let mapped = map_over(region.page(half), half) && map_over(work.place, half);
    if !kept || !mapped {
        return false;
    }
    let zero = region.part(half, half).check_zero().is_ok();
    region.fill(work.generation + 1);
    Region::at(work.place, half, region.seed ^ 1).fill(work.generation + 1);
    // SAFETY: the last quarter belongs to this trap, which expects it to go.
    let gone = unsafe { libc::munmap(region.page(3 * quarter).cast(), quarter * PAGE) } == 0;
    zero && gone
}

fn check_changed(work: &Work) -> Verdict {
    let (region, half) = (&work.region, work.region.pages / 2);
    let quarter = region.pages / 4;
    region.part(0, 3 * quarter).check(work.generation + 1)?;
    Region::at(work.place, half, region.seed ^ 1).check(work.generation + 1)?;
    let last = region.part(3 * quarter, quarter);
    sys::map(last.base, last.bytes(), RW, ANON | libc::MAP_FIXED_NOREPLACE)?;
    last.check_zero()
}

fn prepare(options: &Options) -> Result<(Ballast, Work), crate::support::Trouble> {
    let ballast = Ballast::new(options)?;
    let pages = options.pages() / 6 / 4 * 4;
    let region = Region::map(pages, options.seed)?;
    region.fill(0);
    let place = sys::map_pages(pages / 2)?;
    Ok((ballast, Work { region, place, generation: 0 }))
}

/// The child of a `vfork` maps and unmaps in its parent's address space.
pub fn vfork_maps(options: &Options) -> Verdict {
    let (mut ballast, mut work) = prepare(options)?;
    for round in 0..8 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        // SAFETY: the child changes ranges that its parent expects to change, and exits.
        let pid = unsafe {
            #[allow(deprecated)]
            let pid = libc::vfork();
            if pid == 0 {
                libc::_exit(i32::from(!change(&work)));
            }
            pid
        };
        Child { pid: check("vfork", pid)? as i32 }.wait()?;
        check_changed(&work)?;
        work.generation += 2;
        work.region.fill(work.generation);
    }
    Ok(())
}

extern "C" fn changer(argument: *mut libc::c_void) -> i32 {
    // SAFETY: `shared_vm_maps` passes this, and waits for this process before it goes away.
    i32::from(!change(unsafe { &*argument.cast::<Work>() }))
}

/// A process made with CLONE_VM alone maps and unmaps while this one maps and unmaps other ranges.
pub fn shared_vm_maps(options: &Options) -> Verdict {
    let (mut ballast, mut work) = prepare(options)?;
    let own = Region::map(options.pages() / 6, options.seed ^ 2)?;
    let stack = sys::map_pages(STACK_PAGES)?;
    own.fill(0);
    for round in 0..8 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        // SAFETY: the child has a stack of its own, calls nothing that allocates, and is waited
        // for.
        let pid = unsafe {
            let top = stack.add(STACK_PAGES * PAGE).cast();
            let flags = libc::CLONE_VM | libc::SIGCHLD;
            libc::clone(changer, top, flags, (&raw mut work).cast())
        };
        let child = Child { pid: check("clone", pid)? as i32 };
        let half = own.part(own.pages / 2, own.pages / 2);
        let verdict = (0..16).try_for_each(|_| {
            sys::map(half.base, half.bytes(), RW, ANON | libc::MAP_FIXED)?;
            half.check_zero()?;
            half.fill(round);
            own.check(round)
        });
        child.wait()?;
        verdict?;
        check_changed(&work)?;
        work.generation += 2;
        work.region.fill(work.generation);
        own.fill(round + 1);
    }
    Ok(())
}
