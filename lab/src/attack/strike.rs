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
    /// One bit of a block's ciphertext and one of its MAC's or Hamming bits, together.
    FlipDataAndEcc,
    /// Three to sixteen of each, together.
    FlipDataAndEccMany,
    /// The scrub's parity bit is flipped, and a quick scrub follows.
    FlipParity,
    /// One bit of a block's ciphertext and the parity bit, so that the quick scrub that follows
    /// sees an even number of flips: none.
    FlipDataAndParity,
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
    /// What is stored for a block is lost on its way: its contents and MAC, or all that goes to
    /// memory until nothing is on chip.
    DropWrites,
    /// Memory is asked twice for a block, and gives two answers: the second is the attacker's.
    AnswerTwice,
    /// Bytes of the attacker's lie in a block at the moment at which it is read to be encrypted
    /// anew, because a counter beside its own overflowed.
    SpoofReencrypted,
    /// A line of counters is put back, consistent in itself, and its block written again: the
    /// attacker, who knows both plaintexts, looks whether two pads are one.
    ReuseCounter,
    /// The same with sequence numbers in memory.
    ReuseSequenceNumber,
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
    /// A line is written until its sequence number, or counter, is as far from another's as their
    /// addresses are: VA1 + s1 = VA2 + s2. The attacker, who knows the plaintexts, looks whether
    /// two pads are one.
    CollideSeeds,
    /// The machine is switched off and on, with the key that it had; the attacker likewise.
    ResetGlobalCounter,
}

impl Attack {
    /// All of them, in the order of the matrix.
    pub const ALL: [Attack; 37] = [
        Attack::FlipData,
        Attack::FlipTwo,
        Attack::FlipMany,
        Attack::FlipMac,
        Attack::FlipEcc,
        Attack::FlipEccMany,
        Attack::FlipDataAndEcc,
        Attack::FlipDataAndEccMany,
        Attack::FlipParity,
        Attack::FlipDataAndParity,
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
        Attack::DropWrites,
        Attack::AnswerTwice,
        Attack::SpoofReencrypted,
        Attack::ReuseCounter,
        Attack::ReuseSequenceNumber,
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
        Attack::CollideSeeds,
        Attack::ResetGlobalCounter,
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
            Attack::FlipDataAndEcc => "flip-data-ecc",
            Attack::FlipDataAndEccMany => "flip-data-ecc-many",
            Attack::FlipParity => "flip-parity",
            Attack::FlipDataAndParity => "flip-data-parity",
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
            Attack::DropWrites => "drop-writes",
            Attack::AnswerTwice => "answer-twice",
            Attack::SpoofReencrypted => "spoof-reencrypted",
            Attack::ReuseCounter => "reuse-counter",
            Attack::ReuseSequenceNumber => "reuse-sequence-number",
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
            Attack::CollideSeeds => "collide-seeds",
            Attack::ResetGlobalCounter => "reset-global-counter",
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
        matches!(
            self,
            Attack::SameValueTwoPlaces
                | Attack::SameValueTwoTimes
                | Attack::CollideSeeds
                | Attack::ResetGlobalCounter
        )
    }

    /// Whether the attack covers its tracks, once what it aimed at was read.
    pub fn covers_its_tracks(self) -> bool {
        matches!(self, Attack::PutBackBeforeCheck | Attack::ReorderBetweenChecks)
    }

    /// Whether a quick scrub follows the strike, before anything is read.
    pub fn is_scrubbed(self) -> bool {
        matches!(self, Attack::FlipParity | Attack::FlipDataAndParity)
    }
}
