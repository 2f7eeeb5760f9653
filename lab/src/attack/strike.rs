//! The attacks of an adversary with full access to memory.

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attack {
    /// One bit of a block's ciphertext is flipped.
    FlipData,
    /// Two bits of a block's ciphertext are flipped.
    FlipTwo,
    /// Three to sixteen bits of a block's ciphertext are flipped.
    FlipMany,
    /// One bit of a block's MAC is flipped, where it lies in a region of its own.
    FlipMac,
    /// One of a block's ECC bits is flipped, where these hold its MAC.
    FlipEcc,
    /// Three to sixteen of them.
    FlipEccMany,
    /// One bit of a line of counters is flipped.
    FlipCounter,
    /// One bit of a tree node is flipped.
    FlipNode,
    /// A block's ciphertext is replaced by bytes of the attacker's.
    Spoof,
    /// Two blocks of one page change places, with their MACs.
    SpliceBlocks,
    /// Two blocks of different pages change places, with their MACs.
    SplicePages,
    /// A block's old ciphertext.
    ReplayData,
    /// A block's old ciphertext and MAC.
    ReplayDataAndMac,
    /// A block's old ciphertext, MAC and line of counters.
    ReplayDataMacAndCounter,
    /// The same, and the tree nodes above it up to a random level: consistent in itself.
    ReplaySubtree,
    /// All of memory as it once was.
    RollBack,
    /// One bit of a block's time stamp is flipped.
    FlipTimeStamp,
    /// A block's old ciphertext and time stamp, with the line of counters and its time stamp.
    ReplayDataAndTimeStamp,
    /// A block of the attacker's; once it was read, what belongs there is put back.
    PutBackBeforeCheck,
    /// The same under the time stamp that the block is about to get: a read of what is written
    /// later. Once it was read, what belongs there is put back.
    ReorderBetweenChecks,
    /// Two blocks of different processes change places in memory, with their MACs.
    SpliceProcesses,
    /// Two pages on disk change places.
    SpliceSwapped,
    /// A page on disk as it was when it was there before (AISE/BMT, section 5.1).
    ReplaySwapped,
    /// The same, and the page root in the directory that belonged to it.
    ReplayPageRoot,
    /// Nothing is changed: the attacker looks whether one value, written to two places, looks the
    /// same.
    SameValueTwoPlaces,
    /// Likewise, written to one place at two times with another value between.
    SameValueTwoTimes,
}

impl Attack {
    /// All of them, in the order of the matrix.
    pub const ALL: [Attack; 26] = [
        Attack::FlipData,
        Attack::FlipTwo,
        Attack::FlipMany,
        Attack::FlipMac,
        Attack::FlipEcc,
        Attack::FlipEccMany,
        Attack::FlipCounter,
        Attack::FlipNode,
        Attack::Spoof,
        Attack::SpliceBlocks,
        Attack::SplicePages,
        Attack::ReplayData,
        Attack::ReplayDataAndMac,
        Attack::ReplayDataMacAndCounter,
        Attack::ReplaySubtree,
        Attack::RollBack,
        Attack::FlipTimeStamp,
        Attack::ReplayDataAndTimeStamp,
        Attack::PutBackBeforeCheck,
        Attack::ReorderBetweenChecks,
        Attack::SpliceProcesses,
        Attack::SpliceSwapped,
        Attack::ReplaySwapped,
        Attack::ReplayPageRoot,
        Attack::SameValueTwoPlaces,
        Attack::SameValueTwoTimes,
    ];

    /// The name by which a user asks for it.
    pub fn name(self) -> &'static str {
        match self {
            Attack::FlipData => "flip-data",
            Attack::FlipTwo => "flip-data-2",
            Attack::FlipMany => "flip-data-many",
            Attack::FlipMac => "flip-mac",
            Attack::FlipEcc => "flip-ecc",
            Attack::FlipEccMany => "flip-ecc-many",
            Attack::FlipCounter => "flip-counter",
            Attack::FlipNode => "flip-node",
            Attack::Spoof => "spoof",
            Attack::SpliceBlocks => "splice-blocks",
            Attack::SplicePages => "splice-pages",
            Attack::ReplayData => "replay-data",
            Attack::ReplayDataAndMac => "replay-data-mac",
            Attack::ReplayDataMacAndCounter => "replay-data-mac-counter",
            Attack::ReplaySubtree => "replay-subtree",
            Attack::RollBack => "roll-back",
            Attack::FlipTimeStamp => "flip-time-stamp",
            Attack::ReplayDataAndTimeStamp => "replay-data-time-stamp",
            Attack::PutBackBeforeCheck => "put-back",
            Attack::ReorderBetweenChecks => "reorder",
            Attack::SpliceProcesses => "splice-processes",
            Attack::SpliceSwapped => "splice-swapped",
            Attack::ReplaySwapped => "replay-swapped",
            Attack::ReplayPageRoot => "replay-page-root",
            Attack::SameValueTwoPlaces => "same-value-two-places",
            Attack::SameValueTwoTimes => "same-value-two-times",
        }
    }

    /// Whether there must be processes and a disk for it.
    pub fn needs_paging(self) -> bool {
        matches!(
            self,
            Attack::SpliceProcesses
                | Attack::SpliceSwapped
                | Attack::ReplaySwapped
                | Attack::ReplayPageRoot
        )
    }

    /// Whether the attack only looks at memory.
    pub fn only_looks(self) -> bool {
        matches!(self, Attack::SameValueTwoPlaces | Attack::SameValueTwoTimes)
    }

    /// Whether the attack covers its tracks, once what it aimed at was read.
    pub fn covers_its_tracks(self) -> bool {
        matches!(self, Attack::PutBackBeforeCheck | Attack::ReorderBetweenChecks)
    }
}
