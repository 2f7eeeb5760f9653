//! What one op says, as bytes and as an action.
use super::OP_BYTES;

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
    /// Written by the agent: what the op came to, or minus an error number. Before that, a
    /// `Remap`'s new address.
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

    pub(super) fn from_code(code: u64) -> Option<StagingKind> {
        StagingKind::ALL.into_iter().find(|kind| *kind as u64 == code)
    }
}

/// A checked op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing; the result is 0.
    Nop,
    /// `UFFDIO_MOVE` of `len` bytes at `src` to page `index` of a staging's first half. The result
    /// is the number of bytes moved, which may be fewer, or minus an error number if there were
    /// none; `arg` becomes the error number in either case.
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
    /// `UFFDIO_MOVE` of what lies in `len` bytes at `src` to `dst`, where nothing lies. The
    /// result is the number of bytes moved, holes included, or minus an error number.
    MoveOver {
        /// Address in the program.
        src: u64,
        /// Bytes, a multiple of the page size.
        len: u64,
        /// Address in the program, registered with its userfaultfd.
        dst: u64,
    },
    /// Copies pages that were moved out to data slots; pages of the range that are not in the
    /// staging are left out. The result is the number of pages copied.
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
    /// Empties pages of a staging that were moved out or claimed; what else lies there stays.
    DropStaging {
        /// Which staging.
        staging: u32,
        /// First page of it.
        index: u64,
        /// How many pages.
        pages: u64,
        /// Empties also what came there otherwise (`mlockall` fills every mapping).
        all: bool,
    },
    /// Takes pages of a staging for moved out that the kernel moved without counting them. The
    /// keeper has seen that they are there.
    Claim {
        /// Which staging.
        staging: u32,
        /// First page of it.
        index: u64,
        /// How many pages.
        pages: u64,
    },
    /// Maps a staging of twice `pages`; the result is its address. Pages enter the first half,
    /// which the keeper registers with the program's userfaultfd: then the kernel refuses to move
    /// anything while a change of the address space has not been read. They leave through the
    /// second half, registered with the stagings' own, so that dropping them raises no event.
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
    /// A `mmap` of anonymous memory that the program asked for; the result is its address.
    Map {
        /// The wish, or with `MAP_FIXED` the place; any number.
        addr: u64,
        /// Bytes, any number.
        len: u64,
        /// `PROT_` bits.
        prot: u32,
        /// `MAP_` bits, with `MAP_ANONYMOUS`.
        flags: u32,
    },
    /// A `munmap` that the program asked for.
    Unmap {
        /// First byte, any number.
        addr: u64,
        /// Bytes, any number.
        len: u64,
    },
    /// A `mremap` that the program asked for; the result is the new address.
    Remap {
        /// Where it is.
        addr: u64,
        /// How long it is.
        old_len: u64,
        /// How long it is to be.
        new_len: u64,
        /// `MREMAP_` bits.
        flags: u32,
        /// Where it is to be, as `flags` say.
        new_addr: u64,
    },
    /// A `brk` that the program asked for; the result is where the heap ends.
    Break {
        /// Where it is to end.
        end: u64,
    },
    /// `mlock2` of memory, as its pages come, or `munlock`.
    Lock {
        /// Address in the program.
        addr: u64,
        /// Bytes, a multiple of the page size.
        len: u64,
        /// Whether it is locked from now on.
        locked: bool,
    },
    /// A `mlockall` that the program asked for.
    LockAll {
        /// `MCL_` bits, with `MCL_ONFAULT`.
        flags: u32,
    },
    /// Unmaps a staging.
    UnmapStaging {
        /// Which staging.
        staging: u32,
    },
    /// Ends the agent after it replied to this request.
    Exit,
    /// Takes pages out of a mapping that no staging fits (one that may not be written): moves them
    /// aside with `mremap(MREMAP_DONTUNMAP)`, makes them writable there, moves them on into a
    /// staging as [`Action::MoveOut`] does, copies them to data slots and gives them up. The result
    /// is the number of pages copied. If the kernel refuses one, as it does while the page is
    /// pinned for I/O and may change still, all of them stay aside, and the result is their address
    /// there: [`Action::PutBack`] takes them back. The program's userfaultfd raises a remap event
    /// for the place aside and an unmap event when that is given up, which the keeper must read
    /// before the op can end.
    TakeAside {
        /// Address in the program.
        src: u64,
        /// Bytes, a multiple of the page size, within one mapping.
        len: u64,
        /// First data slot.
        slot: u64,
        /// Which staging; its first pages are used.
        staging: u32,
    },
    /// Moves what [`Action::TakeAside`] left aside back to where it was, with these rights. The
    /// program's userfaultfd raises unmap events for both places and a remap event.
    PutBack {
        /// Where it is aside.
        aside: u64,
        /// Bytes, a multiple of the page size.
        len: u64,
        /// Where it was.
        dst: u64,
        /// `PROT_` bits.
        prot: u32,
    },
    /// Puts empty memory of the program's in the place of a part of a private mapping of a file,
    /// while the program goes on: makes each page of it the program's own, holds the pages by the
    /// pipe ([`Header::pipe`](super::Header::pipe)) and moves the memory over. What the program has
    /// stored until that moment is then in the pipe, in order, and changes no more. The result is
    /// the address, or minus an error number if the mapping stays as it is; pages may be in the
    /// pipe all the same. The program's userfaultfd raises a remap event and an unmap event for
    /// where the memory was, which the keeper must read before the op can end.
    Replace {
        /// Address of the part.
        addr: u64,
        /// Bytes, a multiple of the page size, at most [`HELD_PAGES`] pages.
        len: u64,
        /// Address of the memory, registered and empty.
        with: u64,
    },
}

