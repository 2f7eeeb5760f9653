//! What ChampSim said of the same programs: the figures of `sim/reference/champsim.csv`.
//!
//! It is ChampSim of February 2022 (commit 9c6c0ae1) with its own configuration, but for what
//! `docs/accuracy.md` lists.

const FIGURES: &str = include_str!("../../reference/champsim.csv");

/// One program, as the reference ran it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The program's name.
    pub program: String,
    /// Instructions that were measured.
    pub instructions: u64,
    /// Cycles that they took.
    pub cycles: u64,
    /// Loads and stores that missed in each level of the caches, the first level's first.
    pub misses: [u64; 3],
}

/// All runs, in the order of the file.
///
/// # Panics
/// The file in the binary is damaged.
#[must_use]
pub fn all() -> Vec<Reference> {
    FIGURES.lines().skip(1).map(|line| parse(line).expect("the file is well-formed")).collect()
}

fn parse(line: &str) -> Option<Reference> {
    let (program, numbers) = line.split_once(',')?;
    let numbers: Vec<u64> = numbers.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [instructions, cycles, ref misses @ ..] = numbers[..] else { return None };
    let misses = misses.try_into().ok()?;
    Some(Reference { program: program.to_owned(), instructions, cycles, misses })
}
