//! A part of the matrix, run: chosen schemes against chosen attacks, on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::matrix::{Effort, cell};
use super::promise::{Promise, promise};
use super::strike::Attack;
use super::tally::{Outcome, Tally};
use casemate_schemes::catalogue::NamedScheme;
use casemate_schemes::choice::ALL;
use casemate_schemes::nearest::meant;
use casemate_schemes::unit::scheme::{Residency, SchemeError};

/// No attack has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no attack {name}{}; there are {ALL}, {}", likely(name), names().join(", "))]
pub struct UnknownAttack {
    /// The name that was given.
    pub name: String,
}

/// The attacks of this name: one, or every one for [`ALL`].
///
/// # Errors
/// There is none.
pub fn attacks(name: &str) -> Result<Vec<Attack>, UnknownAttack> {
    if name == ALL {
        return Ok(Attack::ALL.to_vec());
    }
    let found = Attack::ALL.into_iter().find(|attack| attack.name() == name);
    found.map(|attack| vec![attack]).ok_or_else(|| UnknownAttack { name: name.to_owned() })
}

fn names() -> Vec<&'static str> {
    Attack::ALL.map(Attack::name).to_vec()
}

fn likely(name: &str) -> String {
    meant(name, names())
}

/// Which cells of the matrix, and how they are run.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// The rows.
    pub schemes: &'a [NamedScheme],
    /// The columns.
    pub attacks: &'a [Attack],
    /// Where the units of a cell keep metadata, one after the other.
    pub residencies: &'a [Residency],
    /// How much is done for each cell.
    pub effort: Effort,
    /// Of all random choices; a cell makes the same ones with any others beside it.
    pub seed: u64,
}

/// A cell, run.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// Its row.
    pub named: &'a NamedScheme,
    /// Its column.
    pub attack: Attack,
    /// What should come of it.
    pub promise: Promise,
    /// What came of it.
    pub tally: Tally,
    /// Strikes that it needs to say anything.
    pub needs: u64,
}

impl Cell<'_> {
    /// Whether it came out as promised.
    #[must_use]
    pub fn kept(&self) -> bool {
        self.tally.keeps(self.promise, self.needs)
    }

    /// What came of its strikes. Without any it says that there is nothing to attack only if there
    /// should be nothing.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match (self.tally.outcome(self.needs), self.promise) {
            (Outcome::Nothing, Promise::NothingToAttack(_)) => Outcome::Nothing,
            (Outcome::Nothing, _) => Outcome::TooFewStrikes,
            (outcome, _) => outcome,
        }
    }
}

/// A cell that is done.
#[derive(Clone, Copy, Debug)]
pub struct Done<'a> {
    /// Its place in the order of the matrix, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// Its row.
    pub named: &'a NamedScheme,
}

impl<'a> Selection<'a> {
    /// Runs the cells on all processors and tells `progress` of each. They come back row by row,
    /// and are the same on any number of processors.
    ///
    /// # Errors
    /// If the parts of a scheme do not go together: of the first such scheme.
    pub fn run(&self, progress: impl Fn(Done<'_>) + Sync) -> Result<Vec<Cell<'a>>, SchemeError> {
        let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
        self.run_on(threads, progress)
    }

    fn run_on(
        &self,
        threads: usize,
        progress: impl Fn(Done<'_>) + Sync,
    ) -> Result<Vec<Cell<'a>>, SchemeError> {
        let jobs: Vec<(&'a NamedScheme, Attack)> = self
            .schemes
            .iter()
            .flat_map(|named| self.attacks.iter().map(move |attack| (named, *attack)))
            .collect();
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(jobs.len()));
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((named, attack)) = jobs.get(number) else { return };
                let cell = self.cell(named, *attack);
                progress(Done { number: number + 1, of: jobs.len(), named });
                done.lock().unwrap_or_else(PoisonError::into_inner).push((number, cell));
            }
        };
        // The scope joins all of them, and goes on with a panic of any.
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, cell)| cell).collect()
    }

    fn cell(&self, named: &'a NamedScheme, attack: Attack) -> Result<Cell<'a>, SchemeError> {
        let Selection { residencies, effort, seed, .. } = *self;
        let tally = cell(residencies, &named.scheme, attack, effort, seed)?;
        let promise = promise(&named.scheme, attack);
        Ok(Cell { named, attack, promise, tally, needs: effort.strikes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::governor::RESIDENCIES;
    use super::*;
    use casemate_schemes::choice::chosen;

    #[test]
    fn cells_are_the_same_and_in_order_on_any_number_of_processors() {
        let schemes = chosen(&["mac", "none", "aise+bmt"]).expect("all have these names");
        let attacks = [Attack::FlipMac, Attack::FlipData, Attack::ReplayData];
        let selection = Selection {
            schemes: &schemes,
            attacks: &attacks,
            residencies: &RESIDENCIES,
            effort: Effort { operations: 200, strikes: 2 },
            seed: 7,
        };
        let cells = |threads| {
            let told = Mutex::new(0);
            let note = |done: Done<'_>| {
                assert!((1..=9).contains(&done.number) && done.of == 9);
                *told.lock().expect("no thread panics") += 1;
            };
            let cells = selection.run_on(threads, note).expect("the parts go together");
            assert_eq!(*told.lock().expect("no thread panics"), 9);
            let key = |cell: &Cell<'_>| (cell.named.name.clone(), cell.attack, cell.tally);
            cells.iter().map(key).collect::<Vec<_>>()
        };
        let one = cells(1);
        assert_eq!(one, cells(2));
        assert_eq!(one, cells(16));
        let names: Vec<_> = one.iter().map(|(name, attack, _)| (&**name, *attack)).collect();
        let row = |name| attacks.map(|attack| (name, attack));
        assert_eq!(names, [row("mac"), row("none"), row("aise+bmt")].concat());
        // There is no MAC to flip in unprotected memory: an epoch of each residency shows that.
        let strikes: Vec<_> = one.iter().map(|(.., tally)| tally.strikes()).collect();
        assert!(strikes.iter().enumerate().all(|(at, strikes)| (*strikes > 0) == (at != 3)));
        assert_eq!(one[3].2.epochs, 2);
    }

    #[test]
    fn an_unknown_attack_is_answered_by_the_nearest_and_by_all() {
        assert_eq!(attacks("reorder"), Ok(vec![Attack::ReorderBetweenChecks]));
        let error = attacks("flip-dta").expect_err("no attack has that name").to_string();
        assert!(error.starts_with("there is no attack flip-dta (did you mean flip-data?);"));
        assert!(names().iter().all(|name| error.contains(name)), "{error}");
    }
}
