//! All counters of a machine with its memory and its protection unit.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tree::{Defect, difference, sum, weighted};
use crate::machine::processor::ProcessorStatistics;
use crate::protection::ProtectionStatistics;

/// Counters of a machine, since its beginning or between two moments. A file that lacks some of
/// them was written by another Casemate: they count as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Cores, caches, memory.
    #[serde(flatten)]
    pub machine: ProcessorStatistics,
    /// The protection unit, if the machine has one.
    pub protection: Option<ProtectionStatistics>,
}

impl Statistics {
    /// Of a file's tree of them; `None` if it is another tree.
    #[must_use]
    pub fn of(tree: &Value) -> Option<Statistics> {
        Statistics::deserialize(tree).ok()
    }

    /// As a tree: one leaf for each counter.
    #[must_use]
    pub fn tree(&self) -> Value {
        // Numbers and their maps: there is nothing that could not be written.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What was counted since an earlier moment of the same machine.
    ///
    /// # Errors
    /// The name of a counter that shrank: a defect of the code that counts.
    pub fn since(&self, earlier: &Statistics) -> Result<Statistics, Defect> {
        let passed = difference(&self.tree(), &earlier.tree())?;
        Statistics::of(&passed).ok_or_else(Defect::here)
    }

    /// What was counted in two parts of a run of one machine together.
    ///
    /// # Errors
    /// The name of a counter that only one of them has.
    pub fn and(&self, other: &Statistics) -> Result<Statistics, Defect> {
        let together = sum(&self.tree(), &other.tree())?;
        Statistics::of(&together).ok_or_else(Defect::here)
    }

    /// What was counted in parts of a run of one machine, each so many times.
    ///
    /// # Errors
    /// The name of a counter that only some of them have.
    pub fn weighted<'a>(
        parts: impl IntoIterator<Item = (f64, &'a Statistics)>,
    ) -> Result<Statistics, Defect> {
        let parts: Vec<_> = parts.into_iter().map(|(times, part)| (times, part.tree())).collect();
        let parts: Vec<_> = parts.iter().map(|(times, tree)| (*times, tree)).collect();
        Statistics::of(&weighted(&parts)?).ok_or_else(Defect::here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_between_two_moments_is_their_difference() {
        let mut earlier = Statistics::default();
        earlier.machine.cycles = 7;
        earlier.machine.last_level.read_latency.count(100);
        earlier.protection = Some(ProtectionStatistics::default());
        let mut later = earlier.clone();
        later.machine.cycles = 10;
        later.machine.last_level.read_latency.count(100);
        later.protection = Some(ProtectionStatistics { overflows: 2, ..Default::default() });
        let passed = later.since(&earlier).expect("counters that grew");
        assert_eq!(passed.machine.cycles, 3);
        assert_eq!(passed.machine.last_level.read_latency.sum_cycles, 100);
        assert_eq!(passed.protection.map(|unit| unit.overflows), Some(2));
        assert!(earlier.since(&later).is_err(), "a counter that shrinks is a defect");
    }

    #[test]
    fn a_tree_comes_back() {
        let mut statistics = Statistics::default();
        statistics.machine.cycles = u64::MAX;
        statistics.machine.l3 = Some(Default::default());
        for protection in [None, Some(ProtectionStatistics { reads: 3, ..Default::default() })] {
            statistics.protection = protection;
            assert_eq!(Statistics::of(&statistics.tree()).as_ref(), Some(&statistics));
        }
    }
}
