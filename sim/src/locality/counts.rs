//! What is counted.

/// Counts since the beginning, or since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions, with those that have no record.
    pub instructions: u64,
    /// Instructions whose address the trace knows.
    pub fetches: References,
    /// Loads.
    pub loads: References,
    /// Stores.
    pub stores: References,
    /// Dirty lines that left the last level.
    pub write_backs: u64,
}

/// Counts of one kind of reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// How many.
    pub references: u64,
    /// Misses in the first level.
    pub first_level_misses: u64,
    /// Of these, misses in the last level.
    pub last_level_misses: u64,
}

/// Misses of one reference: first level, last level.
pub(super) type Misses = (u64, u64);

impl References {
    /// One more.
    pub(super) fn add(&mut self, (first, last): Misses) {
        self.references += 1;
        self.first_level_misses += first;
        self.last_level_misses += last;
    }
}

impl Counts {
    /// Lines that the last level fetched.
    #[must_use]
    pub fn last_level_misses(&self) -> u64 {
        [self.fetches, self.loads, self.stores].iter().map(|kind| kind.last_level_misses).sum()
    }

    /// Last-level misses for each thousand instructions; `None` without instructions.
    #[must_use]
    pub fn last_level_mpki(&self) -> Option<f64> {
        share(self.last_level_misses(), self.instructions).map(|misses| 1000.0 * misses)
    }

    /// First-level misses for each thousand instructions.
    #[must_use]
    pub fn first_level_mpki(&self) -> Option<f64> {
        let kinds = [self.fetches, self.loads, self.stores];
        let misses = kinds.iter().map(|kind| kind.first_level_misses).sum();
        share(misses, self.instructions).map(|misses| 1000.0 * misses)
    }

    /// Stores out of loads and stores.
    #[must_use]
    pub fn store_share(&self) -> Option<f64> {
        share(self.stores.references, self.loads.references + self.stores.references)
    }

    /// Write-backs out of all lines that cross the bus.
    #[must_use]
    pub fn write_back_share(&self) -> Option<f64> {
        share(self.write_backs, self.write_backs + self.last_level_misses())
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}
