//! The seccomp filter that an armed program is under: its calls that change an address space are
//! announced to the keeper before they take effect, all others pass. What the program executes
//! later is under it as well.
//!
//! 32-bit calls are not announced: processes that make them are not armed.
use super::image::Region;
use super::sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

const X86_64: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const ANNOUNCE: u32 = 0x7fc0_0000;
/// An error number of 0, without the call being made.
const SUCCEED: u32 = 0x0005_0000;
const KILL_THREAD: u32 = 0;

/// Offsets in `struct seccomp_data`; the instruction's address and the arguments are read in
/// halves.
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const ADDRESS_HIGH: u32 = 12;
const FIRST: u32 = 16;
const SECOND: u32 = 24;
const THIRD: u32 = 32;

/// The request of `ioctl` that asks for memory to be registered with a userfaultfd.
const UFFDIO_REGISTER: u32 = crate::sys::uffd::abi::UFFDIO_REGISTER as u32;

/// Calls that are announced with any arguments; an `execve`, since the new program is not known to
/// the keeper.
const ALWAYS: [i64; 13] = [
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_pkey_mprotect,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_fork,
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_execve,
    libc::SYS_execveat,
];
/// Rarely made: locking, `process_madvise`, `personality`, which decides rights of mappings, and
/// `mseal`.
const ALSO: [i64; 8] = [
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_process_madvise,
    libc::SYS_personality,
    462,
];

/// Operations of `futex` by which the kernel stores to a word.
const STORING_FUTEXES: [i32; 7] = [
    libc::FUTEX_WAKE_OP,
    libc::FUTEX_LOCK_PI,
    libc::FUTEX_UNLOCK_PI,
    libc::FUTEX_TRYLOCK_PI,
    libc::FUTEX_WAIT_REQUEUE_PI,
    libc::FUTEX_CMP_REQUEUE_PI,
    libc::FUTEX_LOCK_PI2,
];

/// Calls by which a descriptor comes up through which a device may store to the program's memory,
/// and the offset of their flags, of which `O_DIRECT` does that.
const OPENING: [(i64, u32); 3] =
    [(libc::SYS_openat, THIRD), (libc::SYS_open, SECOND), (libc::SYS_open_by_handle_at, THIRD)];
/// The same with any arguments.
const PINNING: [i64; 3] = [libc::SYS_openat2, libc::SYS_io_uring_setup, libc::SYS_io_setup];

/// Whether the filter announces calls of that number for the descriptor that comes of them: they
/// change no memory.
pub fn opens_for_devices(number: i64) -> bool {
    let opens = OPENING.iter().any(|(opening, _)| *opening == number);
    opens || PINNING.contains(&number) || number == libc::SYS_fcntl
}

/// Whether the filter announces calls of that number, with all or with some arguments, which change
/// memory.
pub fn is_announced(number: i64) -> bool {
    let with_some =
        [libc::SYS_clone, libc::SYS_shmat, libc::SYS_prctl, libc::SYS_seccomp, libc::SYS_futex];
    ALWAYS.contains(&number) || ALSO.contains(&number) || with_some.contains(&number)
}

/// An instruction of a seccomp filter, as the kernel reads it.
type Instruction = [u8; 8];

