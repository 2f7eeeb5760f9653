//! Our cycles beside the reference's.

use super::programs::{ALL, MEASURED_INSTRUCTIONS, Program, WARMUP_INSTRUCTIONS};
use super::reference::{self, Reference};
use crate::config::presets::Preset;
use crate::config::{ConfigurationError, Layer, Resolved, machine, memory};
use crate::machine::Content;
use crate::machine::backing::Unprotected;
use crate::machine::processor::{Processor, ProcessorStatistics, RunError};

/// The machine, over the preset.
const MACHINE: &str = include_str!("../../reference/champsim.toml");
const PRESET: &str = "modern";

/// One program on both.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the reference said.
    pub theirs: Reference,
    /// Our cycles for the same instructions.
    pub cycles: u64,
    /// Our misses, the first level's first.
    pub misses: [u64; 3],
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The machine is impossible.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The machine cannot go on.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Comparison {
    /// Our cycles for an instruction.
    #[must_use]
    pub fn our_cpi(&self) -> f64 {
        self.cycles as f64 / MEASURED_INSTRUCTIONS as f64
    }

    /// Theirs.
    #[must_use]
    pub fn their_cpi(&self) -> f64 {
        self.theirs.cycles as f64 / self.theirs.instructions as f64
    }

    /// How much longer ours takes, as a share of theirs.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.our_cpi() / self.their_cpi() - 1.0
    }
}

/// All programs, in the reference's order.
///
/// # Errors
/// The machine is impossible, or cannot go on.
///
/// # Panics
/// The reference names a program that does not exist; a test says that it does not.
pub fn compare_all() -> Result<Vec<Comparison>, CompareError> {
    let preset = Preset::of_name(PRESET)?.layer()?;
    let config = Resolved::new(&[preset, Layer::read("champsim.toml", MACHINE)?])?;
    reference::all().into_iter().map(|theirs| compare(theirs, &config)).collect()
}

fn compare(theirs: Reference, config: &Resolved) -> Result<Comparison, CompareError> {
    let program = ALL.iter().find(|program| program.name == theirs.program);
    let (cycles, misses) = run(program.expect("the program exists"), config)?;
    Ok(Comparison { theirs, cycles, misses })
}

/// Cycles and misses of what is measured.
fn run(program: &Program, config: &Resolved) -> Result<(u64, [u64; 3]), CompareError> {
    let timeline = memory::timeline(config)?;
    let refused = |refusal| ConfigurationError::Refused { refusal };
    let mut processor =
        Processor::new(&machine::processor(config)?, timeline, Unprotected::default())
            .map_err(refused)?;
    let mut instructions = program.instructions();
    processor.run_until_instructions(&mut instructions, WARMUP_INSTRUCTIONS)?;
    let before = processor.statistics();
    let end = WARMUP_INSTRUCTIONS + MEASURED_INSTRUCTIONS;
    processor.run_until_instructions(&mut instructions, end)?;
    let after = processor.statistics();
    let (misses, earlier) = (misses(&after), misses(&before));
    let misses = std::array::from_fn(|level| misses[level] - earlier[level]);
    Ok((after.cycles - before.cycles, misses))
}

/// Loads and stores that missed: those that merged with a miss under way, too.
fn misses(statistics: &ProcessorStatistics) -> [u64; 3] {
    let l2 = statistics.l2.cache.of(Content::Data).read_misses;
    let l3 = statistics.l3.as_ref().map_or(0, |l3| l3.cache.of(Content::Data).read_misses);
    [statistics.cores[0].l1d.misses(), l2, l3]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that wait for a memory controller of another policy, or whose stores another one
    /// treats otherwise (`docs/accuracy.md`).
    const OTHER_POLICY: [&str; 3] = ["stream", "memory-random", "memory-stores"];

    #[test]
    fn cycles_and_misses_are_those_of_the_reference() {
        let all = compare_all().expect("the machine is possible");
        assert_eq!(all.len(), ALL.len());
        for one in &all {
            let is_close = one.difference().abs() < 0.05;
            let is_other = OTHER_POLICY.contains(&one.theirs.program.as_str());
            assert_eq!(is_close, !is_other, "{one:?}");
            if one.theirs.program == "memory-stores" {
                continue;
            }
            for (ours, theirs) in one.misses.into_iter().zip(one.theirs.misses) {
                assert!(ours.abs_diff(theirs) * 200 <= theirs, "{one:?}");
            }
        }
    }

    /// By hand: four enter in a cycle; one after the other each takes one; a hit takes as long as
    /// the machine's file says.
    #[test]
    fn what_can_be_counted_by_hand_is_so() {
        let all = compare_all().expect("the machine is possible");
        for (name, cycles) in [("plain", 250_000), ("chain", 1_000_000), ("l1-chase", 10_000_000)] {
            let one = all.iter().find(|one| one.theirs.program == name).expect("it is there");
            assert!(one.cycles.abs_diff(cycles) < 100, "{one:?}");
        }
    }
}
