//! Bursts that wait, by their banks.
//!
//! A command changes what may come next of one bank only, and most banks have nothing to do: a plan
//! looks at the banks that have, and in each at no more than it must.

use super::rank::Bank;
use super::transaction::Transaction;

/// The bursts of one kind, read or written, that wait on a channel.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Each bank's bursts, oldest first.
    banks: Vec<Vec<Transaction>>,
    /// The banks that have some, in no order.
    busy: Vec<usize>,
    len: usize,
}

/// Where a burst waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of its bank within the channel.
    pub(super) bank: usize,
    /// Its place among the bursts of the bank, from the oldest.
    pub(super) at: usize,
}

impl Queue {
    /// Nothing waits, for a channel of so many banks.
    pub(super) fn new(banks: usize) -> Self {
        Queue { banks: vec![Vec::new(); banks], busy: Vec::with_capacity(banks), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the youngest burst.
    pub(super) fn push(&mut self, burst: Transaction) {
        let bank = burst.bank.of_channel;
        if self.banks[bank].is_empty() {
            self.busy.push(bank);
        }
        self.banks[bank].push(burst);
        self.len += 1;
    }

    /// Takes a burst out.
    pub(super) fn remove(&mut self, Place { bank, at }: Place) -> Transaction {
        let burst = self.banks[bank].remove(at);
        if self.banks[bank].is_empty() {
            self.busy.retain(|&busy| busy != bank);
        }
        self.len -= 1;
        burst
    }

    /// What waits for a bank, oldest first.
    pub(super) fn of_bank(&self, bank: Bank) -> &[Transaction] {
        &self.banks[bank.of_channel]
    }

    /// The place of the youngest burst of a bank that has some.
    pub(super) fn youngest_of(&self, bank: Bank) -> Place {
        let bank = bank.of_channel;
        Place { bank, at: self.banks[bank].len() - 1 }
    }

    pub(super) fn get_mut(&mut self, Place { bank, at }: Place) -> &mut Transaction {
        &mut self.banks[bank][at]
    }

    /// The bursts of each bank that has some, oldest first.
    pub(super) fn busy_banks(&self) -> impl Iterator<Item = &[Transaction]> {
        self.busy.iter().map(|&bank| &self.banks[bank][..])
    }
}
