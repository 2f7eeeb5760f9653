//! What a child inherits is decided when it is forked: what its parent, or another thread of its
//! parent, asks for a moment later is none of the child's business.

use crate::support::children::{Child, wait_all};
use crate::support::sys;
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ROUNDS: u64 = 24;
/// Between two turns of a thread that changes mappings. Faults wait meanwhile, and the kernel's
/// lock is not fair.
const BREATH: Duration = Duration::from_micros(20);

/// `MADV_DONTFORK` as soon as `fork` has returned in the parent: the child has its pages.
pub fn dontfork_after_fork(options: &Options) -> Verdict {
    after_fork(options, libc::MADV_DONTFORK, libc::MADV_DOFORK)
}

/// The same with `MADV_WIPEONFORK`.
pub fn wipeonfork_after_fork(options: &Options) -> Verdict {
    after_fork(options, libc::MADV_WIPEONFORK, libc::MADV_KEEPONFORK)
}

/// Another thread keeps the pager busy meanwhile.
fn after_fork(options: &Options, set: i32, clear: i32) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let presser = scope.spawn(|| -> Verdict {
            while !stop.load(Ordering::Relaxed) {
                ballast.squeeze()?;
            }
            Ok(())
        });
        let verdict: Verdict = (0..ROUNDS).try_for_each(|round| {
            let child = in_child(|| region.check(round))?;
            sys::advise(region.base, region.bytes(), set)?;
            child.wait()?;
            sys::advise(region.base, region.bytes(), clear)?;
            region.fill(round + 1);
            Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        presser.join().map_err(|_| "the presser panicked")??;
        verdict
    })?;
    region.check(ROUNDS)
}

/// Another thread switches `MADV_WIPEONFORK` on and off: a child has all of the range, or none of
/// it.
pub fn wipeonfork_beside_fork(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(1);
    beside(
        || {
            sys::advise(region.base, region.bytes(), libc::MADV_WIPEONFORK)?;
            sys::advise(region.base, region.bytes(), libc::MADV_KEEPONFORK)
        },
        |round| {
            if round % 8 == 0 {
                ballast.squeeze()?;
            }
            let child =
                in_child(|| if zero(&region) { region.check_zero() } else { region.check(1) })?;
            wait_all(vec![child])
        },
    )?;
    region.check(1)
}

/// Another thread switches `MADV_DONTFORK` on and off: a child has no such range, or all of its
/// pages.
pub fn dontfork_beside_fork(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(1);
    beside(
        || {
            sys::advise(region.base, region.bytes(), libc::MADV_DONTFORK)?;
            sys::advise(region.base, region.bytes(), libc::MADV_DOFORK)
        },
        |round| {
            if round % 8 == 0 {
                ballast.squeeze()?;
            }
            in_child(|| if inherited(&region)? { region.check(1) } else { Ok(()) })?.wait()
        },
    )?;
    region.check(1)
}

/// `work` in another thread, again and again, while `forks` is called for each round, until both
/// have had their turns: a busy machine may give the other thread its first one late.
fn beside(work: impl Fn() -> Verdict + Sync, mut forks: impl FnMut(u64) -> Verdict) -> Verdict {
    let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> Verdict {
            while !stop.load(Ordering::Relaxed) {
                work()?;
                turns.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(BREATH);
            }
            Ok(())
        });
        let verdict = (0..)
            .take_while(|round| {
                let both = *round >= ROUNDS && turns.load(Ordering::Relaxed) >= ROUNDS;
                !both && !other.is_finished()
            })
            .try_for_each(&mut forks);
        stop.store(true, Ordering::Relaxed);
        other.join().map_err(|_| "the advising thread panicked")??;
        verdict
    })
}

fn zero(region: &Region) -> bool {
    // SAFETY: within the region, which this process has.
    unsafe { region.base.cast::<u64>().read_volatile() == 0 }
}

fn inherited(region: &Region) -> Result<bool, Trouble> {
    let mut resident = 0_u8;
    // SAFETY: asks about one page that may not be mapped here.
    let got = unsafe { libc::mincore(region.base.cast(), PAGE, &mut resident) };
    match (got, sys::errno()) {
        (0, _) => Ok(true),
        (_, libc::ENOMEM) => Ok(false),
        (_, error) => Err(Trouble(format!("mincore: error {error}"))),
    }
}

/// Three generations of children at once, the ranges of each marked as soon as it has been forked.
pub fn marked_while_forking(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 4, options.seed)?;
    region.fill(3);
    let third = region.pages / 3;
    for round in 0..ROUNDS / 2 {
        if round % 4 == 0 {
            ballast.squeeze()?;
        }
        let mut children: Vec<Child> = Vec::new();
        for wiped in 0..4 {
            // The first `wiped` thirds are zero in this child, for they were marked before.
            children.push(in_child(|| {
                region.part(0, wiped * third).check_zero()?;
                region.part(wiped * third, (3 - wiped) * third).check(3)
            })?);
            if wiped < 3 {
                let part = region.part(wiped * third, third);
                sys::advise(part.base, part.bytes(), libc::MADV_WIPEONFORK)?;
            }
        }
        wait_all(children)?;
        sys::advise(region.base, region.bytes(), libc::MADV_KEEPONFORK)?;
    }
    region.check(3)
}

/// `MADV_DOFORK` takes nothing back that `MADV_WIPEONFORK` said, nor `MADV_KEEPONFORK` of
/// `MADV_DONTFORK`.
pub fn two_fork_flags(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let wiped = Region::map(options.pages() / 6, options.seed)?;
    let left_out = Region::map(options.pages() / 6, options.seed + 1)?;
    wiped.fill(0);
    left_out.fill(0);
    sys::advise(wiped.base, wiped.bytes(), libc::MADV_WIPEONFORK)?;
    sys::advise(left_out.base, left_out.bytes(), libc::MADV_DONTFORK)?;
    // While memory is paged, or nothing of this is announced.
    ballast.squeeze()?;
    sys::advise(wiped.base, wiped.bytes(), libc::MADV_DOFORK)?;
    sys::advise(left_out.base, left_out.bytes(), libc::MADV_KEEPONFORK)?;
    for round in 0..4 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        in_child(|| match inherited(&left_out)? {
            true => Err("memory under MADV_DONTFORK was inherited".into()),
            false => wiped.check_zero(),
        })?
        .wait()?;
        wiped.check(0)?;
        left_out.check(0)?;
    }
    Ok(())
}
