//! The mailbox: one shared memory area of [`MAILBOX_BYTES`], mapped by the keeper and by the agent.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4096 | [`Header`], the rest zero |
//! | [`OPS_OFFSET`] | 128 × 40 | [`Op`]s of the current request, results written in place |
//! | [`DATA_OFFSET`] | 128 × 4096 | data slots: pages copied out by the agent |
//!
//! A request: the keeper writes ops and `ops`, adds one to `request` and wakes the agent, which
//! waits on it; the agent runs the ops in order, stores each result, sets `reply` to `request` and
//! wakes the keeper. All integers are little-endian. Decoding is total: whatever the bytes,
//! [`validate`] answers with an [`Action`] that is safe to carry out or with an error number.
pub mod confinement;
mod ops;
mod validate;

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

pub use ops::{ADVICE, Action, HELD_PAGES, Op, StagingKind};
pub use validate::{Limits, validate};

/// Bytes in a page.
pub const PAGE_BYTES: u64 = 4096;
/// Ops that one request holds at most.
pub const OPS: usize = 128;
/// Bytes of an encoded [`Op`].
pub const OP_BYTES: usize = 40;
/// Pages in the data area.
pub const SLOTS: u64 = 128;
/// Stagings that an agent holds at most.
pub const STAGINGS: usize = 8;
/// Pages that one staging holds at most.
pub const STAGING_PAGES: u64 = 128;
/// Where the ops begin.
pub const OPS_OFFSET: usize = PAGE_BYTES as usize;
/// Where the data slots begin.
pub const DATA_OFFSET: usize = 3 * PAGE_BYTES as usize;
/// Size of the whole mailbox.
pub const MAILBOX_BYTES: usize = DATA_OFFSET + (SLOTS * PAGE_BYTES) as usize;
/// First eight bytes of a mailbox.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASEHAND");
/// Changes with every change of this module that the other side would notice.
pub const VERSION: u32 = 10;

const _: () = assert!(OPS_OFFSET + OPS * OP_BYTES <= DATA_OFFSET);
const _: () = assert!(core::mem::size_of::<Header>() <= OPS_OFFSET);
const _: () = assert!(core::mem::size_of::<Op>() == OP_BYTES);
const _: () = assert!(core::mem::size_of::<Bootstrap>() == BOOTSTRAP_BYTES);
const _: () = assert!(STAGING_PAGES <= u128::BITS as u64);

/// The start of the mailbox.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// 0 until the agent is in its loop, then 1.
    pub ready: AtomicU32,
    /// Futex: number of the newest request.
    pub request: AtomicU32,
    /// Futex: number of the newest finished request.
    pub reply: AtomicU32,
    /// Whether the agent sleeps on `request` (or is about to).
    pub agent_waits: AtomicU32,
    /// How the keeper waits for `reply`: [`WAITS_ON_FUTEX`], [`WAITS_ON_BELL`], or 0 if it does not
    /// (yet).
    pub keeper_waits: AtomicU32,
    /// Ops in the newest request.
    pub ops: AtomicU32,
    /// The agent's descriptor of the userfaultfd that is meant for the program's memory.
    pub program_uffd: AtomicI32,
    /// The agent's descriptor of the userfaultfd that is meant for the stagings.
    pub staging_uffd: AtomicI32,
    /// What the keeper sends beside mailbox and pidfd: [`GIVEN_DEVICE`], [`GIVEN_PROGRAM_UFFD`].
    pub given: AtomicU32,
    /// Where the agent mapped this mailbox.
    pub address: AtomicU64,
    /// The process that the agent was put into (as the agent's pid namespace numbers it), to be
    /// killed if the keeper dies. Read once, at the start.
    pub program: AtomicU32,
    /// The agent's descriptor of the pipe that [`Action::Replace`] fills, its end for reading.
    pub pipe: AtomicI32,
}

/// In [`Header::keeper_waits`]: it sleeps on the futex `reply`.
pub const WAITS_ON_FUTEX: u32 = 1;
/// In [`Header::keeper_waits`]: it polls the eventfd that the agent was given, beside other
/// descriptors.
pub const WAITS_ON_BELL: u32 = 2;

/// In [`Header::given`]: an open `/dev/userfaultfd`.
pub const GIVEN_DEVICE: u32 = 1;
/// In [`Header::given`]: the userfaultfd that the program's memory is registered with already (a
/// child of fork inherits its parent's registration).
pub const GIVEN_PROGRAM_UFFD: u32 = 2;

/// Bytes of a [`Bootstrap`].
pub const BOOTSTRAP_BYTES: usize = 32;

/// What the injector leaves in the program for the agent's first steps, and what those leave for
/// it.
#[repr(C)]
pub struct Bootstrap {
    /// Random; tells this address space from any other.
    pub magic: AtomicU64,
    /// 0; 1 once the agent's descriptors 0 and 1 are a socket pair; minus an error number if it
    /// gave up.
    pub status: AtomicI32,
    /// The agent's pid, or minus an error number if it could not be made; 0 until then.
    pub agent: AtomicI32,
    /// Top of the agent's stack.
    pub stack: AtomicU64,
    /// While 0 the agent makes no call: its supervisor sets it once it traces the agent.
    pub go: AtomicU64,
}

/// A Linux error number, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// A malformed op.
    pub const EINVAL: Errno = Errno(22);
    /// An op of unknown kind.
    pub const ENOSYS: Errno = Errno(38);
    /// A staging that does not exist.
    pub const ENXIO: Errno = Errno(6);
    /// A staging that exists already.
    pub const EEXIST: Errno = Errno(17);
}
