//! The mailbox: one shared memory area of [`MAILBOX_BYTES`], mapped by the keeper and by the agent.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4096 | [`Header`], the rest zero |
//! | [`OPS_OFFSET`] | 128 × 40 | [`Op`]s of the current request, results written in place |
//! | [`DATA_OFFSET`] | 128 × 4096 | data slots: pages copied out by the agent |
//!
//! A request: the keeper writes ops and `ops`, adds one to `request` and wakes whoever waits on it;
//! the agent runs the ops in order, stores each result, sets `reply` to `request` and wakes the keeper.
//! All integers are little-endian. Decoding is total: whatever the bytes, [`validate`] answers with an
//! [`Action`] that is safe to carry out or with an error number.
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

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
pub const OPS_OFFSET: usize = 4096;
/// Where the data slots begin.
pub const DATA_OFFSET: usize = 3 * 4096;
/// Size of the whole mailbox.
pub const MAILBOX_BYTES: usize = DATA_OFFSET + (SLOTS * PAGE_BYTES) as usize;
/// First eight bytes of a mailbox.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASEHAND");
/// Changes with every change of this file that the other side would notice.
pub const VERSION: u32 = 4;

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
    /// Whether the keeper sleeps on `reply` (or is about to).
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
    /// The process that the agent was put into (as the agent's pid namespace numbers it), to be killed
    /// if the keeper dies. Read once, at the start.
    pub program: AtomicU32,
    /// Unused, zero.
    pub reserved: AtomicU32,
}

/// In [`Header::given`]: an open `/dev/userfaultfd`.
pub const GIVEN_DEVICE: u32 = 1;
/// In [`Header::given`]: the userfaultfd that the program's memory is registered with already (a
/// child of fork inherits its parent's registration).
pub const GIVEN_PROGRAM_UFFD: u32 = 2;

/// Bytes of a [`Bootstrap`].
pub const BOOTSTRAP_BYTES: usize = 32;

/// What the injector leaves in the program for the agent's first steps, and what those leave for it.
#[repr(C)]
pub struct Bootstrap {
    /// Random; tells this address space from any other.
    pub magic: AtomicU64,
    /// 0; 1 once the agent's descriptors 0 and 1 are a socket pair; minus an error number if it gave up.
    pub status: AtomicI32,
    /// The agent's pid, or minus an error number if it could not be made; 0 until then.
    pub agent: AtomicI32,
    /// Top of the agent's stack.
    pub stack: AtomicU64,
    /// Unused, zero.
    pub reserved: AtomicU64,
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

/// One op as it lies in the mailbox; see [`Action`] for what the fields mean in each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// What to do.
    pub kind: u32,
    /// A staging's number, or 0.
    pub flags: u32,
    /// An address, or a page's index in a staging.
    pub addr: u64,
    /// A length in bytes, or a number of pages.
    pub len: u64,
    /// The kind's last argument. After a `MoveOut`: the error number that ended it, or 0.
    pub arg: u64,
    /// Written by the agent: what the op came to, or minus an error number.
    pub result: i64,
}

impl Op {
    /// The op's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; OP_BYTES] {
        let mut out = [0; OP_BYTES];
        out[0..4].copy_from_slice(&self.kind.to_le_bytes());
        out[4..8].copy_from_slice(&self.flags.to_le_bytes());
        out[8..16].copy_from_slice(&self.addr.to_le_bytes());
        out[16..24].copy_from_slice(&self.len.to_le_bytes());
        out[24..32].copy_from_slice(&self.arg.to_le_bytes());
        out[32..40].copy_from_slice(&self.result.to_le_bytes());
        out
    }

    /// The op that these bytes are; every 40 bytes are one.
    #[must_use]
    pub fn decode(bytes: &[u8; OP_BYTES]) -> Op {
        let word = |at: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(b)
        };
        let first = word(0);
        Op {
            kind: first as u32,
            flags: (first >> 32) as u32,
            addr: word(8),
            len: word(16),
            arg: word(24),
            result: word(32) as i64,
        }
    }
}

/// Access rights of a staging. `UFFDIO_MOVE` demands that both sides have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum StagingKind {
    /// Readable and writable.
    Rw = 0,
    /// Readable, writable and executable.
    Rwx = 1,
    /// Readable and writable, for memory that the program locked.
    RwLocked = 2,
    /// Readable, writable and executable, for memory that the program locked.
    RwxLocked = 3,
}

