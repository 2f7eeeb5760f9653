//! Checks that the simulator (`keeper/vopr`) can leave out, to show that its tests find the fault
//! that each check prevents: it compiles another module in this place. The keeper makes them all.

/// A check that the pager makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// A page that is found nowhere counts as lost unless a call of the program explains its
    /// absence.
    Vanished,
    /// After an unmap event the range is looked up in the kernel, since the call may have failed.
    Unmapped,
    /// What comes in while a thread is about to fork is write-protected.
    Shielded,
}

/// Whether a check is made.
pub(crate) const fn is_made(_check: Check) -> bool {
    true
}
