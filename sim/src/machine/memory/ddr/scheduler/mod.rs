//! Schedulers: which waiting bursts may have a command next.
//!
//! Each is one short file that names candidates; of these, the channel takes the one whose command
//! is allowed first, then one that moves data, then the oldest. A new scheduler is such a file and
//! an arm of [`Scheduler`].

mod fcfs;
mod fr_fcfs;

use super::channel::Transaction;
use super::rank::Rank;
use crate::machine::error::{ConfigError, within};

/// A scheduler by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// First come, first served.
    Fcfs,
    /// First ready, first come, first served: bursts in open rows go first.
    FrFcfs {
        /// After so many bursts from a row, an older burst in another row of the bank goes first,
        /// so that none waits for ever.
        row_uses: u64,
    },
}

impl Scheduler {
    /// FR-FCFS with 16 bursts from a row.
    pub const FR_FCFS: Scheduler = Scheduler::FrFcfs { row_uses: 16 };

    pub(super) fn check(self) -> Result<(), ConfigError> {
        match self {
            Scheduler::Fcfs => Ok(()),
            Scheduler::FrFcfs { row_uses } => within("row_uses", row_uses, 1, 1 << 32),
        }
    }

    /// Lists the places in `queue` (oldest first) of the bursts that may go next, at most one for
    /// each bank. A rank that waits for its refresh is the channel's business.
    pub(super) fn candidates(self, queue: &[Transaction], ranks: &[Rank], found: &mut Vec<usize>) {
        found.clear();
        match self {
            Scheduler::Fcfs => fcfs::candidates(queue, found),
            Scheduler::FrFcfs { row_uses } => {
                fr_fcfs::candidates(queue, ranks, row_uses, found);
            }
        }
    }
}