impl StagingKind {
    /// Every kind.
    pub const ALL: [StagingKind; 4] =
        [StagingKind::Rw, StagingKind::Rwx, StagingKind::RwLocked, StagingKind::RwxLocked];

    /// The number under which the keeper holds a staging of this kind.
    #[must_use]
    pub fn id(self) -> u32 {
        self as u32
    }

    /// Whether its pages may be executed.
    #[must_use]
    pub fn executable(self) -> bool {
        matches!(self, StagingKind::Rwx | StagingKind::RwxLocked)
    }

    /// Whether it is locked in RAM.
    #[must_use]
    pub fn locked(self) -> bool {
        matches!(self, StagingKind::RwLocked | StagingKind::RwxLocked)
    }

    fn from_code(code: u64) -> Option<StagingKind> {
        StagingKind::ALL.into_iter().find(|kind| *kind as u64 == code)
    }
}

/// A checked op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing; the result is 0.
    Nop,
    /// `UFFDIO_MOVE` of `len` bytes at `src` to page `index` of a staging's first half. The result is the number of
    /// bytes moved, which may be fewer, or minus an error number if there were none; `arg` becomes the
    /// error number in either case.
    MoveOut {
        /// Address in the program.
        src: u64,
        /// Bytes, a multiple of the page size.
        len: u64,
        /// Which staging.
        staging: u32,
        /// First page of it.
        index: u64,
    },
    /// Copies pages that were moved out to data slots; pages of the range that are not in the staging
    /// are left out. The result is the number of pages copied.
    CopyOut {
        /// Which staging.
        staging: u32,
        /// First page of it.
        index: u64,
        /// How many pages.
        pages: u64,
        /// First data slot.
        slot: u64,
    },
    /// Empties pages of a staging.
    DropStaging {
        /// Which staging.
        staging: u32,
        /// First page of it.
        index: u64,
        /// How many pages.
        pages: u64,
    },
    /// Maps a staging of twice `pages`; the result is its address. Pages enter the first half, which
    /// the keeper registers with the program's userfaultfd: then the kernel refuses to move anything
    /// while a change of the address space has not been read. They leave through the second half,
    /// registered with the stagings' own, so that dropping them raises no event.
    MakeStaging {
        /// Which staging.
        staging: u32,
        /// How many pages.
        pages: u64,
        /// Its access rights.
        kind: StagingKind,
    },
    /// `madvise` on the program's memory.
    Advise {
        /// Address in the program.
        addr: u64,
        /// Bytes, a multiple of the page size.
        len: u64,
        /// One of [`ADVICE`].
        advice: u32,
    },
    /// Unmaps a staging.
    UnmapStaging {
        /// Which staging.
        staging: u32,
    },
    /// Ends the agent after it replied to this request.
    Exit,
    /// Takes pages out of a mapping that no staging fits (one that may not be written): moves them
    /// aside with `mremap(MREMAP_DONTUNMAP)`, copies them to data slots and gives them up. The
    /// result is the number of pages copied. The program's userfaultfd raises a remap and an unmap
    /// event for the place aside, and a fault for each page that was not there, which the keeper
    /// must serve before the op can end.
    TakeAside {
        /// Address in the program.
        src: u64,
        /// Bytes, a multiple of the page size, within one mapping.
        len: u64,
        /// First data slot.
        slot: u64,
    },
}

/// Advice that an agent gives: DONTNEED, NOHUGEPAGE, COLD, PAGEOUT, POPULATE_READ, POPULATE_WRITE,
/// DONTNEED_LOCKED.
pub const ADVICE: [u32; 7] = [4, 15, 20, 21, 22, 23, 24];

const NOP: u32 = 0;
const MOVE_OUT: u32 = 1;
const COPY_OUT: u32 = 2;
const DROP_STAGING: u32 = 3;
const MAKE_STAGING: u32 = 4;
const ADVISE: u32 = 5;
const UNMAP_STAGING: u32 = 6;
const EXIT: u32 = 7;
const TAKE_ASIDE: u32 = 8;

impl From<Action> for Op {
    fn from(action: Action) -> Op {
        let (kind, flags, addr, len, arg) = match action {
            Action::Nop => (NOP, 0, 0, 0, 0),
            Action::MoveOut { src, len, staging, index } => (MOVE_OUT, staging, src, len, index),
            Action::CopyOut { staging, index, pages, slot } => {
                (COPY_OUT, staging, index, pages, slot)
            }
            Action::DropStaging { staging, index, pages } => {
                (DROP_STAGING, staging, index, pages, 0)
            }
            Action::MakeStaging { staging, pages, kind } => {
                (MAKE_STAGING, staging, 0, pages, kind as u64)
            }
            Action::Advise { addr, len, advice } => (ADVISE, 0, addr, len, u64::from(advice)),
            Action::UnmapStaging { staging } => (UNMAP_STAGING, staging, 0, 0, 0),
            Action::Exit => (EXIT, 0, 0, 0, 0),
            Action::TakeAside { src, len, slot } => (TAKE_ASIDE, 0, src, len, slot),
        };
        Op { kind, flags, addr, len, arg, result: 0 }
    }
}