fn instruction(code: u16, if_so: u8, if_not: u8, value: u32) -> Instruction {
    let mut bytes = [0; 8];
    bytes[..2].copy_from_slice(&code.to_le_bytes());
    bytes[2] = if_so;
    bytes[3] = if_not;
    bytes[4..].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn load(place: u32) -> Instruction {
    instruction(0x20, 0, 0, place)
}

/// Skips `if_so` or `if_not` instructions.
fn if_equal(value: u32, if_so: u8, if_not: u8) -> Instruction {
    instruction(0x15, if_so, if_not, value)
}

fn if_at_least(value: u32, if_so: u8, if_not: u8) -> Instruction {
    instruction(0x35, if_so, if_not, value)
}

fn if_any_bit(bits: u32, if_so: u8, if_not: u8) -> Instruction {
    instruction(0x45, if_so, if_not, bits)
}

/// Keeps only these bits of what was loaded.
fn mask(bits: u32) -> Instruction {
    instruction(0x54, 0, 0, bits)
}

fn answer(value: u32) -> Instruction {
    instruction(0x06, 0, 0, value)
}

/// The filter's instructions.
fn instructions() -> Vec<Instruction> {
    let high = |address: u64| (address >> 32) as u32;
    let mut filter = vec![
        load(PROCESSOR),
        if_equal(X86_64, 1, 0),
        answer(ALLOW),
        // Calls made from the agent's region.
        load(ADDRESS_HIGH),
        if_at_least(high(Region::PLACES.start), 0, 2),
        if_at_least(high(Region::PLACES.end), 1, 0),
        answer(ALLOW),
        load(NUMBER),
    ];
    for call in ALWAYS.into_iter().chain(ALSO) {
        filter.extend([if_equal(call as u32, 0, 1), answer(ANNOUNCE)]);
    }
    for call in PINNING {
        filter.extend([if_equal(call as u32, 0, 1), answer(ANNOUNCE)]);
    }
    for (call, flags) in OPENING {
        filter.extend([
            if_equal(call as u32, 0, 4),
            load(flags),
            if_any_bit(libc::O_DIRECT as u32, 0, 1),
            answer(ANNOUNCE),
            answer(ALLOW),
        ]);
    }
    let futexes = 2 * STORING_FUTEXES.len() as u8;
    filter.extend([
        if_equal(libc::SYS_futex as u32, 0, futexes + 3),
        load(SECOND),
        mask(libc::FUTEX_CMD_MASK as u32),
    ]);
    for operation in STORING_FUTEXES {
        filter.extend([if_equal(operation as u32, 0, 1), answer(ANNOUNCE)]);
    }
    filter.extend([
        answer(ALLOW),
        // A `clone` that shares the memory (a thread, a vfork) does not change it. The kernel may
        // store to it when the thread ends.
        if_equal(libc::SYS_clone as u32, 0, 5),
        load(FIRST),
        if_any_bit(libc::CLONE_VM as u32, 0, 2),
        if_any_bit(libc::CLONE_CHILD_CLEARTID as u32, 1, 0),
        answer(ALLOW),
        answer(ANNOUNCE),
        if_equal(libc::SYS_fcntl as u32, 0, 6),
        load(SECOND),
        if_equal(libc::F_SETFL as u32, 0, 3),
        load(THIRD),
        if_any_bit(libc::O_DIRECT as u32, 0, 1),
        answer(ANNOUNCE),
        answer(ALLOW),
        if_equal(libc::SYS_shmat as u32, 0, 4),
        load(THIRD),
        if_any_bit(libc::SHM_REMAP as u32, 1, 0),
        answer(ALLOW),
        answer(ANNOUNCE),
        // The kernel refuses the strict mode and a second listener to a thread under this filter.
        if_equal(libc::SYS_seccomp as u32, 0, 7),
        load(FIRST),
        if_equal(libc::SECCOMP_SET_MODE_STRICT, 0, 1),
        answer(ANNOUNCE),
        load(SECOND),
        if_any_bit(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32, 0, 1),
        answer(ANNOUNCE),
        answer(ALLOW),
        // The kernel refuses to register memory with a second userfaultfd; announced so that it can
        // be counted.
        if_equal(libc::SYS_ioctl as u32, 0, 4),
        load(SECOND),
        if_equal(UFFDIO_REGISTER, 0, 1),
        answer(ANNOUNCE),
        answer(ALLOW),
        // Merged pages would lose their write protection without an event: the call succeeds
        // without effect, as on a kernel where KSM does not run.
        if_equal(libc::SYS_prctl as u32, 0, 8),
        load(FIRST),
        if_equal(libc::PR_SET_MEMORY_MERGE as u32, 0, 1),
        answer(SUCCEED),
        if_equal(libc::PR_SET_SECCOMP as u32, 0, 3),
        load(SECOND),
        if_equal(libc::SECCOMP_MODE_STRICT, 0, 1),
        answer(ANNOUNCE),
        answer(ALLOW),
        answer(ALLOW),
    ]);
    filter
}

/// The filter, for a process that is to be under it before it executes a program.
pub struct Early(Vec<Instruction>);

impl Early {
    /// Prepares it.
    #[must_use]
    pub fn prepare() -> Early {
        Early(instructions())
    }

    /// Puts the calling thread, which is its process's only one, under the filter. Allocates
    /// nothing. The listener's descriptor is closed by `execve`.
    ///
    /// # Errors
    /// Those of seccomp(2): `EBUSY` where another process listens already.
    pub fn begin(&self) -> io::Result<i32> {
        sys::listen_to_self(&self.0)
    }
}

/// Takes the listener that has this number in another process.
///
/// # Errors
/// Those of pidfd_getfd(2).
pub fn take_listener(pid: i32, number: i32) -> io::Result<OwnedFd> {
    sys::pidfd_getfd(sys::pidfd_open(pid)?.as_fd(), number)
}

/// The calls that the strict mode allows.
const STRICTLY: [i64; 4] =
    [libc::SYS_read, libc::SYS_write, libc::SYS_exit, libc::SYS_rt_sigreturn];

/// A filter equal to the strict mode, except that it ends a thread by SIGSYS. Laid out for address
/// `place`: first the `sock_fprog` that `seccomp` reads, then the instructions.
pub(super) fn strict(place: u64) -> Vec<u8> {
    let mut filter =
        vec![load(PROCESSOR), if_equal(X86_64, 1, 0), answer(KILL_THREAD), load(NUMBER)];
    for call in STRICTLY {
        filter.extend([if_equal(call as u32, 0, 1), answer(ALLOW)]);
    }
    filter.push(answer(KILL_THREAD));
    laid_out(place, filter)
}

fn laid_out(place: u64, filter: Vec<Instruction>) -> Vec<u8> {
    let mut block = Vec::with_capacity(16 + 8 * filter.len());
    block.extend((filter.len() as u64).to_le_bytes());
    block.extend((place + 16).to_le_bytes());
    block.extend(filter.into_iter().flatten());
    block
}

/// The bytes at [`Region::filter`] while the filter is set.
pub(super) fn block(region: Region) -> Vec<u8> {
    laid_out(region.filter(), instructions())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers: a machine for the six kinds of instructions.
    fn verdict(processor: u32, number: i64, at: u64, arguments: [u64; 3]) -> u32 {
        let mut data = [0_u8; 64];
        data[..4].copy_from_slice(&(number as u32).to_le_bytes());
        data[4..8].copy_from_slice(&processor.to_le_bytes());
        data[8..16].copy_from_slice(&at.to_le_bytes());
        for (i, argument) in arguments.into_iter().enumerate() {
            data[16 + 8 * i..24 + 8 * i].copy_from_slice(&argument.to_le_bytes());
        }
        let filter = instructions();
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let [code, _, if_so, if_not, value @ ..] = filter[at];
            let value = u32::from_le_bytes(value);
            let (if_so, if_not) = (usize::from(if_so), usize::from(if_not));
            at += 1;
            match code {
                0x20 => {
                    let place = value as usize;
                    let word = data[place..place + 4].try_into().expect("four bytes");
                    accumulator = u32::from_le_bytes(word);
                }
                0x15 => at += if accumulator == value { if_so } else { if_not },
                0x35 => at += if accumulator >= value { if_so } else { if_not },
                0x45 => at += if accumulator & value != 0 { if_so } else { if_not },
                0x54 => accumulator &= value,
                0x06 => return value,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    const LIBRARY: u64 = 0x7f00_0000_1000;

    #[test]
    fn calls_that_change_memory_are_announced_and_no_others() {
        let asked = |number, arguments| verdict(X86_64, number, LIBRARY, arguments);
        for call in ALWAYS.into_iter().chain(ALSO) {
            assert_eq!(asked(call, [0; 3]), ANNOUNCE, "{call}");
            assert_eq!(verdict(0x4000_0003, call, LIBRARY, [0; 3]), ALLOW, "32-bit {call}");
        }
        for call in [libc::SYS_read, libc::SYS_futex, libc::SYS_vfork, libc::SYS_rt_sigreturn] {
            assert_eq!(asked(call, [u64::MAX; 3]), ALLOW, "{call}");
        }
        let thread = libc::CLONE_VM as u64 | libc::CLONE_THREAD as u64;
        assert_eq!(asked(libc::SYS_clone, [thread, 0, 0]), ALLOW);
        let awaited = thread | libc::CLONE_CHILD_CLEARTID as u64;
        assert_eq!(asked(libc::SYS_clone, [awaited, 0, 0]), ANNOUNCE);
        assert_eq!(asked(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0]), ANNOUNCE);
        assert_eq!(asked(libc::SYS_shmat, [1, 0, 0]), ALLOW);
        assert_eq!(asked(libc::SYS_shmat, [1, 0, libc::SHM_REMAP as u64]), ANNOUNCE);
        let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        assert_eq!(asked(libc::SYS_seccomp, [1, listener, 0]), ANNOUNCE);
        assert_eq!(asked(libc::SYS_seccomp, [1, 0, 0]), ALLOW);
        assert_eq!(asked(libc::SYS_ioctl, [3, UFFDIO_REGISTER.into(), 0]), ANNOUNCE);
        assert_eq!(asked(libc::SYS_ioctl, [3, libc::TCGETS, UFFDIO_REGISTER.into()]), ALLOW);
        let merge = libc::PR_SET_MEMORY_MERGE as u64;
        assert_eq!(asked(libc::SYS_prctl, [merge, 1, 0]), SUCCEED);
        assert_eq!(asked(libc::SYS_prctl, [libc::PR_SET_NAME as u64, 1, 0]), ALLOW);
        let seccomp = libc::PR_SET_SECCOMP as u64;
        for (mode, verdict) in [(1, ANNOUNCE), (2, ALLOW)] {
            assert_eq!(asked(libc::SYS_prctl, [seccomp, mode, 0]), verdict);
            assert_eq!(asked(libc::SYS_seccomp, [mode - 1, 0, 0]), verdict);
        }
    }

    #[test]
    fn what_lets_a_device_store_to_memory_is_announced() {
        let asked = |number, arguments| verdict(X86_64, number, LIBRARY, arguments);
        let direct = libc::O_DIRECT as u64;
        for call in PINNING {
            assert_eq!(asked(call, [0; 3]), ANNOUNCE, "{call}");
        }
        for (call, direct, other) in [
            (libc::SYS_open, [0, direct, 0], [direct, 0, direct]),
            (libc::SYS_openat, [0, 0, direct | 1], [direct, direct, 1]),
            (libc::SYS_open_by_handle_at, [0, 0, direct], [0, direct, 0]),
            (libc::SYS_fcntl, [3, libc::F_SETFL as u64, direct], [3, libc::F_SETFL as u64, 2048]),
            (libc::SYS_fcntl, [3, libc::F_SETFL as u64, direct], [3, libc::F_SETFD as u64, direct]),
        ] {
            assert!(opens_for_devices(call));
            assert_eq!(asked(call, direct), ANNOUNCE, "{call}");
            assert_eq!(asked(call, other), ALLOW, "{call}");
        }
    }

    #[test]
    fn a_futex_is_announced_where_the_kernel_stores_to_it() {
        // futex(2): WAKE_OP, LOCK_PI, UNLOCK_PI, TRYLOCK_PI, WAIT_REQUEUE_PI, CMP_REQUEUE_PI,
        // LOCK_PI2.
        let stores = |operation| [5, 6, 7, 8, 11, 12, 13].contains(&operation);
        let flags = [0, libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_CLOCK_REALTIME, 384];
        for (operation, flags) in (0..=20).flat_map(|o| flags.map(|flags| (o, flags as u64))) {
            let verdict = verdict(X86_64, libc::SYS_futex, LIBRARY, [0, operation | flags, 0]);
            let expected = if stores(operation) { ANNOUNCE } else { ALLOW };
            assert_eq!(verdict, expected, "operation {operation} with flags {flags}");
        }
    }

    #[test]
    fn what_the_agent_does_is_not_announced() {
        let at = |address| verdict(X86_64, libc::SYS_mmap, address, [0; 3]);
        assert_eq!(at(Region::PLACES.start), ALLOW);
        assert_eq!(at(Region::PLACES.end - 1), ALLOW);
        assert_eq!(at(Region::PLACES.start - 1), ANNOUNCE);
        assert_eq!(at(Region::PLACES.end), ANNOUNCE);
    }

    #[test]
    fn it_fits_its_page() {
        let region = Region::at(Region::PLACES.start);
        let block = block(region);
        assert!(region.filter() + (block.len() as u64) < region.code());
    }
}
