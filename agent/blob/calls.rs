//! The system calls that the agent makes, as functions.
use crate::arch::syscall;
use crate::wire::confinement::{self, Instruction};
use crate::wire::{Errno, PAGE_BYTES};
use core::sync::atomic::AtomicU32;

const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const MREMAP: usize = 25;
const IOCTL: usize = 16;
const MADVISE: usize = 28;
const CHDIR: usize = 80;
const CLOSE: usize = 3;
const POLL: usize = 7;
const RECVMSG: usize = 47;
const SOCKETPAIR: usize = 53;
const SETSOCKOPT: usize = 54;
const SETSID: usize = 112;
const MUNLOCK: usize = 150;
const VMSPLICE: usize = 278;
const PIPE2: usize = 293;
const WRITE: usize = 1;
const MLOCKALL: usize = 151;
const BRK: usize = 12;
const FUTEX: usize = 202;
const EXIT_GROUP: usize = 231;
const MLOCK2: usize = 325;
const USERFAULTFD: usize = 323;
const CAPGET: usize = 125;
const CAPSET: usize = 126;

pub const EAGAIN: i32 = 11;
pub const EBUSY: i32 = 16;
pub const EEXIST: i32 = 17;
pub const ETIMEDOUT: i32 = 110;
pub const DONTFORK: u32 = 10;
pub const NOHUGEPAGE: u32 = 15;
pub const DONTDUMP: u32 = 16;
pub const POPULATE_WRITE: u32 = 23;
pub const DONTNEED_LOCKED: u32 = 24;
const EMFILE: i32 = 24;
/// Set if descriptors were sent for which the table had no number.
const CUT_OFF: usize = 8;
const NEW_FLAGS: usize = 0o2_000_000 | 0o4000;

/// A call's arguments, the rest being 0.
macro_rules! call {
    ($nr:expr $(, $arg:expr)*) => {{
        #[allow(unused_mut, unused_assignments)]
        {
            let mut args = [0_usize; 6];
            let mut _i = 0;
            $(args[_i] = $arg as usize; _i += 1;)*
            checked(syscall($nr as usize, args))
        }
    }};
}

fn checked(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as usize) }
}

pub fn exit(code: i32) -> ! {
    loop {
        // SAFETY: ends this process.
        let _ = unsafe { call!(EXIT_GROUP, code) };
    }
}

/// Gives up what the agent shares with the program or has from it: descriptors, session, directory,
/// name.
pub fn leave_the_program() -> Result<(), Errno> {
    // SAFETY: the descriptor table is this process's own copy; the strings end in 0.
    unsafe {
        call!(confinement::CLOSE_RANGE, 0, u32::MAX, 0)?;
        let _ = call!(SETSID);
        let _ = call!(CHDIR, c"/".as_ptr());
        let _ = call!(confinement::PRCTL, 15, c"casemate-agent".as_ptr());
    }
    Ok(())
}

