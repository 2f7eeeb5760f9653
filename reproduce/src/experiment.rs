//! Why a claim does not hold, tried out: the suspected cause is taken away or turned, and what is
//! measured then was foretold.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::cell::{Cell, Quantity};
use crate::data::{self, Figure, Outcome};
use crate::estimate::Estimate;

/// `[[experiment]]` of `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short, unique in the paper.
    pub id: String,
    /// The cause, and what is done to it.
    pub what: String,
    /// "%" multiplies shares by 100; other units are as they are.
    pub unit: String,
    /// What is measured.
    pub measure: Cell,
    /// Subtracted from it, as in a claim.
    pub minus: Option<Cell>,
    /// It is divided by that.
    pub over: Option<Cell>,
    /// From and to: what it is if the cause is the right one.
    pub expected: (f64, f64),
    /// Why that.
    pub why: String,
}

impl Experiment {
    /// What becomes of it.
    #[must_use]
    pub fn outcome(&self, figures: &[Figure]) -> data::Experiment {
        let (minus, over) = (self.minus.as_ref(), self.over.as_ref());
        let quantity = Quantity { of: &self.measure, minus, over, unit: &self.unit };
        let value = quantity.value(figures);
        data::Experiment {
            id: self.id.clone(),
            what: self.what.clone(),
            unit: self.unit.clone(),
            measured: value.as_ref().map(|value| value.mean),
            half_width: value.as_ref().and_then(Estimate::half_width),
            expected: self.expected,
            why: self.why.clone(),
            outcome: value.map_or(Outcome::NotRun, |value| self.says(&value)),
        }
    }

    /// What a value says, if all of its interval says the same.
    fn says(&self, value: &Estimate) -> Outcome {
        let (low, high) = value.interval().unwrap_or((value.mean, value.mean));
        let (from, to) = self.expected;
        if from <= low && high <= to {
            Outcome::Shows
        } else if high < from || to < low {
            Outcome::DoesNotShow
        } else {
            Outcome::Undecided
        }
    }

    /// Refuses what foretells nothing.
    ///
    /// # Errors
    /// Its range is open or empty, or it does not say why that is so.
    pub fn check(&self) -> Result<()> {
        let (id, (from, to)) = (&self.id, self.expected);
        ensure!(
            from.is_finite() && to.is_finite() && from <= to,
            "experiment {id}: what is expected goes from one number to another"
        );
        ensure!(!self.why.is_empty(), "experiment {id} does not say why its range is what it is");
        Ok(())
    }

    /// All cells that it names.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        std::iter::once(&self.measure).chain([&self.minus, &self.over].into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Moved, Moves, Parts};
    use crate::report::samples;

    fn experiment(expected: &str) -> Experiment {
        let text = format!(
            "id = 'x'\nwhat = 'w'\nwhy = 'y'\nunit = '%'\nexpected = {expected}\n\
             measure = {{ figure = '6', series = 'MT', at = 'mcf' }}\n\
             minus = {{ figure = '6', series = 'MT', at = 'gcc' }}"
        );
        toml::from_str(&text).expect("it is right")
    }

    /// The sample's 30 % less its 5 %, with an interval of 2 points if mcf has one.
    fn outcome(expected: &str, is_sampled: bool) -> data::Experiment {
        let mut figure = samples::figure();
        let moved = 0.02 / 12.706_205; // t of one degree
        let moved = Moved::Each(Parts::Windows, vec![moved, -moved]);
        let moves = Moves::from([("mcf".to_owned(), moved)]);
        figure.series[0].points[1].moves = is_sampled.then_some(moves);
        experiment(expected).outcome(&[figure])
    }

    #[test]
    fn an_experiment_shows_what_was_foretold_and_nothing_else() {
        let exact = |expected: &str| outcome(expected, false).outcome;
        assert_eq!(exact("[24, 26]"), Outcome::Shows);
        assert_eq!(exact("[25.5, 26]"), Outcome::DoesNotShow);
        assert_eq!(exact("[10, 24.5]"), Outcome::DoesNotShow);
        let sampled = outcome("[22.9, 27.1]", true);
        assert!((sampled.measured.expect("a number") - 25.0).abs() < 1e-9);
        assert!((sampled.half_width.expect("an interval") - 2.0).abs() < 1e-6);
        assert_eq!(sampled.outcome, Outcome::Shows);
        // Its interval goes from 23 to 27.
        for (expected, says) in [
            ("[23.1, 40]", Outcome::Undecided),
            ("[26.9, 40]", Outcome::Undecided),
            ("[27.1, 40]", Outcome::DoesNotShow),
            ("[0, 22.9]", Outcome::DoesNotShow),
        ] {
            assert_eq!(outcome(expected, true).outcome, says, "{expected}");
        }
        assert_eq!(experiment("[0, 1]").outcome(&[]).outcome, Outcome::NotRun);
    }

    #[test]
    fn what_foretells_nothing_is_refused() {
        assert!(experiment("[1, 2]").check().is_ok());
        for open in ["[-inf, 2]", "[0, inf]", "[2, 1]", "[nan, 1]"] {
            let error = experiment(open).check().expect_err(open).to_string();
            assert!(error.contains("experiment x"), "{error}");
        }
        let silent = Experiment { why: String::new(), ..experiment("[1, 2]") };
        assert!(silent.check().is_err());
    }
}
