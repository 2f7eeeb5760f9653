//! Another process reads and writes missing pages: `process_vm_readv`, `/proc/PID/mem`, a debugger.

use crate::support::children::wait_all;
use crate::support::sys::{self, check};
use crate::support::{Ballast, Child, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::os::unix::fs::FileExt;

fn transfer(write: bool, pid: i32, own: *mut u8, other: *mut u8, bytes: usize) -> Verdict {
    let local = libc::iovec { iov_base: own.cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: other.cast(), iov_len: bytes };
    let (name, call) = if write {
        ("process_vm_writev", libc::SYS_process_vm_writev)
    } else {
        ("process_vm_readv", libc::SYS_process_vm_readv)
    };
    // SAFETY: both ranges are mapped for the length of the call; the kernel checks the other's.
    let done = unsafe { libc::syscall(call, pid, &local, 1_usize, &remote, 1_usize, 0_usize) };
    sys::same(name, bytes as i64, check(name, done)?)
}

/// Parent and child exchange pages that are missing on both sides.
pub fn vm_readv(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    let copy = Region::map(region.pages, options.seed)?;
    region.fill(1);
    copy.fill(0);
    let (ready, tell) = sys::pipe()?;
    let (go_on, release) = sys::pipe()?;
    let child = in_child(|| {
        region.fill(2);
        ballast.squeeze()?;
        sys::write_all(tell, b"r".as_ptr(), 1)?;
        let mut byte = 0;
        sys::read_all(go_on, &mut byte, 1)?;
        region.check(3)
    })?;
    let mut byte = 0;
    sys::read_all(ready, &mut byte, 1)?;
    ballast.squeeze()?;
    transfer(false, child.pid, copy.base, region.base, region.bytes())?;
    copy.check(2)?;
    region.check(1)?;
    copy.fill(3);
    ballast.squeeze()?;
    transfer(true, child.pid, copy.base, region.base, region.bytes())?;
    sys::write_all(release, b"g".as_ptr(), 1)?;
    child.wait()?;
    region.check(1)
}

/// Eight children each read what they have of their parent through `process_vm_readv`: the kernel
/// pins the pages, makes a copy of each that others have, and raises no fault. With `--file` they
/// live until it is removed.
pub fn pinned_copies(options: &Options) -> Verdict {
    const CHILDREN: usize = 8;
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let region = Region::map(options.pages() / 16, options.seed)?;
    region.fill(0);
    let ((ready, tell), (go_on, release)) = (sys::pipe()?, sys::pipe()?);
    let live = || {
        let copy = Region::map(16, options.seed)?;
        for first in (0..region.pages).step_by(copy.pages) {
            let part = region.part(first, copy.pages);
            transfer(false, std::process::id() as i32, copy.base, part.base, copy.bytes())?;
            Region { first: part.first, ..copy }.check(0)?;
        }
        sys::write_all(tell, b"r".as_ptr(), 1)?;
        let mut byte = 0;
        sys::read_all(go_on, &mut byte, 1)?;
        region.check(0)?;
        region.fill(1);
        region.check(1)
    };
    let children: Vec<Child> = (0..CHILDREN).map(|_| in_child(live)).collect::<Result<_, _>>()?;
    let mut bytes = [0; CHILDREN];
    sys::read_all(ready, bytes.as_mut_ptr(), bytes.len())?;
    if let Some(file) = options.file.as_ref().filter(|file| !file.is_dir()) {
        std::fs::write(file, "").map_err(|e| Trouble(e.to_string()))?;
        while file.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    sys::write_all(release, bytes.as_ptr(), bytes.len())?;
    wait_all(children)?;
    region.check(0)
}

/// Reads its own memory, and a child's, through `/proc`.
pub fn proc_mem(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    let copy = Region::map(region.pages, options.seed)?;
    region.fill(5);
    copy.fill(0);
    ballast.squeeze()?;
    let own = std::fs::File::open("/proc/self/mem").map_err(|e| e.to_string())?;
    for page in (0..region.pages).step_by(CHUNK) {
        let pages = CHUNK.min(region.pages - page);
        // SAFETY: `copy` is mapped, and only this slice refers to it now.
        let into = unsafe { std::slice::from_raw_parts_mut(copy.page(page), pages * PAGE) };
        own.read_exact_at(into, region.page(page) as u64).map_err(|e| e.to_string())?;
    }
    copy.check(5)
}

const CHUNK: usize = 64;

/// A small debugger: follows its child from stop to stop, reads and writes words of evicted pages.
pub fn debugger(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    region.fill(1);
    let child = in_child(|| {
        // SAFETY: makes the parent this process's tracer.
        check("PTRACE_TRACEME", unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) })?;
        region.fill(2);
        ballast.squeeze()?;
        // SAFETY: stops this process for its tracer.
        unsafe { libc::raise(libc::SIGSTOP) };
        (0..region.pages).try_for_each(|page| region.check_page(page, 2 + u64::from(page % 8 == 0)))
    })?;
    let status = child.status()?;
    if !libc::WIFSTOPPED(status) {
        return Err(Trouble(format!("the debugged child did not stop: status {status:#x}")));
    }
    for page in (0..region.pages).step_by(8) {
        for word in 0..PAGE / 8 {
            let place = region.page(page).wrapping_add(word * 8);
            sys::set_errno(0);
            // SAFETY: reads a word of the stopped child.
            let got = unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, child.pid, place, 0) } as u64;
            if sys::errno() != 0 {
                return Err(Trouble(format!("PTRACE_PEEKDATA: {}", sys::errno_text())));
            }
            let right = crate::support::word(options.seed, page as u64, 2, word);
            sys::same("a peeked word", right, got)?;
            let new = crate::support::word(options.seed, page as u64, 3, word);
            // SAFETY: writes a word of the stopped child.
            let done = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, child.pid, place, new) };
            check("PTRACE_POKEDATA", done)?;
        }
    }
    region.check(1)?;
    finish(&child)
}

/// Lets the child run, through every further stop, to its end.
fn finish(child: &Child) -> Verdict {
    let mut signal = 0;
    loop {
        // SAFETY: the child is stopped and traced by this process.
        let done = unsafe { libc::ptrace(libc::PTRACE_CONT, child.pid, 0, signal) };
        check("PTRACE_CONT", done)?;
        let status = child.status()?;
        if !libc::WIFSTOPPED(status) {
            return crate::support::children::describe("debugged child", child.pid, status);
        }
        signal = libc::WSTOPSIG(status);
    }
}
