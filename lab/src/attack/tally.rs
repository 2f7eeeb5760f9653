//! What came of a cell of the matrix, over many epochs, and the letter for it.

use super::promise::Promise;
use super::verdict::Verdict;

/// What came of a cell's strikes. It is told from them alone; what was promised plays no part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was there to be struck.
    Nothing,
    /// Fewer strikes than it takes to say.
    TooFewStrikes,
    /// A wrong byte was released, or a secret seen, and the unit never knew.
    Undetected,
    /// That happened, and the next check found it.
    AtNextCheck,
    /// Detected before a wrong byte was released, if not each time without effect.
    Detected,
    /// Put right.
    Corrected,
    /// Nothing came out different, or was seen.
    Hidden,
}

impl Outcome {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Nothing => "nothing to attack",
            Outcome::TooFewStrikes => "too few strikes",
            Outcome::Undetected => "undetected",
            Outcome::AtNextCheck => "at next check",
            Outcome::Detected => "detected",
            Outcome::Corrected => "corrected",
            Outcome::Hidden => "hidden",
        }
    }

    /// As a letter of the matrix.
    pub fn letter(self) -> char {
        match self {
            Outcome::Nothing => '-',
            Outcome::TooFewStrikes => '?',
            Outcome::Undetected => 'U',
            Outcome::AtNextCheck => 'L',
            Outcome::Detected => 'D',
            Outcome::Corrected => 'C',
            Outcome::Hidden => 'H',
        }
    }
}

/// Epochs of a cell and what their strikes led to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations of traffic.
    pub operations: u64,
    /// Epochs, with those in which there was nothing to change.
    pub epochs: u64,
    /// Strikes that were detected.
    pub detected: u64,
    /// Strikes after which a wrong byte was released, and found by the next check.
    pub at_next_check: u64,
    /// Strikes after which a wrong byte was released.
    pub undetected: u64,
    /// Strikes that were put right.
    pub corrected: u64,
    /// Strikes that changed nothing that is read.
    pub harmless: u64,
}

impl Tally {
    /// An epoch is over.
    pub(super) fn add(&mut self, verdict: Verdict, operations: u64) {
        self.operations += operations;
        self.epochs += 1;
        match verdict {
            Verdict::Detected => self.detected += 1,
            Verdict::AtNextCheck => self.at_next_check += 1,
            Verdict::Undetected => self.undetected += 1,
            Verdict::Corrected => self.corrected += 1,
            Verdict::Harmless => self.harmless += 1,
            Verdict::Void => {}
        }
    }

    /// Strikes that changed something, or looks of an attacker who only looks.
    pub fn strikes(&self) -> u64 {
        self.detected + self.at_next_check + self.undetected + self.corrected + self.harmless
    }

    /// What came of them, the worst of it: a letter is as good as the scheme's worst moment. A
    /// cell that `needs` more strikes than it had says no more than that.
    pub fn outcome(&self, needs: u64) -> Outcome {
        match self.strikes() {
            0 => Outcome::Nothing,
            strikes if strikes < needs => Outcome::TooFewStrikes,
            _ if self.undetected > 0 => Outcome::Undetected,
            _ if self.at_next_check > 0 => Outcome::AtNextCheck,
            _ if self.detected > 0 => Outcome::Detected,
            _ if self.corrected > 0 => Outcome::Corrected,
            _ => Outcome::Hidden,
        }
    }

    /// Whether what came is what was promised, and nothing else beside it that was not.
    pub fn keeps(&self, promise: Promise, needs: u64) -> bool {
        let outcome = self.outcome(needs);
        match promise {
            Promise::NothingToAttack(_) => outcome == Outcome::Nothing,
            Promise::Detected => outcome == Outcome::Detected && self.corrected == 0,
            Promise::AtNextCheck(_) => outcome == Outcome::AtNextCheck && self.corrected == 0,
            Promise::Undetected(_) => outcome == Outcome::Undetected,
            Promise::Hidden => outcome == Outcome::Hidden,
            Promise::Corrected(_) => outcome == Outcome::Corrected && self.harmless == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(detected: u64, at_next_check: u64, undetected: u64, harmless: u64) -> char {
        let tally =
            Tally { detected, at_next_check, undetected, harmless, epochs: 9, ..Tally::default() };
        tally.outcome(4).letter()
    }

    #[test]
    fn a_letter_is_the_worst_that_came() {
        assert_eq!(outcome(4, 0, 0, 0), 'D');
        assert_eq!(outcome(3, 0, 0, 1), 'D');
        assert_eq!(outcome(9, 0, 1, 0), 'U');
        assert_eq!(outcome(9, 1, 0, 0), 'L');
        assert_eq!(outcome(9, 1, 1, 0), 'U');
        assert_eq!(outcome(0, 0, 0, 4), 'H');
        let corrected = Tally { corrected: 4, ..Tally::default() };
        assert_eq!(corrected.outcome(4).letter(), 'C');
        let often = Tally { detected: 1, ..corrected };
        assert_eq!(often.outcome(4).letter(), 'D');
    }

    #[test]
    fn fewer_strikes_than_are_needed_say_only_that() {
        assert_eq!(outcome(3, 0, 0, 0), '?');
        assert_eq!(outcome(0, 0, 3, 0), '?');
        assert_eq!(outcome(0, 0, 0, 0), '-');
        let few = Tally { detected: 3, ..Tally::default() };
        assert!(!few.keeps(Promise::Detected, 4) && few.keeps(Promise::Detected, 3));
        assert!(!few.keeps(Promise::NothingToAttack(""), 4));
        assert!(Tally::default().keeps(Promise::NothingToAttack(""), 4));
        assert!(!Tally::default().keeps(Promise::Detected, 4));
    }

    #[test]
    fn what_was_promised_has_to_come_and_nothing_worse() {
        let corrected = Tally { corrected: 4, ..Tally::default() };
        assert!(corrected.keeps(Promise::Corrected(""), 4));
        assert!(!Tally { detected: 1, ..corrected }.keeps(Promise::Corrected(""), 4));
        assert!(!Tally { harmless: 1, ..corrected }.keeps(Promise::Corrected(""), 4));
        assert!(!Tally { detected: 9, ..corrected }.keeps(Promise::Detected, 4));
        let seen = Tally { undetected: 1, harmless: 9, ..Tally::default() };
        assert!(seen.keeps(Promise::Undetected(""), 4) && !seen.keeps(Promise::Hidden, 4));
    }
}
