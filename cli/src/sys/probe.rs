//! Small experiments that `doctor` and `run` make: does the kernel do it, for this user, here?

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use casemate_keeper::PAGE_BYTES;
use casemate_keeper::sys::pagemap::Pagemap;
use rustix::process::{DumpableBehavior, WaitOptions};

use super::child::Child;
use super::region::Region;

/// A descriptor or an error from a system call's value.
fn descriptor(value: i64) -> io::Result<OwnedFd> {
    if value < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(value as i32) })
}

/// Creates a secret memory area.
pub fn memfd_secret() -> io::Result<()> {
    // SAFETY: creates a descriptor and touches no memory.
    let fd = descriptor(unsafe { libc::syscall(libc::SYS_memfd_secret, libc::O_CLOEXEC) })?;
    rustix::fs::ftruncate(&fd, PAGE_BYTES as u64)?;
    let area = Region::of_file(std::os::fd::AsFd::as_fd(&fd), PAGE_BYTES)?;
    area.word(0).store(1, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// Sets an io_uring up.
pub fn io_uring() -> io::Result<()> {
    // struct io_uring_params is 120 bytes.
    let mut parameters = [0_u64; 15];
    // SAFETY: the kernel reads and writes exactly the structure that is lent.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    descriptor(fd).map(drop)
}

/// Asks PAGEMAP_SCAN which pages of a region are there.
pub fn pagemap_scan() -> io::Result<()> {
    let region = Region::anonymous(PAGE_BYTES)?;
    region.word(0).store(1, std::sync::atomic::Ordering::Relaxed);
    let page = region.address()..region.address() + region.bytes() as u64;
    let mut found = Vec::new();
    Pagemap::own()?.for_each_present(page.clone(), &mut |run| found.push(run))?;
    if found == [page] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Whether a process may put itself under a seccomp filter. Nothing comes of it here: there is no
/// filter at the address, and the kernel says so only if it knows filters.
pub fn seccomp_filters() -> io::Result<()> {
    // SAFETY: the kernel reads nothing at a null pointer.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, 0_usize, 0, 0) };
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
        error => Err(error),
    }
}

/// Whether a child can be put under a filter that hands its system calls to a listener. Fails with
/// [`io::ErrorKind::ResourceBusy`] where an inherited filter has a listener already.
pub fn seccomp_listener() -> io::Result<()> {
    let action = libc::SECCOMP_RET_USER_NOTIF;
    seccomp(libc::SECCOMP_GET_ACTION_AVAIL, 0, (&raw const action).cast())?;
    let mut sizes = [0_u16; 3];
    seccomp(libc::SECCOMP_GET_NOTIF_SIZES, 0, (&raw mut sizes).cast())?;
    let child = Child::fork(|| match listen() {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    })?;
    match child.wait_for(WaitOptions::empty())?.exit_status() {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Puts this process under a filter that allows everything, and listens to it.
fn listen() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let mut allow = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    seccomp(libc::SECCOMP_SET_MODE_FILTER, flags, (&raw const program).cast())
}

fn seccomp(operation: u32, flags: u64, argument: *const libc::c_void) -> io::Result<()> {
    // SAFETY: the callers above pass what each operation reads or fills: an action, three sizes, a
    // program of one instruction; all of it lives for the call.
    let code = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, argument) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A child that does nothing but wait, dumpable as a program is after execve.
fn idle_child() -> io::Result<Child> {
    let (ready, tell) = rustix::pipe::pipe()?;
    let child = Child::fork(|| {
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
        let _ = rustix::io::write(&tell, b"!");
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    })?;
    drop(tell);
    let mut byte = [0_u8; 1];
    let _ = rustix::io::read(&ready, &mut byte)?;
    Ok(child)
}

/// Attaches to a child as a debugger does, and lets go.
pub fn ptrace_child() -> io::Result<()> {
    let child = idle_child()?;
    let pid = child.pid().as_raw_nonzero().get();
    // SAFETY: seizing and interrupting our own child changes no memory.
    let seized = unsafe {
        libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, 0_usize) == 0
            && libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0_usize, 0_usize) == 0
    };
    if !seized {
        return Err(io::Error::last_os_error());
    }
    let status = child.wait_for(WaitOptions::UNTRACED)?;
    if !status.stopped() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: as above.
    let code = unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0_usize, 0_usize) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a child's memory.
pub fn read_child() -> io::Result<()> {
    const MARK: u64 = 0x6361_7365_6d61_7465;
    // Filled before the fork, so that the child has the same word at the same place.
    let region = Region::anonymous(4096)?;
    region.word(0).store(MARK, std::sync::atomic::Ordering::Relaxed);
    let child = idle_child()?;
    let mut word = 0_u64;
    let local = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: region.address() as *mut libc::c_void, iov_len: 8 };
    let pid = child.pid().as_raw_nonzero().get();
    // SAFETY: eight bytes go into a word of ours.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    match read {
        8 if word == MARK => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Lets a system call read the first word of a region, which may be missing.
pub fn kernel_reads(region: &Region) -> io::Result<()> {
    let (_keep, into) = rustix::pipe::pipe()?;
    // SAFETY: the word is inside the mapping; if its page cannot be served the kernel says EFAULT.
    let wrote = unsafe { libc::write(into.as_raw_fd(), region.address() as *const _, 8) };
    if wrote == 8 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
