//! Counts of caches beside those of Valgrind's cachegrind: the figures of
//! `sim/reference/cachegrind.csv`, which `casemate bench accuracy --cachegrind` takes again.

use super::{Counts, References};

const FIGURES: &str = include_str!("../../reference/cachegrind.csv");

/// What recorded the file.
pub const RECORDED_WITH: &str = "valgrind-3.19.0, Debian 12";

/// Cachegrind's nine totals, in the order of its file: references, misses of the first level and
/// misses of the last level, of instructions, then of loads, then of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals(pub [u64; 9]);

/// One program's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Its name.
    pub program: String,
    /// What cachegrind counted.
    pub cachegrind: Totals,
    /// What we count by its rules.
    pub same_rules: Totals,
    /// What we count by the rules of the simulated machine.
    pub machine: Totals,
}

impl Totals {
    /// Instructions.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.0[0]
    }

    /// Their misses in the first level.
    #[must_use]
    pub fn instruction_misses(&self) -> u64 {
        self.0[1]
    }

    /// Loads and stores.
    #[must_use]
    pub fn data(&self) -> u64 {
        self.0[3] + self.0[6]
    }

    /// Their misses in the first level.
    #[must_use]
    pub fn data_misses(&self) -> u64 {
        self.0[4] + self.0[7]
    }

    /// All misses in the last level.
    #[must_use]
    pub fn last_misses(&self) -> u64 {
        self.0[2] + self.0[5] + self.0[8]
    }
}

impl From<Counts> for Totals {
    fn from(counts: Counts) -> Self {
        let of = |one: References| [one.references, one.first_level_misses, one.last_level_misses];
        let [fetches, loads, stores] = [counts.fetches, counts.loads, counts.stores].map(of);
        let all = [fetches, loads, stores];
        Totals(std::array::from_fn(|at| all[at / 3][at % 3]))
    }
}

/// All programs, in the order of the file.
///
/// # Panics
/// The file in the binary is damaged.
#[must_use]
pub fn recorded() -> Vec<Compared> {
    let lines: Vec<&str> = FIGURES.lines().skip(1).collect();
    let programs = lines.chunks(3).map(|lines| parse(lines).expect("the file is well-formed"));
    programs.collect()
}

/// Three lines of a program: cachegrind's, ours by its rules, ours by the machine's.
fn parse(lines: &[&str]) -> Option<Compared> {
    let [cachegrind, same_rules, machine] = *lines else { return None };
    let program = cachegrind.split(',').next()?;
    let totals = |line: &str, by: &str| {
        let numbers = line.strip_prefix(program)?.strip_prefix(',')?.strip_prefix(by)?;
        let numbers = numbers.strip_prefix(',')?.split(',').map(str::parse);
        Some(Totals(numbers.collect::<Result<Vec<u64>, _>>().ok()?.try_into().ok()?))
    };
    Some(Compared {
        program: program.to_owned(),
        cachegrind: totals(cachegrind, "cachegrind")?,
        same_rules: totals(same_rules, "same-rules")?,
        machine: totals(machine, "machine")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By cachegrind's own rules every count is its own, but for three loads of perl's; by the
    /// machine's, instructions and loads are as many, stores are more, and no miss of the first
    /// level is lost.
    #[test]
    fn recorded_counts_are_those_of_cachegrind() {
        let all = recorded();
        assert!(all.len() >= 5, "{}", all.len());
        for one in all {
            let (machine, theirs) = (one.machine, one.cachegrind);
            let mut expected = theirs;
            expected.0[3] += if one.program == "perl" { 3 } else { 0 };
            assert_eq!(one.same_rules, expected, "{one:?}");
            assert_eq!(machine.instructions(), theirs.instructions(), "{one:?}");
            assert_eq!(machine.0[3], one.same_rules.0[3], "{one:?}");
            assert!(machine.data() > theirs.data(), "{one:?}");
            assert!(machine.instruction_misses() >= theirs.instruction_misses(), "{one:?}");
            assert!(machine.data_misses() >= theirs.data_misses(), "{one:?}");
        }
    }
}
