//! Why the engine stopped: a [`Violation`] names the place, never the contents.

use crate::gpc::Lpid;

/// Something that was read back is not what was written, or a call cannot be obeyed.
///
/// All variants but [`Violation::Refused`], [`Violation::PageTag`] and [`Violation::NoKey`] poison
/// the structure that returned them: every later call fails with [`Violation::Poisoned`]. (A page
/// whose tag does not match leaves the directory sound; whether the program may go on is the
/// keeper's decision.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A page's ciphertext, LPID and tag do not belong together.
    #[error("the page with LPID {lpid} does not match its tag: its ciphertext was changed")]
    PageTag {
        /// The page's logical identifier.
        lpid: Lpid,
    },
    /// A metadata line does not match the MAC in its verified parent.
    #[error(
        "metadata line {index} on tree level {level} does not match its MAC: it was changed or replayed"
    )]
    MetadataLine {
        /// Level in the Bonsai tree; 0 is the level of the protected lines themselves.
        level: u8,
        /// Line index within the level.
        index: u64,
    },
    /// A block of a protection unit does not match the MAC that is kept for it.
    #[error("block {} of {} does not match its MAC: it was changed, moved or replayed", .place.index, .place.region)]
    BlockMac {
        /// Where the block lies.
        place: BlockPlace,
    },
    /// A chunk's time stamp is later than any that was given.
    #[error("block {} of {} has a time stamp from the future: it was changed", .place.index, .place.region)]
    TimeStampAhead {
        /// Where the chunk lies.
        place: BlockPlace,
    },
    /// What was read from memory since the last check is not what was written there.
    #[error("the logs of reads and writes differ: memory was changed since the last check")]
    LogMismatch,
    /// A TIMER is at its maximum, and a check did not help.
    #[error("a log's time stamps are exhausted: two elements of the log would be the same")]
    TimeStampsExhausted,
    /// A verified line holds something that the engine never writes.
    #[error("metadata line {index} holds a malformed record")]
    MalformedRecord {
        /// Index of the protected line.
        index: u64,
    },
    /// The key of a page could not be had.
    #[error("the key of the page with LPID {lpid} is not to be had")]
    NoKey {
        /// The page's logical identifier.
        lpid: Lpid,
    },
    /// The global page counter has handed out its last LPID.
    #[error("the global page counter is exhausted: another page would reuse a seed")]
    SeedsExhausted,
    /// An earlier violation was found, so nothing here is trusted any more.
    #[error("an earlier violation was found in this structure, so it refuses all further requests")]
    Poisoned,
    /// The caller asked for something that makes no sense; nothing was changed.
    #[error("the request was refused: {0}")]
    Refused(Refusal),
}

/// Where a block of a protection unit's memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// The part of memory, by name.
    pub region: &'static str,
    /// Number of the block within it.
    pub index: u64,
}

/// A request that the engine refuses; the caller's mistake, not an attack. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such space was created.
    #[error("space {0} does not exist")]
    UnknownSpace(u32),
    /// The space exists already, or is not empty where it has to be.
    #[error("space {0} exists already")]
    SpaceExists(u32),
    /// The virtual page number, or the end of the range, is above 2^52.
    #[error("virtual page number {0:#x} is beyond 2^52")]
    VpnOutOfRange(u64),
    /// A record's place must be nonzero.
    #[error("a record's place must not be zero")]
    PlaceIsZero,
    /// Source and destination of a move overlap.
    #[error("the source and destination ranges overlap")]
    RangesOverlap,
    /// The destination of a move is not empty.
    #[error("the destination already holds page {0:#x}")]
    DestinationOccupied(u64),
    /// Memory has room for the sequence numbers of so many pages, and no more.
    #[error("there is no room for the sequence numbers of another page")]
    SequenceNumbersFull,
    /// The encryption of this unit knows only private pages.
    #[error("this encryption knows no shared, plaintext or instruction pages")]
    OnlyPrivatePages,
    /// Instructions were to be put into a page of something else.
    #[error("frame {0} does not hold instructions: allocate it for them first")]
    NotForInstructions(u64),
    /// Instructions were to be overwritten.
    #[error("instructions are only read: load them, or allocate the page for data")]
    InstructionsAreRead,
    /// A compartment asked for what another one has on chip.
    #[error("compartment {asker} may not read what compartment {owner} has on chip")]
    OtherCompartment {
        /// The compartment that has it.
        owner: u32,
        /// The compartment that asked.
        asker: u32,
    },
    /// The protected array has reached its fixed capacity.
    #[error("the page directory is full")]
    DirectoryFull,
}

impl From<Refusal> for Violation {
    fn from(refusal: Refusal) -> Self {
        Violation::Refused(refusal)
    }
}
