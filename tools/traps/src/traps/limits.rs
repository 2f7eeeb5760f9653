//! Limits that are nearly used up: the program may not notice that a pager needs something as well.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};

/// No process more for this user. (Root is not held to it: a child that gave up root is.)
pub fn few_processes(options: &Options) -> Verdict {
    in_child(|| {
        // SAFETY: changes this process's credentials only.
        unsafe {
            if libc::geteuid() == 0 {
                check("setgroups", libc::setgroups(0, std::ptr::null()))?;
                check("setresgid", libc::setresgid(65_533, 65_533, 65_533))?;
                check("setresuid", libc::setresuid(65_533, 65_533, 65_533))?;
                // A change of credentials clears it, and without it only privileged processes may
                // change this one.
                check("PR_SET_DUMPABLE", libc::prctl(libc::PR_SET_DUMPABLE, 1))?;
            }
        }
        limited(options, libc::RLIMIT_NPROC, 1)
    })?
    .wait()
}

/// No address space beyond what the program itself is about to use.
pub fn little_address_space(options: &Options) -> Verdict {
    let (used, _) = used_bytes()?;
    limited(options, libc::RLIMIT_AS, used + wanted_bytes(options) + SPARE)
}

/// The same for forked children that have all their address space already, and less and less beyond
/// it: at last there is room for an agent, and none for what it works with.
pub fn little_address_space_in_a_child(options: &Options) -> Verdict {
    const STEP: u64 = 256 << 10;
    let region = Region::map(options.pages() / 8, options.seed)?;
    region.fill(0);
    let space = Region::map(options.pages() / 2, options.seed ^ 1)?;
    let rights = |rights| {
        // SAFETY: the range is the trap's own.
        let set = unsafe { libc::mprotect(space.base.cast(), space.bytes(), rights) };
        check("mprotect", set).map(drop)
    };
    rights(libc::PROT_NONE)?;
    for steps in (0..16).rev() {
        in_child(|| {
            let most = used_bytes()?.0 + steps * STEP;
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: `limit` is initialised.
            check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) })?;
            rights(libc::PROT_READ | libc::PROT_WRITE)?;
            space.fill(1);
            space.check(1)?;
            region.check(0)
        })?
        .wait()?;
    }
    region.check(0)
}

/// The same for private writable memory (`RLIMIT_DATA`).
pub fn little_data(options: &Options) -> Verdict {
    let (_, data) = used_bytes()?;
    limited(options, libc::RLIMIT_DATA, data + wanted_bytes(options) + SPARE)
}

/// Files may hardly grow: there is room for a verdict.
pub fn small_files(options: &Options) -> Verdict {
    limited(options, libc::RLIMIT_FSIZE, PAGE as u64)
}

/// No descriptor more than standard input, output and error.
pub fn no_descriptors(options: &Options) -> Verdict {
    limited(options, libc::RLIMIT_NOFILE, 3)
}

/// Nothing may be locked.
pub fn nothing_locked(options: &Options) -> Verdict {
    limited(options, libc::RLIMIT_MEMLOCK, 0)
}

/// What a C library may map for itself meanwhile: far less than an agent needs.
const SPARE: u64 = 64 * PAGE as u64;

/// A region and a ballast, and nothing else.
fn wanted_bytes(options: &Options) -> u64 {
    (options.pages() / 3 * PAGE + options.pages() * 2 / 3 * PAGE) as u64
}

/// Sets the limit before there is any memory, and grows, and forks.
fn limited(options: &Options, which: u32, most: u64) -> Verdict {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: `limit` is initialised.
    check("setrlimit", unsafe { libc::setrlimit(which, &limit) })?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    for generation in 0..4 {
        region.fill(generation);
        ballast.squeeze()?;
        region.check(generation)?;
    }
    still(which, most)?;
    if which != libc::RLIMIT_NPROC {
        in_child(|| {
            region.check(3)?;
            region.fill(4);
            ballast.squeeze()?;
            region.check(4)
        })?
        .wait()?;
    }
    region.check(3)
}

/// The limit is the program's: the pager has not raised it for good.
fn still(which: u32, most: u64) -> Verdict {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` is a valid place.
    check("getrlimit", unsafe { libc::getrlimit(which, &mut now) })?;
    sys::same("the limit", (most, most), (now.rlim_cur, now.rlim_max))
}

/// All that is mapped, and the private writable part of it, as the kernel counts them for its
/// limits.
fn used_bytes() -> Result<(u64, u64), Trouble> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|e| e.to_string())?;
    let pages: Vec<u64> = statm.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match pages[..] {
        [all, _, _, _, _, data, ..] => Ok((all * PAGE as u64, data * PAGE as u64)),
        _ => Err(Trouble(format!("/proc/self/statm: {statm}"))),
    }
}

/// A child raises its parent's `RLIMIT_AS`: from then on the parent may map what it could not
/// before.
pub fn limit_raised_by_child(options: &Options) -> Verdict {
    let wanted = 4 * options.pages();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place.
    check("getrlimit", unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) })?;
    let before = limit;
    limit.rlim_cur = used_bytes()?.0 + wanted_bytes(options) + (wanted / 2 * PAGE) as u64;
    // SAFETY: `limit` is initialised.
    check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) })?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let refused = sys::map_pages(wanted).map(drop);
    sys::same("beyond the limit", (true, libc::ENOMEM), (refused.is_err(), sys::errno()))?;
    // SAFETY: asks only.
    let itself = unsafe { libc::getpid() };
    in_child(|| {
        let nothing = std::ptr::null_mut();
        // SAFETY: `before` is initialised; the process named is this one's parent.
        check("prlimit", unsafe { libc::prlimit(itself, libc::RLIMIT_AS, &before, nothing) })
            .map(drop)
    })?
    .wait()?;
    let later = Region::map(wanted, options.seed)?;
    later.part(0, 512).fill(1);
    ballast.squeeze()?;
    later.part(0, 512).check(1)?;
    region.check(0)
}
