//! Bursts that wait, by their banks.
//!
//! A command changes what may come next of one bank only, and most banks have nothing to do: a plan
//! looks at the banks that have, and each keeps the command that its bursts need next until that
//! changes.

use super::rank::Bank;
use super::transaction::Transaction;
use super::{Clock, Command};

/// The bursts of one kind, read or written, that wait on a channel.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Each bank's bursts, oldest first.
    banks: Vec<Vec<Transaction>>,
    /// The banks that have some, in no order.
    busy: Vec<usize>,
    /// What each bank's bursts need next, where that is known.
    next: Vec<Option<Next>>,
    len: usize,
}

/// The command that the bursts of a bank need next, as far as the bank decides that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) command: Command,
    /// The first clock at which the bank allows it, once the burst was there.
    pub(super) from: Clock,
    /// The number of its burst among those of the bank, oldest first.
    pub(super) at: usize,
    /// The burst's age.
    pub(super) age: u64,
    pub(super) bank: Bank,
    pub(super) rank: u64,
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
        Queue {
            banks: vec![Vec::new(); banks],
            busy: Vec::with_capacity(banks),
            next: vec![None; banks],
            len: 0,
        }
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
        self.next[bank] = None;
        self.len += 1;
    }

    /// Takes a burst out.
    pub(super) fn remove(&mut self, Place { bank, at }: Place) -> Transaction {
        let burst = self.banks[bank].remove(at);
        if self.banks[bank].is_empty() {
            self.busy.retain(|&busy| busy != bank);
        }
        self.next[bank] = None;
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

    /// Something was done to a bank: what its bursts need next is to be found again.
    pub(super) fn bank_changed(&mut self, bank: Bank) {
        self.next[bank.of_channel] = None;
    }

    /// The same of all banks.
    pub(super) fn all_banks_changed(&mut self) {
        self.next.fill(None);
    }

    /// What the bursts of each bank that has some need next; `find` tells it where it is not known.
    pub(super) fn next_of_banks(
        &mut self,
        find: impl Fn(&[Transaction]) -> Next,
    ) -> impl Iterator<Item = Next> {
        let (banks, next) = (&self.banks, &mut self.next);
        self.busy.iter().map(move |&bank| *next[bank].get_or_insert_with(|| find(&banks[bank])))
    }

    pub(super) fn get(&self, Place { bank, at }: Place) -> &Transaction {
        &self.banks[bank][at]
    }

    /// The bursts of each bank that has some, oldest first.
    pub(super) fn busy_banks(&self) -> impl Iterator<Item = &[Transaction]> {
        self.busy.iter().map(|&bank| &self.banks[bank][..])
    }
}
