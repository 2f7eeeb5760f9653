//! As this branch mostly went (Smith, *A Study of Branch Prediction Strategies*, ISCA 1981):
//! SimpleScalar's default, with 2048 counters.

use super::counters::{Counters, folded};

/// A counter for each address.
#[derive(Clone, Debug)]
pub(in super::super) struct Bimodal {
    counters: Counters,
}

impl Bimodal {
    pub(super) fn new(entries: u64) -> Bimodal {
        Bimodal { counters: Counters::new(entries) }
    }

    #[inline]
    pub(super) fn predicts(&mut self, pc: u64, taken: bool) -> bool {
        self.counters.predicts(folded(pc), taken)
    }
}
