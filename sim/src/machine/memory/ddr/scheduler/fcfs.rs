//! First come, first served: only the oldest.

use super::super::transaction::Transaction;

/// In a bank, the oldest; of the banks, the one that has the oldest of all.
pub(super) fn oldest_of_all<'a>(banks: impl Iterator<Item = &'a [Transaction]>) -> Option<u64> {
    banks.filter_map(|waiting| Some(waiting.first()?.age)).min()
}
