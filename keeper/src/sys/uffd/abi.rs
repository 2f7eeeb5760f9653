//! The numbers, structures and messages of `linux/userfaultfd.h`, for all that use them.

use crate::config::PAGE_BYTES;

const fn request(direction: u64, number: u64, size: usize) -> u64 {
    (direction << 30) | ((size as u64) << 16) | (API << 8) | number
}
const NO_ARGUMENT: u64 = 0;
const READ: u64 = 2;
const READ_WRITE: u64 = 3;

/// The interface's version, and the letter of its requests.
pub const API: u64 = 0xaa;
/// Flag of userfaultfd(2): faults of user mode only; system calls on missing pages get EFAULT.
pub const USER_MODE_ONLY: i32 = 1;

/// Asks `/dev/userfaultfd` for a descriptor.
pub const USERFAULTFD_IOC_NEW: u64 = request(NO_ARGUMENT, 0x00, 0);
/// The lowest address that a process without privileges may map, as a rule.
pub const LOWEST_MAPPABLE: u64 = 0x1_0000;
/// The handshake; takes [`ApiArg`].
pub const UFFDIO_API: u64 = request(READ_WRITE, 0x3f, size_of::<ApiArg>());
/// Asks for a range's faults; takes [`RegisterArg`].
pub const UFFDIO_REGISTER: u64 = request(READ_WRITE, 0x00, size_of::<RegisterArg>());
/// Takes [`UFFDIO_REGISTER`] back; takes [`RangeArg`].
pub const UFFDIO_UNREGISTER: u64 = request(READ, 0x01, size_of::<RangeArg>());
/// Wakes the threads that wait on a range; takes [`RangeArg`].
pub const UFFDIO_WAKE: u64 = request(READ, 0x02, size_of::<RangeArg>());
/// Fills missing pages with the caller's bytes; takes [`CopyArg`].
pub const UFFDIO_COPY: u64 = request(READ_WRITE, 0x03, size_of::<CopyArg>());
/// Fills missing pages with zeros; takes [`ZeroArg`].
pub const UFFDIO_ZEROPAGE: u64 = request(READ_WRITE, 0x04, size_of::<ZeroArg>());
/// Moves pages to missing ones; takes [`CopyArg`]. `agent/blob/calls.rs` has the number too.
pub const UFFDIO_MOVE: u64 = request(READ_WRITE, 0x05, size_of::<CopyArg>());
/// Sets or lifts write protection; takes [`ProtectArg`].
pub const UFFDIO_WRITEPROTECT: u64 = request(READ_WRITE, 0x06, size_of::<ProtectArg>());
/// Maps pages of shared memory; takes [`ZeroArg`].
pub const UFFDIO_CONTINUE: u64 = request(READ_WRITE, 0x07, size_of::<ZeroArg>());
/// Makes touching missing pages a machine check; takes [`ZeroArg`].
pub const UFFDIO_POISON: u64 = request(READ_WRITE, 0x08, size_of::<ZeroArg>());

/// [`RegisterArg::mode`]: faults on missing pages.
pub const REGISTER_MISSING: u64 = 1 << 0;
/// [`RegisterArg::mode`]: faults on write-protected pages.
pub const REGISTER_WP: u64 = 1 << 1;
/// Mode of [`UFFDIO_COPY`], [`UFFDIO_ZEROPAGE`] and [`UFFDIO_MOVE`]: wakes no thread.
pub const DONTWAKE: u64 = 1 << 0;
/// Mode of [`UFFDIO_COPY`]: the pages come write-protected.
pub const COPY_WP: u64 = 1 << 1;
/// Mode of [`UFFDIO_MOVE`]: missing pages are passed over.
pub const MOVE_ALLOW_SRC_HOLES: u64 = 1 << 1;
/// Mode of [`UFFDIO_WRITEPROTECT`]: sets the protection rather than lifting it.
pub const WRITEPROTECT_WP: u64 = 1 << 0;
/// Mode of [`UFFDIO_WRITEPROTECT`]: wakes no thread.
pub const WRITEPROTECT_DONTWAKE: u64 = 1 << 1;

