//! First ready, first come, first served: in each bank the oldest burst in the open row, or else
//! the oldest burst. (Rixner et al., *Memory Access Scheduling*, ISCA 2000.)

use super::super::rank::Rank;
use super::Transaction;

pub(super) fn candidates(
    queue: &[Transaction],
    ranks: &[Rank],
    row_uses: u64,
    found: &mut Vec<usize>,
) {
    for (at, waiting) in queue.iter().enumerate() {
        let rank = &ranks[waiting.place.rank as usize];
        let is_hit = |one: &Transaction| rank.open_row(&one.place) == Some(one.place.row);
        match found.iter().position(|&other| queue[other].is_same_bank(waiting)) {
            None => found.push(at),
            // An older burst of the bank needs another row. It lets hits pass, but not for ever.
            Some(older) => {
                let may_pass = rank.row_uses(&waiting.place) < row_uses;
                if may_pass && is_hit(waiting) && !is_hit(&queue[found[older]]) {
                    found[older] = at;
                }
            }
        }
    }
}
