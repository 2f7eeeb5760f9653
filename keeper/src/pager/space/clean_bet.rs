//! The bet that pages which come in write-protected leave unwritten.

/// How the pages that come in write-protected fared: it pays only if few are written.
#[derive(Debug, Default)]
pub struct CleanBet {
    won: u32,
    lost: u32,
    tries: u32,
}

impl CleanBet {
    /// Whether to bring the next page in write-protected. A lost bet costs a second fault, some
    /// six times what a won one saves; while it does not pay, one page in 64 probes for change.
    pub fn place(&mut self) -> bool {
        if self.won >= 6 * self.lost {
            return true;
        }
        self.tries += 1;
        self.tries.is_multiple_of(64)
    }

    /// A page went out unwritten.
    pub fn won(&mut self) {
        self.won += 1;
        self.age();
    }

    /// A page was written after all.
    pub fn lost(&mut self) {
        self.lost += 1;
        self.age();
    }

    fn age(&mut self) {
        if self.won + self.lost > 512 {
            self.won /= 2;
            self.lost /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bet_that_loses_is_placed_rarely() {
        let mut bet = CleanBet::default();
        assert!(bet.place());
        (0..20).for_each(|_| bet.lost());
        let placed = (0..640).filter(|_| bet.place()).count();
        assert_eq!(placed, 10);
        (0..600).for_each(|_| bet.won());
        assert!(bet.place());
    }
}
