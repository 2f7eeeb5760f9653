//! System calls that fill more than the Clear holds: the thread cannot be stopped before they end.
//! How much of it lies in RAM meanwhile is judged from outside (`tests/clear_bound.rs`).

use super::exec::again;
use crate::support::children::{Child, wait_all};
use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict, in_child};

/// As the first thing that it does, a program maps memory and has a file read into it by one call,
/// which cannot be stopped in its midst; so does a child, and the same program executed again.
pub fn read_at_once(options: &Options) -> Verdict {
    const FILE: i32 = 77;
    // SAFETY: a plain question about a descriptor.
    if unsafe { libc::fcntl(FILE, libc::F_GETFD) } >= 0 {
        let region = Region::map(options.pages(), options.seed)?;
        read_pattern(FILE, &region)?;
        region.unmap()?;
        in_child(|| read_pattern(FILE, &Region::map(options.pages(), options.seed)?))?.wait()?;
    } else {
        put_pattern(FILE, options.pages(), options.seed)?;
    }
    match options.depth {
        0 => Ok(()),
        depth => again(options, "read-at-once", depth.min(4) - 1, true),
    }
}

/// Four children at once, each of which has a file read by one call over all that it has of its
/// parent.
pub fn children_read(options: &Options) -> Verdict {
    const FILE: i32 = 77;
    const CHILDREN: usize = 4;
    let region = Region::map(options.pages() / 2, options.seed)?;
    region.fill(0);
    put_pattern(FILE, region.pages, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let (go_on, release) = sys::pipe()?;
    let child = || {
        in_child(|| {
            let mut byte = 0;
            sys::read_all(go_on, &mut byte, 1)?;
            read_pattern(FILE, &region)
        })
    };
    let children: Vec<Child> = (0..CHILDREN).map(|_| child()).collect::<Result<_, _>>()?;
    sys::write_all(release, [0; CHILDREN].as_ptr(), CHILDREN)?;
    wait_all(children)?;
    region.check(0)
}

/// Has all of `into` read by one call from what [`put_pattern`] made.
fn read_pattern(file: i32, into: &Region) -> Verdict {
    // SAFETY: the mapping is as long.
    let got = unsafe { libc::pread(file, into.base.cast(), into.bytes(), 0) };
    sys::same("bytes that were read", into.bytes() as i64, check("pread", got as i64)?)?;
    into.check(1)
}

/// Makes a file in memory, open under this number, of so many pages of generation 1.
fn put_pattern(number: i32, pages: usize, seed: u64) -> Verdict {
    // SAFETY: the name ends with a zero byte.
    let made = unsafe { libc::memfd_create(c"pattern".as_ptr(), libc::MFD_CLOEXEC) };
    let made = check("memfd_create", made)? as i32;
    // SAFETY: both numbers are only passed on.
    check("dup2", unsafe { libc::dup2(made, number) })?;
    sys::close(made);
    let one = Region::map(1, seed)?;
    for page in 0..pages as u64 {
        Region { first: page, ..one }.fill_page(0, 1);
        sys::write_all(number, one.base, PAGE)?;
    }
    Ok(())
}