/// What a descriptor must offer; the kernel refuses the handshake otherwise.
pub mod feature {
    /// Write-protect faults are reported.
    pub const PAGEFAULT_FLAG_WP: u64 = 1 << 0;
    /// fork hands over a descriptor for the child (needs CAP_SYS_PTRACE).
    pub const EVENT_FORK: u64 = 1 << 1;
    /// mremap is reported.
    pub const EVENT_REMAP: u64 = 1 << 2;
    /// madvise(DONTNEED, FREE, REMOVE) is reported.
    pub const EVENT_REMOVE: u64 = 1 << 3;
    /// munmap is reported.
    pub const EVENT_UNMAP: u64 = 1 << 6;
    /// Faults carry the thread's id.
    pub const THREAD_ID: u64 = 1 << 8;
    /// A page can be turned into a machine check.
    pub const POISON: u64 = 1 << 14;
    /// Write protection can be lifted by the kernel itself, without a message.
    pub const WP_ASYNC: u64 = 1 << 15;
    /// Pages can be moved out of an address range.
    pub const MOVE: u64 = 1 << 16;
    /// All that the keeper asks for on a program's descriptor.
    pub const PROGRAM: u64 = PAGEFAULT_FLAG_WP
        | EVENT_FORK
        | EVENT_REMAP
        | EVENT_REMOVE
        | EVENT_UNMAP
        | THREAD_ID
        | POISON
        | MOVE;
}

/// `struct uffdio_api`.
#[repr(C)]
#[derive(Debug)]
pub struct ApiArg {
    /// [`API`].
    pub api: u64,
    /// Asked for, then offered.
    pub features: u64,
    /// The kernel's answer.
    pub ioctls: u64,
}

/// `struct uffdio_range`.
#[repr(C)]
#[derive(Debug)]
pub struct RangeArg {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
#[derive(Debug)]
pub struct RegisterArg {
    /// Where.
    pub range: RangeArg,
    /// Which faults.
    pub mode: u64,
    /// The kernel's answer.
    pub ioctls: u64,
}

/// `struct uffdio_copy` and `struct uffdio_move`.
#[repr(C)]
#[derive(Debug)]
pub struct CopyArg {
    /// The missing pages.
    pub dst: u64,
    /// What they become.
    pub src: u64,
    /// Bytes.
    pub len: u64,
    /// How.
    pub mode: u64,
    /// The kernel's answer: bytes done, or a negated error number.
    pub done: i64,
}

/// `struct uffdio_zeropage` and `struct uffdio_poison`.
#[repr(C)]
#[derive(Debug)]
pub struct ZeroArg {
    /// The missing pages.
    pub range: RangeArg,
    /// How.
    pub mode: u64,
    /// The kernel's answer: bytes done, or a negated error number.
    pub done: i64,
}

/// `struct uffdio_writeprotect`.
#[repr(C)]
#[derive(Debug)]
pub struct ProtectArg {
    /// Where.
    pub range: RangeArg,
    /// How.
    pub mode: u64,
}

/// `struct uffd_msg`: the event's number in the lowest byte, then three words that depend on it.
pub type RawMessage = [u64; 4];

/// [`RawMessage`]: a thread waits for a page. Flags, address, thread.
pub const EVENT_PAGEFAULT: u8 = 0x12;
/// [`RawMessage`]: a fork. The child's descriptor.
pub const EVENT_FORK: u8 = 0x13;
/// [`RawMessage`]: an mremap. From, to, bytes.
pub const EVENT_REMAP: u8 = 0x14;
/// [`RawMessage`]: contents were dropped. First byte, one past the last.
pub const EVENT_REMOVE: u8 = 0x15;
/// [`RawMessage`]: a range was unmapped. First byte, one past the last.
pub const EVENT_UNMAP: u8 = 0x16;
/// Flag of [`EVENT_PAGEFAULT`]: the access was a store.
pub const PAGEFAULT_WRITE: u64 = 1 << 0;
/// Flag of [`EVENT_PAGEFAULT`]: the page is there, but write-protected.
pub const PAGEFAULT_WP: u64 = 1 << 1;

/// The number of a message's event.
#[must_use]
pub fn event(message: &RawMessage) -> u8 {
    message[0] as u8
}

/// The first byte of the page that a thread waits for, if that is what the message says.
#[must_use]
pub fn faulted_page(message: &RawMessage) -> Option<u64> {
    (event(message) == EVENT_PAGEFAULT).then_some(message[2] & !(PAGE_BYTES as u64 - 1))
}