/// Pages that one [`Action::Replace`] holds at most: as many as a pipe has places for.
pub const HELD_PAGES: u64 = 16;

/// Advice that an agent gives: DONTNEED, DONTFORK, DOFORK, UNMERGEABLE, NOHUGEPAGE, WIPEONFORK,
/// KEEPONFORK, COLD, PAGEOUT, POPULATE_READ, POPULATE_WRITE, DONTNEED_LOCKED, GUARD_INSTALL,
/// GUARD_REMOVE.
pub const ADVICE: [u32; 14] = [4, 10, 11, 13, 15, 18, 19, 20, 21, 22, 23, 24, 102, 103];

pub(super) const NOP: u32 = 0;
pub(super) const MOVE_OUT: u32 = 1;
pub(super) const COPY_OUT: u32 = 2;
pub(super) const DROP_STAGING: u32 = 3;
pub(super) const MAKE_STAGING: u32 = 4;
pub(super) const ADVISE: u32 = 5;
pub(super) const UNMAP_STAGING: u32 = 6;
pub(super) const EXIT: u32 = 7;
pub(super) const TAKE_ASIDE: u32 = 8;
pub(super) const CLAIM: u32 = 9;
pub(super) const MAP: u32 = 10;
pub(super) const UNMAP: u32 = 11;
pub(super) const REMAP: u32 = 12;
pub(super) const BREAK: u32 = 13;
pub(super) const LOCK: u32 = 14;
pub(super) const LOCK_ALL: u32 = 15;
pub(super) const MOVE_OVER: u32 = 16;
pub(super) const PUT_BACK: u32 = 17;
pub(super) const REPLACE: u32 = 18;

impl From<Action> for Op {
    fn from(action: Action) -> Op {
        let mut fifth = 0;
        let (kind, flags, addr, len, arg) = match action {
            Action::Nop => (NOP, 0, 0, 0, 0),
            Action::MoveOut { src, len, staging, index } => (MOVE_OUT, staging, src, len, index),
            Action::MoveOver { src, len, dst } => (MOVE_OVER, 0, src, len, dst),
            Action::CopyOut { staging, index, pages, slot } => {
                (COPY_OUT, staging, index, pages, slot)
            }
            Action::DropStaging { staging, index, pages, all } => {
                (DROP_STAGING, staging, index, pages, u64::from(all))
            }
            Action::Claim { staging, index, pages } => (CLAIM, staging, index, pages, 0),
            Action::MakeStaging { staging, pages, kind } => {
                (MAKE_STAGING, staging, 0, pages, kind as u64)
            }
            Action::Advise { addr, len, advice } => (ADVISE, 0, addr, len, u64::from(advice)),
            Action::Map { addr, len, prot, flags } => (MAP, flags, addr, len, u64::from(prot)),
            Action::Unmap { addr, len } => (UNMAP, 0, addr, len, 0),
            Action::Remap { addr, old_len, new_len, flags, new_addr } => {
                fifth = new_addr as i64;
                (REMAP, flags, addr, old_len, new_len)
            }
            Action::Lock { addr, len, locked } => (LOCK, 0, addr, len, u64::from(locked)),
            Action::LockAll { flags } => (LOCK_ALL, flags, 0, 0, 0),
            Action::Break { end } => (BREAK, 0, end, 0, 0),
            Action::UnmapStaging { staging } => (UNMAP_STAGING, staging, 0, 0, 0),
            Action::Exit => (EXIT, 0, 0, 0, 0),
            Action::TakeAside { src, len, slot, staging } => (TAKE_ASIDE, staging, src, len, slot),
            Action::PutBack { aside, len, dst, prot } => (PUT_BACK, prot, aside, len, dst),
            Action::Replace { addr, len, with } => (REPLACE, 0, addr, len, with),
        };
        Op { kind, flags, addr, len, arg, result: fifth }
    }
}
