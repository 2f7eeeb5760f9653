//! First ready, first come, first served: in each bank the oldest burst in the open row, or else
//! the oldest burst. (Rixner et al., *Memory Access Scheduling*, ISCA 2000.)

use super::super::rank::Row;
use super::super::transaction::Transaction;

/// The number of the burst that may go next, of a bank's bursts, oldest first.
pub(super) fn candidate(waiting: &[Transaction], open: Option<Row>, row_uses: u64) -> usize {
    let Some(open) = open.filter(|open| open.uses < row_uses) else { return 0 };
    // An older burst of the bank that needs another row lets hits pass, but not for ever.
    waiting.iter().position(|one| one.location.row == open.number).unwrap_or(0)
}