/// What the agent has: how many pages each staging holds, 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Pages by staging number.
    pub stagings: [u64; STAGINGS],
}

impl Limits {
    fn pages(&self, staging: u32) -> Result<u64, Errno> {
        match self.stagings.get(staging as usize) {
            None => Err(Errno::EINVAL),
            Some(0) => Err(Errno::ENXIO),
            Some(pages) => Ok(*pages),
        }
    }

    fn within(&self, staging: u32, index: u64, pages: u64) -> Result<(), Errno> {
        let have = self.pages(staging)?;
        if pages == 0 || !fits(index, pages, have) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

fn fits(first: u64, count: u64, all: u64) -> bool {
    first.checked_add(count).is_some_and(|end| end <= all)
}

/// Page-aligned, not empty, in the lower half of the address space.
fn user_range(addr: u64, len: u64) -> Result<(), Errno> {
    let aligned = (addr | len) & (PAGE_BYTES - 1) == 0;
    if aligned && len != 0 && fits(addr, len, 1 << 56) { Ok(()) } else { Err(Errno::EINVAL) }
}

fn all_zero(fields: &[u64]) -> Result<(), Errno> {
    if fields.iter().all(|f| *f == 0) { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Turns an op into what the agent may do, or into the error number that is its result. Fields that a
/// kind does not use must be 0 (`result` excepted).
///
/// # Errors
/// `ENOSYS`: unknown kind. `EINVAL`: a field is out of range. `ENXIO`: no such staging. `EEXIST`: the
/// staging to be made exists.
pub fn validate(op: &Op, limits: &Limits) -> Result<Action, Errno> {
    let Op { kind, flags: staging, addr, len, arg, .. } = *op;
    match kind {
        NOP => {
            all_zero(&[staging.into(), addr, len, arg])?;
            Ok(Action::Nop)
        }
        MOVE_OUT => {
            user_range(addr, len)?;
            limits.within(staging, arg, len / PAGE_BYTES)?;
            Ok(Action::MoveOut { src: addr, len, staging, index: arg })
        }
        COPY_OUT => {
            limits.within(staging, addr, len)?;
            if !fits(arg, len, SLOTS) {
                return Err(Errno::EINVAL);
            }
            Ok(Action::CopyOut { staging, index: addr, pages: len, slot: arg })
        }
        DROP_STAGING => {
            limits.within(staging, addr, len)?;
            all_zero(&[arg])?;
            Ok(Action::DropStaging { staging, index: addr, pages: len })
        }
        MAKE_STAGING => {
            all_zero(&[addr])?;
            let kind = StagingKind::from_code(arg).ok_or(Errno::EINVAL)?;
            if len == 0 || len > STAGING_PAGES {
                return Err(Errno::EINVAL);
            }
            match limits.pages(staging) {
                Err(Errno::ENXIO) => Ok(Action::MakeStaging { staging, pages: len, kind }),
                Err(e) => Err(e),
                Ok(_) => Err(Errno::EEXIST),
            }
        }
        ADVISE => {
            all_zero(&[staging.into()])?;
            user_range(addr, len)?;
            let advice = ADVICE.into_iter().find(|a| u64::from(*a) == arg).ok_or(Errno::EINVAL)?;
            Ok(Action::Advise { addr, len, advice })
        }
        UNMAP_STAGING => {
            all_zero(&[addr, len, arg])?;
            limits.pages(staging)?;
            Ok(Action::UnmapStaging { staging })
        }
        EXIT => {
            all_zero(&[staging.into(), addr, len, arg])?;
            Ok(Action::Exit)
        }
        TAKE_ASIDE => {
            all_zero(&[staging.into()])?;
            user_range(addr, len)?;
            if !fits(arg, len / PAGE_BYTES, SLOTS) {
                return Err(Errno::EINVAL);
            }
            Ok(Action::TakeAside { src: addr, len, slot: arg })
        }
        _ => Err(Errno::ENOSYS),
    }
}
