//! A program that registers memory with a userfaultfd of its own which a pager may have long had,
//! as QEMU does when it migrates and CRIU when it restores.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict};

const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_UNREGISTER: u64 = 0x8010_aa01;
const UFFDIO_COPY: u64 = 0xc028_aa03;
const REGISTER_MODE_MISSING: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
const PAGES: usize = 512;
/// The first version of `struct clone_args`.
const CLONE_ARGS_BYTES: usize = 64;

/// Memory that was written and paged is dropped, registered, and filled by the program's own
/// handler; the rest of it stays. It may be refused with a clear error; then the memory stays as it
/// is.
pub fn own_uffd_on_old_memory(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(4 * PAGES, options.seed)?;
    region.fill(1);
    ballast.squeeze()?;
    let flags = libc::O_CLOEXEC | 1; // UFFD_USER_MODE_ONLY
    // SAFETY: only makes a descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
    if descriptor < 0 {
        return refused("userfaultfd", &region, &mut ballast);
    }
    let mut api = [UFFD_API, 0, 0];
    // SAFETY: `api` is a struct uffdio_api.
    check("UFFDIO_API", unsafe { libc::ioctl(descriptor, UFFDIO_API, &mut api) })?;
    let target = region.part(PAGES, PAGES);
    let mut register = [target.base as u64, target.bytes() as u64, REGISTER_MODE_MISSING, 0];
    // SAFETY: `register` is a struct uffdio_register over the trap's own range.
    if unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &mut register) } < 0 {
        return refused("UFFDIO_REGISTER", &region, &mut ballast);
    }
    // What is there stays until it is dropped: no zeros may be served for what is out. (A page that
    // is out is missing to the new handler. So it is only asked about what was dropped.)
    sys::advise(target.base, target.bytes(), libc::MADV_DONTNEED)?;
    let server = std::thread::spawn(move || serve(descriptor, &target));
    ballast.squeeze()?;
    (0..PAGES).rev().try_for_each(|page| target.check_page(page, 6))?;
    server.join().map_err(|_| "the serving thread panicked")??;
    ballast.squeeze()?;
    target.check(6)?;
    let mut range = [target.base as u64, target.bytes() as u64];
    // SAFETY: `range` is a struct uffdio_range over the trap's own range.
    check("UFFDIO_UNREGISTER", unsafe { libc::ioctl(descriptor, UFFDIO_UNREGISTER, &mut range) })?;
    sys::close(descriptor);
    // It is ordinary memory again.
    for generation in 7..10 {
        target.fill(generation);
        ballast.squeeze()?;
        target.check(generation)?;
    }
    region.part(0, PAGES).check(1)?;
    region.part(2 * PAGES, 2 * PAGES).check(1)
}

/// A page of its own userfaultfd is all that a program has when it begins to grow, so that what a
/// pager finds registered is none of the pager's.
pub fn grows_beside_own_uffd(options: &Options) -> Verdict {
    let (descriptor, _) = page_of_own(libc::MAP_PRIVATE)?;
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    region.check(0)?;
    sys::close(descriptor);
    Ok(())
}

/// A userfaultfd of its own tells it of changes to its memory; the thread that reads this uses
/// memory that a pager may have taken.
pub fn own_uffd_events(options: &Options) -> Verdict {
    const EVENT_UNMAP: u64 = 1 << 6;
    let (descriptor, page) = match page_with(EVENT_UNMAP, libc::MAP_PRIVATE) {
        Ok(made) => made,
        Err(Trouble(text)) if text.contains("UFFDIO_REGISTER") => return Ok(()),
        Err(trouble) => return Err(trouble),
    };
    let region = Region::map(options.pages(), options.seed)?;
    let reader = std::thread::spawn(move || {
        let mut message = [0_u8; 32];
        sys::read_all(descriptor, message.as_mut_ptr(), message.len())?;
        region.part(0, 8).check(0)
    });
    region.fill(0);
    region.check(0)?;
    let fixed = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    sys::map(page, PAGE, sys::RW, fixed)?;
    reader.join().map_err(|_| "the reading thread panicked")??;
    region.check(0)
}

