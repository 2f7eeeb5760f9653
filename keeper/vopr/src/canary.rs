//! Known defects that can be put back, so that it is seen that they are found.

use crate::scheduler;

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canary {
    /// What `UFFDIO_MOVE` counts is believed: what else is in the staging is thrown away, and a
    /// page that is nowhere is given up. The pager was like that until its pages were found to read
    /// as zeros.
    BelievesMoves,
    /// What else is in the staging is thrown away.
    DropsUncounted,
    /// Clean pages come in without write protection.
    CleanUnprotected,
    /// That contents were advised away is read and forgotten.
    ForgetsRemovals,
    /// Pages on their way to another frame count as missing.
    MigrationIsAbsence,
    /// One of a hundred wakes is forgotten.
    ForgetsWakes,
    /// What an event says is unmapped, is.
    BelievesUnmaps,
    /// Guards are set and removed unheard.
    UnheardGuards,
    /// What comes in while a thread is about to fork is not write-protected. No load is wrong by
    /// that: children have more pages beside their parents.
    FillsUnshielded,
}

impl Canary {
    /// Every defect by which a load is wrong, or a run ends.
    pub const ALL: [Canary; 8] = [
        Canary::BelievesMoves,
        Canary::DropsUncounted,
        Canary::CleanUnprotected,
        Canary::ForgetsRemovals,
        Canary::MigrationIsAbsence,
        Canary::ForgetsWakes,
        Canary::BelievesUnmaps,
        Canary::UnheardGuards,
    ];

    /// Whether this run has the defect.
    pub(crate) fn is_put_back(self) -> bool {
        scheduler::kernel().canary == Some(self)
    }
}
