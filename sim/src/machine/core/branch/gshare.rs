//! As this branch mostly went after the same branches went the same ways (McFarling, *Combining
//! Branch Predictors*, WRL TN-36, 1993).

use super::counters::{Counters, folded};

/// A counter for each address XOR history, which is as long as the table's index.
#[derive(Clone, Debug)]
pub(in super::super) struct Gshare {
    counters: Counters,
    /// The last directions, the latest in the lowest bit. The table takes as many as it needs.
    history: u64,
}

impl Gshare {
    pub(super) fn new(entries: u64) -> Gshare {
        Gshare { counters: Counters::new(entries), history: 0 }
    }

    #[inline]
    pub(super) fn predicts(&mut self, pc: u64, taken: bool) -> bool {
        let predicted = self.counters.predicts(folded(pc) ^ self.history, taken);
        self.history = self.history << 1 | u64::from(taken);
        predicted
    }
}

#[cfg(test)]
mod tests {
    use super::super::bimodal::Bimodal;
    use super::*;

    /// A branch that goes to and fro: a counter of its own is wrong half of the time, since it
    /// only ever moves between two neighbours. After as many branches as the history is long, 4,
    /// there are two histories, each with a counter of its own that needs at most two more.
    #[test]
    fn history_tells_what_an_address_does_not() {
        let (mut gshare, mut bimodal) = (Gshare::new(16), Bimodal::new(16));
        let mut wrong = [0; 2];
        for number in 0..100 {
            let taken = number % 2 == 1;
            let as_predicted =
                [gshare.predicts(0x40_0000, taken), bimodal.predicts(0x40_0000, taken)];
            if number >= 8 {
                wrong = [0, 1].map(|at| wrong[at] + u32::from(!as_predicted[at]));
            }
        }
        assert_eq!(wrong, [0, 92]);
    }
}
