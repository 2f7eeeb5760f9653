//! First come, first served: only the oldest.

use super::{Candidates, Transaction};

pub(super) fn candidates(queue: &[Transaction], found: &mut Candidates) {
    if let Some(oldest) = queue.first() {
        found.add(oldest.bank, 0);
    }
}
