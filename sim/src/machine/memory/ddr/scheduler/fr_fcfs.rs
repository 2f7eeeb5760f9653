//! First ready, first come, first served: in each bank the oldest burst in the open row, or else
//! the oldest burst. (Rixner et al., *Memory Access Scheduling*, ISCA 2000.)

use super::super::rank::Rank;
use super::{Candidates, Transaction};

pub(super) fn candidates(
    queue: &[Transaction],
    ranks: &[Rank],
    row_uses: u64,
    found: &mut Candidates,
) {
    for (at, waiting) in queue.iter().enumerate() {
        let Some(older) = found.of_bank(waiting.bank) else {
            found.add(waiting.bank, at);
            continue;
        };
        let rank = &ranks[waiting.location.rank as usize];
        let is_hit = |one: &Transaction| rank.open_row(one.bank) == Some(one.location.row);
        // An older burst of the bank needs another row. It lets hits pass, but not for ever.
        if is_hit(waiting) && !is_hit(&queue[older]) && rank.row_uses(waiting.bank) < row_uses {
            found.replace(waiting.bank, at);
        }
    }
}
