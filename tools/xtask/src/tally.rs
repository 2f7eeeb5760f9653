//! What a soak adds up over all runs: the tests say `TALLY key=number …` on lines of their own.

use std::collections::BTreeMap;
use std::fmt;

/// What is told, in words, and whether any of it is a defect.
const ROWS: &[(&str, &str, bool)] = &[
    ("runs", "runs under the pager", false),
    ("accesses", "accesses checked by oracles that ended well", false),
    ("hostile", "hostile runs (attacked, or a part of it killed)", false),
    ("judged", "runs judged from outside for the bound", false),
    ("mismatches", "runs with a wrong byte", true),
    ("doubt", "runs stopped in doubt", true),
    ("exceeded", "runs that passed the bound by their own count", true),
    ("outside", "runs that passed the bound by the kernel's count", true),
    ("left", "processes left", true),
];

/// Sums, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// Takes note of `key=number` words; others are no sums.
    pub fn line(&mut self, words: &str) {
        for (key, value) in words.split_whitespace().filter_map(|word| word.split_once('=')) {
            if let Ok(value) = value.parse::<u64>() {
                *self.0.entry(key.to_owned()).or_default() += value;
            }
        }
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Tally) {
        for (key, value) in &other.0 {
            *self.0.entry(key.clone()).or_default() += value;
        }
    }

    fn sum(&self, key: &str) -> u64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// What may not be, and was.
    pub fn defects(&self) -> Vec<&'static str> {
        let bad = ROWS.iter().filter(|(key, _, defect)| *defect && self.sum(key) > 0);
        bad.map(|(_, what, _)| *what).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, what, _) in ROWS {
            writeln!(out, "{what:<52} {:>15}", self.sum(key))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_sums_and_defects_are_told() {
        let mut tally = Tally::default();
        tally.line("runs=1 hostile=0 accesses=1500000 mismatches=0 left=0");
        assert!(tally.defects().is_empty());
        let mut other = Tally::default();
        other.line("runs=2 accesses=10 mismatches=1 not-a-number=x");
        tally.add(&other);
        assert_eq!((tally.sum("runs"), tally.sum("accesses")), (3, 1_500_010));
        assert_eq!(tally.defects(), ["runs with a wrong byte"]);
        let text = tally.to_string();
        assert!(text.contains("1500010"), "{text}");
    }
}