/// A pair of connected sockets, as descriptors 0 and 1 (the table is empty). Receiving on 0 gives
/// up after ten seconds.
pub fn socket_pair() -> Result<(), Errno> {
    let mut pair = [0_i32; 2];
    let patience = [10_i64, 0];
    // SAFETY: both pointers are to live locals of the size that the calls use.
    unsafe {
        call!(SOCKETPAIR, 1, 5 | 0o2_000_000, 0, &raw mut pair)?;
        call!(SETSOCKOPT, pair[0], 1, 20, &raw const patience, 16)?;
    }
    if pair == [0, 1] { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Receives one message with three to five descriptors; the rest of the array stays -1.
pub fn receive_descriptors(socket: i32) -> Result<[i32; 5], Errno> {
    #[repr(C, align(8))]
    struct Control {
        len: usize,
        level: i32,
        kind: i32,
        fds: [i32; 5],
    }
    #[repr(C)]
    struct Message {
        name: usize,
        name_len: usize,
        iov: *mut [usize; 2],
        iov_len: usize,
        control: *mut Control,
        control_len: usize,
        flags: usize,
    }
    let mut byte = 0_u64;
    let mut iov = [(&raw mut byte) as usize, 8];
    let mut control = Control { len: 0, level: 0, kind: 0, fds: [-1; 5] };
    let mut message = Message {
        name: 0,
        name_len: 0,
        iov: &raw mut iov,
        iov_len: 1,
        control: &raw mut control,
        control_len: 16 + 20,
        flags: 0,
    };
    // SAFETY: every pointer in the message is to a live local of the length given beside it.
    unsafe { call!(RECVMSG, socket, &raw mut message, 0x4000_0000)? };
    if message.flags & CUT_OFF != 0 {
        return Err(Errno(EMFILE));
    }
    let count = control.len.saturating_sub(16) / 4;
    if control.level != 1 || control.kind != 1 || !(3..=5).contains(&count) {
        return Err(Errno::EINVAL);
    }
    Ok(control.fds)
}

/// A new userfaultfd of this address space, made through `/dev/userfaultfd` where there is one.
pub fn new_userfaultfd(device: i32) -> Result<i32, Errno> {
    // SAFETY: makes a descriptor; touches no memory.
    let fd = unsafe {
        if device >= 0 {
            call!(IOCTL, device, 0xaa00, NEW_FLAGS)
        } else {
            call!(USERFAULTFD, NEW_FLAGS)
        }
    }?;
    Ok(fd as i32)
}

pub fn close(fd: i32) {
    // SAFETY: the caller's own descriptor.
    let _ = unsafe { call!(CLOSE, fd) };
}

/// Maps `len` bytes, at `at` if nothing is there: of `fd`, shared, or if that is negative, new
/// private memory. That is mapped as stacks are (`MAP_GROWSDOWN`), which do not count towards the
/// program's limit on data; nothing is ever touched below it, so it does not grow.
pub fn map(at: usize, len: usize, executable: bool, fd: i32) -> Result<usize, Errno> {
    let prot = if executable { 7 } else { 3 };
    let flags = if fd < 0 { 0x22 | 0x4000 | 0x100 } else { 1 };
    // SAFETY: the kernel chooses free addresses; `at` is a wish.
    let at = unsafe { call!(MMAP, at, len, prot, flags, fd as isize, 0) }?;
    for advice in [DONTFORK, DONTDUMP] {
        if let Err(error) = advise(at, len, advice) {
            unmap(at, len);
            return Err(error);
        }
    }
    Ok(at)
}

/// Reserves inaccessible address space, at `at` if that is free.
pub fn reserve(at: usize, len: usize) -> Result<usize, Errno> {
    // SAFETY: the kernel chooses free addresses; `at` is a wish; PROT_NONE: no access is allowed
    // yet.
    let at = unsafe { call!(MMAP, at, len, 0, 0x22 | 0x4000, -1_isize, 0) }?;
    Ok(at)
}

/// Moves the program's pages at `src` to the reserved range `to`. The mapping at `src` stays,
/// empty.
pub fn move_aside(src: usize, len: usize, to: usize) -> Result<usize, Errno> {
    // MAYMOVE, FIXED, DONTUNMAP.
    // SAFETY: `to` is a reservation of the agent's own; emptying `src` is the keeper's to decide.
    unsafe { call!(MREMAP, src, len, len, 1 | 2 | 4, to) }
}

/// Makes a call for the program with the program's arguments, which the kernel checks.
pub fn map_for_program(addr: u64, len: u64, prot: u32, flags: u32) -> Result<usize, Errno> {
    // SAFETY: the program's own call on its own memory; the keeper refuses those that touch the
    // agent's.
    unsafe { call!(MMAP, addr, len, prot, flags, -1_isize, 0) }
}

/// As [`map_for_program`].
pub fn unmap_for_program(addr: u64, len: u64) -> Result<usize, Errno> {
    // SAFETY: as above.
    unsafe { call!(MUNMAP, addr, len) }
}

/// As [`map_for_program`].
pub fn remap_for_program(
    addr: u64,
    old_len: u64,
    new_len: u64,
    flags: u32,
    new_addr: u64,
) -> Result<usize, Errno> {
    // SAFETY: as above.
    unsafe { call!(MREMAP, addr, old_len, new_len, flags, new_addr) }
}

/// As [`map_for_program`].
pub fn lock_all_for_program(flags: u32) -> Result<usize, Errno> {
    // SAFETY: as above; it changes no contents.
    unsafe { call!(MLOCKALL, flags) }
}

/// As [`map_for_program`].
pub fn break_for_program(end: u64) -> Result<usize, Errno> {
    // SAFETY: as above.
    unsafe { call!(BRK, end) }
}

/// Rings an eventfd.
pub fn ring(bell: i32) {
    let one = 1_u64;
    // SAFETY: reads a live local of eight bytes.
    let _ = unsafe { call!(WRITE, bell, &raw const one, 8) };
}

/// Moves a mapping to where another is, which goes.
pub fn move_over(from: usize, len: usize, to: usize) -> Result<usize, Errno> {
    // MAYMOVE, FIXED.
    // SAFETY: what lies at both places is the keeper's to decide; the agent keeps no references
    // into either.
    unsafe { call!(MREMAP, from, len, len, 1 | 2, to) }
}

/// A pipe: its end for reading, and that for writing. Neither waits.
pub fn pipe() -> Result<[i32; 2], Errno> {
    let mut ends = [0_i32; 2];
    // SAFETY: the pointer is to a live local of the size that the call uses.
    unsafe { call!(PIPE2, &raw mut ends, NEW_FLAGS) }?;
    Ok(ends)
}

/// Holds `len` bytes of whole pages by a pipe: bytes held.
pub fn hold(pipe: i32, at: usize, len: usize) -> Result<usize, Errno> {
    /// Where there is no place in the pipe: not to wait for one.
    const NONBLOCK: u32 = 2;
    let part = [at, len];
    // SAFETY: one part, a live local; nothing is written.
    unsafe { call!(VMSPLICE, pipe, &raw const part, 1, NONBLOCK) }
}

/// Sets rights (`PROT_` bits).
pub fn set_rights(at: usize, len: usize, prot: u32) -> Result<usize, Errno> {
    // SAFETY: called with the agent's own mappings only.
    unsafe { call!(MPROTECT, at, len, prot) }
}

pub fn unmap(at: usize, len: usize) {
    // SAFETY: called with the agent's own mappings only.
    let _ = unsafe { call!(MUNMAP, at, len) };
}

pub fn advise(at: usize, len: usize, advice: u32) -> Result<usize, Errno> {
    // SAFETY: on the agent's own memory it is the agent's to decide, on the program's the keeper's;
    // the agent keeps no references into either.
    unsafe { call!(MADVISE, at, len, advice) }
}

/// Locks pages as they come in, or unlocks them (the program's `mlockall` may have locked them).
pub fn lock(at: usize, len: usize, locked: bool) -> Result<usize, Errno> {
    // SAFETY: changes no contents.
    unsafe { if locked { call!(MLOCK2, at, len, 1) } else { call!(MUNLOCK, at, len) } }
}

/// `_IOWR(0xAA, 5, struct uffdio_move)`. The keeper's `sys::uffd::abi` has it as well; the agent
/// takes nothing from other crates, and to the wire format it does not belong.
const UFFDIO_MOVE: usize = 0xc028_aa05;

/// [`UFFDIO_MOVE`] that wakes no thread: bytes moved, and the error number that ended it. A missing
/// page ends it, unless `holes` are allowed.
pub fn move_pages(uffd: i32, dst: u64, src: u64, len: u64, holes: bool) -> (i64, i32) {
    let mut request = [dst, src, len, if holes { 3 } else { 1 }, 0];
    // SAFETY: the request is a live local of the ioctl's size; moving the program's pages is the
    // keeper's to decide, and the agent's own memory is not among them.
    match unsafe { call!(IOCTL, uffd, UFFDIO_MOVE, &raw mut request) } {
        Ok(_) => (request[4] as i64, 0),
        Err(error) if request[4] as i64 > 0 => (request[4] as i64, error.0),
        Err(error) => (-i64::from(error.0), error.0),
    }
}

/// Sleeps while `*word == seen`, a second at most; false if the second passed.
pub fn futex_wait(word: &AtomicU32, seen: u32) -> bool {
    let second = [1_i64, 0];
    // SAFETY: the word lives in the mailbox, the timeout on the stack.
    let slept = unsafe { call!(FUTEX, word.as_ptr(), 0, seen, &raw const second) };
    !matches!(slept, Err(Errno(ETIMEDOUT)))
}

pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives in the mailbox.
    let _ = unsafe { call!(FUTEX, word.as_ptr(), 1, 1) };
}

/// Whether the process of this pidfd has ended; waits for it if told to.
pub fn has_ended(pidfd: i32, wait: bool) -> bool {
    let mut poll = [pidfd, 1];
    // SAFETY: one pollfd, a live local.
    let ready = unsafe { call!(POLL, &raw mut poll, 1, if wait { -1_isize } else { 0 }) };
    matches!(ready, Ok(n) if n > 0)
}

pub fn pidfd_open(pid: u32) -> Result<i32, Errno> {
    // SAFETY: makes a descriptor; touches no memory.
    unsafe { call!(confinement::PIDFD_OPEN, pid, 0) }.map(|fd| fd as i32)
}

pub fn kill(pidfd: i32) {
    // SAFETY: touches no memory of this process.
    let _ = unsafe { call!(confinement::PIDFD_SEND_SIGNAL, pidfd, confinement::SIGKILL, 0, 0) };
}

/// Gives up every capability except those in `kept` (bits of the lower 32).
pub fn keep_capabilities(kept: u32) -> Result<(), Errno> {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Set {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    const NONE: Set = Set { effective: 0, permitted: 0, inheritable: 0 };
    let mut header = [0x2008_0522_u32, 0];
    let mut sets = [NONE; 2];
    // SAFETY: both pointers are to live locals of the sizes that version 3 of the calls uses.
    unsafe {
        call!(CAPGET, &raw mut header, &raw mut sets)?;
        let left = sets[0].permitted & kept;
        sets = [Set { effective: left, permitted: left, inheritable: 0 }, NONE];
        call!(CAPSET, &raw mut header, &raw const sets)?;
    }
    Ok(())
}

/// Sets no_new_privs.
pub fn gain_no_privileges() -> Result<(), Errno> {
    // SAFETY: changes this process's credentials only.
    unsafe { call!(confinement::PRCTL, 38, 1) }.map(drop)
}

/// Puts the agent under a seccomp filter, permanently.
pub fn set_filter(filter: &[Instruction]) -> Result<(), Errno> {
    let program = [filter.len(), filter.as_ptr() as usize];
    // SAFETY: the kernel copies the filter, which is live for the call and as long as it says.
    unsafe { call!(confinement::PRCTL, confinement::PR_SET_SECCOMP, 2, &raw const program) }.map(drop)
}
