//! A program that adopts what its descendants leave, and waits until no child is left.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, Region, Trouble, Verdict, in_child};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// As init programs of containers do: `wait` until there is no child to wait for. A process of the
/// pager's may not be one that it waits for.
pub fn subreaper(options: &Options) -> Verdict {
    // SAFETY: changes an attribute of this process only.
    check("PR_SET_CHILD_SUBREAPER", unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    let mut expected = 0;
    for _ in 0..4 {
        for _ in 0..2 {
            in_child(|| {
                // It outlives its parent, which does not wait for it.
                in_child(|| work(options))?;
                work(options)
            })?;
            expected += 2;
        }
        work(options)?;
    }
    sys::same("processes waited for", expected, reap_all()?)
}

/// As a program does that is the first process of a container: it adopts what others leave before
/// it has an agent, and waits until no child is left, several times. Its own agent is none that it
/// waits for; those of its children may be, once these have ended.
pub fn adopts_before(options: &Options) -> Verdict {
    const BEGUN: &str = "CASEMATE_TRAPS_ADOPTS";
    if std::env::var_os(BEGUN).is_none() {
        // It may have an agent already. The mark outlives the memory that the agent has.
        // SAFETY: changes an attribute of this process only.
        check("PR_SET_CHILD_SUBREAPER", unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
        let mut anew = Command::new("/proc/self/exe");
        let error = anew.args(std::env::args_os().skip(1)).env(BEGUN, "1").exec();
        return Err(Trouble(format!("executing itself: {error}")));
    }
    let region = Region::map(options.pages(), options.seed)?;
    for turn in 0..4 {
        region.fill(turn);
        for _ in 0..2 {
            in_child(|| region.check_page(1, turn))?;
        }
        while wait_for_one()?.is_some() {}
        region.check(turn)?;
    }
    region.unmap()
}

/// Enough memory to be paged.
fn work(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 4, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    region.check(0)?;
    region.unmap()
}

/// Waits for all children; says how many they were. The test's deadline ends a wait that never
/// does.
fn reap_all() -> Result<u32, Trouble> {
    let mut count = 0;
    while let Some((pid, status)) = wait_for_one()? {
        crate::support::children::describe("a child", pid, status)?;
        count += 1;
    }
    Ok(count)
}

/// Waits for any child; none if there is none to wait for.
fn wait_for_one() -> Result<Option<(i32, i32)>, Trouble> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place.
        let pid = unsafe { libc::waitpid(-1, &mut status, 0) };
        match (pid, sys::errno()) {
            (-1, libc::ECHILD) => return Ok(None),
            (-1, libc::EINTR) => {}
            (-1, error) => return Err(Trouble(format!("waitpid: error {error}"))),
            _ => return Ok(Some((pid, status))),
        }
    }
}
