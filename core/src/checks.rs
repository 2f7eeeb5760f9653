//! Which checks are made. In every shipped build: all of them.
//!
//! A test that cannot fail proves nothing. So the test suites also run against variants of the
//! protocol with one check left out, and assert that they notice. The variants are types, exist
//! only under `cfg(test)` or the `adversary` feature, and cannot be chosen at run time.

mod sealed {
    pub trait Sealed {}
}

/// The checks that a protocol instance makes. Sealed: outside tests [`AllChecks`] is the only one.
pub trait Checks: sealed::Sealed {
    /// Compare the MAC of a fetched protected line (tree level 0).
    const VERIFY_LEAVES: bool = true;
    /// Compare the MAC of a fetched tree node (levels 1 and up).
    const VERIFY_NODES: bool = true;
    /// On write-back, put the new MAC into the parent.
    const UPDATE_PARENT: bool = true;
    /// In a counter tree, verify the siblings that a counter's overflow reseals.
    const VERIFY_SIBLINGS: bool = true;
    /// In a counter tree, reseal them at all.
    const RESEAL_SIBLINGS: bool = true;
    /// Refuse all calls after a violation.
    const POISON: bool = true;
    /// Refuse time stamps from the future.
    const CHECK_TIME_STAMPS: bool = true;
    /// Compare READHASH and WRITEHASH.
    const COMPARE_LOGS: bool = true;
    /// In a hierarchical log hash, check the nodes below too.
    const VISIT_SUBSPACES: bool = true;
    /// Log each chunk's address.
    const LOG_ADDRESSES: bool = true;
    /// Log each chunk's time stamp.
    const LOG_TIME_STAMPS: bool = true;
    /// Hold a page that comes back from swap to the page root in the directory.
    const VERIFY_PAGE_ROOTS: bool = true;
    /// Tag the sequence numbers on chip with their compartment.
    const TAG_SEQUENCE_NUMBERS: bool = true;
    /// Without tags, flush them when another compartment runs.
    const FLUSH_ON_SWITCH: bool = true;
    /// Put sequence numbers into memory that others replace on chip.
    const KEEP_EVICTED_NUMBERS: bool = true;
    /// After a line's last sequence number, use none.
    const RETIRE_SEQUENCE_NUMBERS: bool = true;
    /// Compare a cached line's compartment with the one that asks.
    const COMPARE_COMPARTMENTS: bool = true;
    /// Verify blocks that are encrypted anew because a counter overflowed.
    const VERIFY_REENCRYPTED: bool = true;
    /// Use the copy that was verified, and do not ask memory again.
    const USE_WHAT_WAS_VERIFIED: bool = true;
    /// Go on from the global counter that a machine had when it was switched off.
    const KEEP_GLOBAL_COUNTER: bool = true;
    /// Look at the scrub parity in a quick sweep.
    const COMPARE_SCRUB_PARITY: bool = true;
}

/// Every check is made.
pub struct AllChecks;
impl sealed::Sealed for AllChecks {}
impl Checks for AllChecks {}

/// Variants with one check left out, for canaries.
#[cfg(any(test, feature = "adversary"))]
pub mod broken {
    use super::{Checks, sealed::Sealed};

    macro_rules! broken_variant {
        ($(#[$doc:meta])* $name:ident, $check:ident) => {
            $(#[$doc])*
            pub struct $name;
            impl Sealed for $name {}
            impl Checks for $name {
                const $check: bool = false;
            }
        };
    }

    broken_variant!(
        /// Protected lines are used without comparing their MAC.
        LeavesUnverified, VERIFY_LEAVES
    );
    broken_variant!(
        /// Tree nodes are used without comparing their MAC.
        NodesUnverified, VERIFY_NODES
    );
    broken_variant!(
        /// Written-back lines do not reach their parent.
        ParentNotUpdated, UPDATE_PARENT
    );
    broken_variant!(
        /// Siblings are resealed without comparing their MAC.
        SiblingsUnverified, VERIFY_SIBLINGS
    );
    broken_variant!(
        /// Siblings keep the MAC under their old counter.
        SiblingsNotResealed, RESEAL_SIBLINGS
    );
    broken_variant!(
        /// Calls go on after a violation.
        NotPoisoned, POISON
    );
    broken_variant!(
        /// Time stamps from the future are believed.
        TimeStampsUnchecked, CHECK_TIME_STAMPS
    );
    broken_variant!(
        /// A check reads everything and compares nothing.
        LogsNotCompared, COMPARE_LOGS
    );
    broken_variant!(
        /// A check stays at the root.
        SubspacesNotVisited, VISIT_SUBSPACES
    );
    broken_variant!(
        /// Logs do not say where.
        AddressesNotLogged, LOG_ADDRESSES
    );
    broken_variant!(
        /// Logs do not say when.
        TimeStampsNotLogged, LOG_TIME_STAMPS
    );
    broken_variant!(
        /// A page that comes back from swap is believed, whatever its page root is.
        PageRootsUnverified, VERIFY_PAGE_ROOTS
    );
    broken_variant!(
        /// One compartment's sequence numbers are taken for another's.
        NumbersNotTagged, TAG_SEQUENCE_NUMBERS
    );
    broken_variant!(
        /// So they are after a context switch.
        NumbersNotFlushed, FLUSH_ON_SWITCH
    );
    broken_variant!(
        /// Replaced sequence numbers are forgotten.
        EvictedNumbersLost, KEEP_EVICTED_NUMBERS
    );
    broken_variant!(
        /// Sequence numbers begin anew after the last.
        NumbersWrap, RETIRE_SEQUENCE_NUMBERS
    );
    broken_variant!(
        /// Cached lines are given to any compartment.
        CompartmentsNotCompared, COMPARE_COMPARTMENTS
    );
    broken_variant!(
        /// Blocks are encrypted anew, and get a new MAC, whatever they are.
        ReencryptedUnverified, VERIFY_REENCRYPTED
    );
    broken_variant!(
        /// Memory is asked twice: what is verified is one answer, what is used the other.
        ReadTwice, USE_WHAT_WAS_VERIFIED
    );
    broken_variant!(
        /// A reboot begins the global counter anew, under the same key.
        GlobalCounterReset, KEEP_GLOBAL_COUNTER
    );
    broken_variant!(
        /// A quick sweep looks at the Hamming code alone.
        ScrubParityIgnored, COMPARE_SCRUB_PARITY
    );
}
