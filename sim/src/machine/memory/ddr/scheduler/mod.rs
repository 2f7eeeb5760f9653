//! Schedulers: which waiting bursts may have a command next.
//!
//! Each is one short file that names at most one candidate of each bank; of these, the channel
//! takes the one whose command is allowed first, then one that moves data, then the oldest. A new
//! scheduler is such a file and arms of [`Scheduler`].

mod fcfs;
mod fr_fcfs;

use super::rank::Row;
use super::transaction::Transaction;
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

    /// Whether the only burst of a bank may go next, whatever the other banks have.
    pub(super) fn takes_every_bank(self) -> bool {
        matches!(self, Scheduler::FrFcfs { .. })
    }

    /// The number of the burst that may go next, of a bank's bursts, oldest first, with the row
    /// that is open in the bank. A rank that waits for its refresh is the channel's business.
    pub(super) fn candidate(self, waiting: &[Transaction], open: Option<Row>) -> usize {
        match self {
            Scheduler::Fcfs => 0,
            Scheduler::FrFcfs { row_uses } => fr_fcfs::candidate(waiting, open, row_uses),
        }
    }

    /// The age of the only burst that may go next, of all banks' bursts; `None` where each bank's
    /// candidate may.
    pub(super) fn only<'a>(self, banks: impl Iterator<Item = &'a [Transaction]>) -> Option<u64> {
        match self {
            Scheduler::Fcfs => fcfs::oldest_of_all(banks),
            Scheduler::FrFcfs { .. } => None,
        }
    }
}
