//! Schedulers: which waiting bursts may have a command next.
//!
//! Each is one short file that names candidates; of these, the channel takes the one whose command
//! is allowed first, then one that moves data, then the oldest. A new scheduler is such a file and
//! an arm of [`Scheduler`].

mod fcfs;
mod fr_fcfs;

use super::channel::Transaction;
use super::rank::{Bank, Rank};
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

    /// Lists the bursts of `queue` (oldest first) that may go next, at most one for each bank. A
    /// rank that waits for its refresh is the channel's business.
    pub(super) fn candidates(self, queue: &[Transaction], ranks: &[Rank], found: &mut Candidates) {
        found.clear();
        match self {
            Scheduler::Fcfs => fcfs::candidates(queue, found),
            Scheduler::FrFcfs { row_uses } => {
                fr_fcfs::candidates(queue, ranks, row_uses, found);
            }
        }
    }
}

/// At most one burst for each bank, as places in a queue. It is kept from plan to plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    /// Bank and place in the queue.
    found: Vec<(Bank, usize)>,
    /// For each bank, one more than its place in `found`; 0 for none.
    slots: Vec<usize>,
}

impl Candidates {
    /// For a channel of so many banks.
    pub(super) fn new(banks: usize) -> Self {
        Candidates { found: Vec::with_capacity(banks), slots: vec![0; banks] }
    }

    /// The places in the queue, in the order of their banks' oldest bursts.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.found.iter().map(|&(_, at)| at)
    }

    fn clear(&mut self) {
        for (bank, _) in self.found.drain(..) {
            self.slots[bank.of_channel] = 0;
        }
    }

    /// The place in the queue of a bank's candidate.
    pub(super) fn of_bank(&self, bank: Bank) -> Option<usize> {
        let slot = self.slots[bank.of_channel].checked_sub(1)?;
        Some(self.found[slot].1)
    }

    /// Adds a burst of a bank that has none.
    pub(super) fn add(&mut self, bank: Bank, at: usize) {
        self.found.push((bank, at));
        self.slots[bank.of_channel] = self.found.len();
    }

    fn replace(&mut self, bank: Bank, at: usize) {
        if let Some(slot) = self.slots[bank.of_channel].checked_sub(1) {
            self.found[slot].1 = at;
        }
    }
}