/// A word of `futex`, and a robust mutex of a thread that ends, lie in a page that the program's
/// own userfaultfd has registered and no thread serves: the kernel does not wait for it, nor may a
/// pager.
pub fn futex_in_own_uffd(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let (descriptor, page) = page_of_own(libc::MAP_SHARED)?;
    ballast.squeeze()?;
    let private = libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel finds no page at the word.
    let r = unsafe { libc::syscall(libc::SYS_futex, page, private, 0, 0, 0, 0) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    sys::same("FUTEX_LOCK_PI", (-1, Some(libc::EFAULT)), (r, errno))?;
    let address = page as usize;
    let ends = std::thread::spawn(move || {
        // A list without mutexes, and one that is about to be locked. The kernel reads it when the
        // thread ends, so it is never freed.
        let head = Box::leak(Box::new([0, 0, address]));
        head[0] = head.as_ptr() as usize;
        // SAFETY: the list is as the kernel expects it.
        unsafe { libc::syscall(libc::SYS_set_robust_list, head.as_ptr(), 24) }
    });
    sys::same("set_robust_list", Some(0), ends.join().ok())?;
    sys::close(descriptor);
    ballast.squeeze()
}

/// The arguments of `clone3` lie in such a page, and the thread that serves it maps memory first: a
/// pager that waits for the page must make that call meanwhile.
pub fn clone3_in_own_uffd(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    for _ in 0..4 {
        let (descriptor, page) = page_of_own(libc::MAP_SHARED)?;
        ballast.squeeze()?;
        let server = std::thread::spawn(move || serve_arguments(descriptor));
        // SAFETY: a fork, whose child leaves at once.
        let pid = unsafe { libc::syscall(libc::SYS_clone3, page, CLONE_ARGS_BYTES) };
        if pid == 0 {
            // SAFETY: ends the child without the parent's destructors.
            unsafe { libc::_exit(3) };
        }
        let pid = check("clone3", pid)? as i32;
        let mut status = 0;
        // SAFETY: one live local is filled.
        check("waitpid", unsafe { libc::waitpid(pid, &mut status, 0) })?;
        sys::same("the child's status", 3 << 8, status)?;
        server.join().map_err(|_| "the serving thread panicked")??;
        sys::close(descriptor);
        sys::unmap(page, PAGE)?;
    }
    ballast.squeeze()
}

/// Maps memory, and fills the page that is asked for with the arguments of a fork.
fn serve_arguments(descriptor: i32) -> Verdict {
    const EXIT_SIGNAL: usize = 4;
    let mut message = [0_u64; 4];
    sys::read_all(descriptor, message.as_mut_ptr().cast(), size_of_val(&message))?;
    let source = sys::map_pages(64)?;
    // SAFETY: the page was mapped just now.
    unsafe { source.cast::<u64>().add(EXIT_SIGNAL).write(libc::SIGCHLD as u64) };
    let to = message[2] & !(PAGE as u64 - 1);
    let mut copy = [to, source as u64, PAGE as u64, 0, 0];
    // SAFETY: `copy` is a struct uffdio_copy; the source is mapped.
    check("UFFDIO_COPY", unsafe { libc::ioctl(descriptor, UFFDIO_COPY, &mut copy) })?;
    sys::unmap(source, 64 * PAGE)
}

/// A shared page that a userfaultfd of the trap's own has registered, and that one, which hears of
/// the kernel's faults too.
fn page_of_own(sharing: i32) -> Result<(i32, *mut u8), Trouble> {
    page_with(0, sharing)
}

fn page_with(features: u64, sharing: i32) -> Result<(i32, *mut u8), Trouble> {
    // SAFETY: only makes a descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
    let descriptor = check("userfaultfd", descriptor)? as i32;
    let mut api = [UFFD_API, features, 0];
    // SAFETY: `api` is a struct uffdio_api.
    check("UFFDIO_API", unsafe { libc::ioctl(descriptor, UFFDIO_API, &mut api) })?;
    let page = sys::map(std::ptr::null_mut(), PAGE, sys::RW, sharing | libc::MAP_ANONYMOUS)?;
    let mut register = [page as u64, PAGE as u64, REGISTER_MODE_MISSING, 0];
    // SAFETY: `register` is a struct uffdio_register over the trap's own page.
    let r = unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &mut register) };
    check("UFFDIO_REGISTER", r)?;
    Ok((descriptor, page))
}

/// Serves every page of the target once.
fn serve(descriptor: i32, target: &Region) -> Verdict {
    let source = Region::map(1, target.seed)?;
    for _ in 0..target.pages {
        let mut message = [0_u8; 32];
        sys::read_all(descriptor, message.as_mut_ptr(), message.len())?;
        sys::same("the event's kind", EVENT_PAGEFAULT, message[0])?;
        let mut address = [0; 8];
        address.copy_from_slice(&message[16..24]);
        let page = (u64::from_le_bytes(address) as usize - target.base as usize) / PAGE;
        Region { first: target.first + page as u64, ..source }.fill_page(0, 6);
        let mut copy = [target.page(page) as u64, source.base as u64, PAGE as u64, 0, 0];
        // SAFETY: `copy` is a struct uffdio_copy; the source is mapped.
        check("UFFDIO_COPY", unsafe { libc::ioctl(descriptor, UFFDIO_COPY, &mut copy) })?;
    }
    Ok(())
}

/// A refusal by name is right; nothing else may have changed.
fn refused(what: &str, region: &Region, ballast: &mut Ballast) -> Verdict {
    let error = sys::errno();
    if ![libc::EBUSY, libc::EPERM, libc::ENOSYS, libc::EINVAL].contains(&error) {
        return Err(Trouble(format!("{what}: refused with error {error}, which says nothing")));
    }
    eprintln!("note: {what} was refused with error {error}");
    region.check(1)?;
    region.fill(2);
    ballast.squeeze()?;
    region.check(2)
}
