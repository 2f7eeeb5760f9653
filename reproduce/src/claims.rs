//! `papers/*/claims.toml`: what a paper says, and what becomes of it.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::data::{Claim, Evidence, Figure, Verdict};
use crate::spec::MEAN;

/// The file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// In the paper's order.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Stated>,
}

/// What a paper says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// Short, unique in the paper.
    pub id: String,
    /// Where it is said.
    pub place: String,
    /// What is said.
    pub what: String,
    /// "%" multiplies shares by 100; other units are as they are.
    pub unit: String,
    /// The paper's number, in that unit.
    pub paper: f64,
    /// What is measured.
    pub measure: Cell,
    /// Subtracted from it.
    pub minus: Option<Cell>,
    /// It is divided by that.
    pub over: Option<Cell>,
    /// What counts as agreement, from and to.
    pub holds: (f64, f64),
    /// What counts as the same thing, but weaker.
    pub weaker: Option<(f64, f64)>,
    /// Why those.
    pub why: String,
    /// What explains what we measured.
    #[serde(default)]
    pub finding: String,
    /// Numbers that show it.
    #[serde(default)]
    pub evidence: Vec<Shown>,
}

/// A number of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Of which figure.
    pub figure: String,
    /// Of which series.
    pub series: String,
    /// At which place; or "mean", "max", "min" of all places.
    pub at: String,
}

/// A number that explains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// What it is.
    pub what: String,
    /// Its unit; "%" multiplies shares by 100.
    #[serde(default)]
    pub unit: String,
    /// Which number.
    pub measure: Cell,
}

impl Claims {
    /// Reads the file.
    ///
    /// # Errors
    /// It is malformed, or contradicts itself.
    pub fn read(name: &str, text: &str) -> Result<Self> {
        let claims: Claims = toml::from_str(text).with_context(|| name.to_owned())?;
        for (at, claim) in claims.claims.iter().enumerate() {
            let id = &claim.id;
            let same = |other: &Stated| other.id == *id;
            ensure!(!claims.claims[..at].iter().any(same), "{name}: claim {id} is there twice");
            let (from, to) = claim.holds;
            ensure!(
                (from..=to).contains(&claim.paper),
                "{name}: claim {id}: the paper's own number is not what counts as agreement"
            );
        }
        Ok(claims)
    }

    /// Those that are measured in these figures alone; all of them if none is named.
    pub fn of_figures<'a>(&'a self, figures: &'a [String]) -> impl Iterator<Item = &'a Stated> {
        let named = |cell: &Cell| figures.is_empty() || figures.contains(&cell.figure);
        self.claims.iter().filter(move |claim| {
            let cells = [Some(&claim.measure), claim.minus.as_ref(), claim.over.as_ref()];
            cells.into_iter().flatten().all(named)
        })
    }

    /// All cells that claims name.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &Cell)> {
        self.claims.iter().flat_map(|claim| {
            let own = [Some(&claim.measure), claim.minus.as_ref(), claim.over.as_ref()];
            let shown = claim.evidence.iter().map(|shown| &shown.measure);
            own.into_iter().flatten().chain(shown).map(|cell| (&*claim.id, cell))
        })
    }
}

impl Stated {
    /// What becomes of it.
    #[must_use]
    pub fn judge(&self, figures: &[Figure]) -> Claim {
        let measured = self.measured(figures);
        let within = |range: (f64, f64), value: f64| (range.0..=range.1).contains(&value);
        let verdict = match measured {
            None => Verdict::NotMeasured,
            Some(value) if within(self.holds, value) => Verdict::Holds,
            Some(value) if self.weaker.is_some_and(|range| within(range, value)) => {
                Verdict::HoldsWeaker
            }
            Some(_) => Verdict::DoesNotHold,
        };
        let evidence = |shown: &Shown| Evidence {
            what: shown.what.clone(),
            unit: shown.unit.clone(),
            measured: shown.measure.value(figures).map(|value| scaled(&shown.unit, value)),
        };
        Claim {
            id: self.id.clone(),
            place: self.place.clone(),
            what: self.what.clone(),
            unit: self.unit.clone(),
            paper: self.paper,
            measured,
            holds: self.holds,
            weaker: self.weaker,
            why: self.why.clone(),
            verdict,
            finding: self.finding.clone(),
            evidence: self.evidence.iter().map(evidence).collect(),
        }
    }

    fn measured(&self, figures: &[Figure]) -> Option<f64> {
        let mut value = self.measure.value(figures)?;
        if let Some(cell) = &self.minus {
            value -= cell.value(figures)?;
        }
        if let Some(cell) = &self.over {
            let divisor = cell.value(figures)?;
            if divisor == 0.0 {
                return None;
            }
            value /= divisor;
        }
        Some(scaled(&self.unit, value))
    }
}

fn scaled(unit: &str, value: f64) -> f64 {
    if unit == "%" { value * 100.0 } else { value }
}

impl Cell {
    /// Its number, if the figure was computed and has it.
    #[must_use]
    pub fn value(&self, figures: &[Figure]) -> Option<f64> {
        let figure = figures.iter().find(|figure| figure.id == self.figure)?;
        let series = figure.series.iter().find(|series| series.name == self.series)?;
        if let Some(point) = series.points.iter().find(|point| point.place == self.at) {
            return point.value;
        }
        let places = series.points.iter().filter(|point| point.place != MEAN);
        let values: Vec<f64> = places.filter_map(|point| point.value).collect();
        if values.is_empty() {
            return None;
        }
        match &*self.at {
            "max" => values.iter().copied().reduce(f64::max),
            "min" => values.iter().copied().reduce(f64::min),
            "mean" => Some(values.iter().sum::<f64>() / values.len() as f64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Chart, Point, Series};

    fn figure() -> Figure {
        let point = |place: &str, value: f64| Point {
            place: place.to_owned(),
            x: None,
            value: Some(value),
            paper: None,
        };
        let series = |name: &str, times: f64| Series {
            name: name.to_owned(),
            points: vec![
                point("gzip", 0.01 * times),
                point("join", 0.05 * times),
                point("mean", 0.03 * times),
            ],
        };
        Figure {
            id: "6".to_owned(),
            title: String::new(),
            source: String::new(),
            note: String::new(),
            chart: Chart::Bars,
            upright: String::new(),
            level: String::new(),
            percent: true,
            series: vec![series("a", 1.0), series("b", 10.0)],
            ranges: Vec::new(),
        }
    }

    fn claim(rest: &str) -> Stated {
        let text = format!(
            "[[claim]]\nid = 'x'\nplace = 'p'\nwhat = 'w'\nwhy = 'y'\nfinding = 'because'\n{rest}"
        );
        Claims::read("test", &text).expect("it is right").claims.remove(0)
    }

    #[test]
    fn a_claim_holds_in_its_range_and_nowhere_else() {
        let cell = |series: &str, at: &str| {
            format!("{{ figure = '6', series = '{series}', at = '{at}' }}")
        };
        let verdict = |holds: &str, weaker: &str| {
            let measure = cell("a", "mean");
            let rest = format!(
                "unit = '%'\npaper = 1.8\nmeasure = {measure}\nholds = {holds}\nweaker = {weaker}"
            );
            claim(&rest).judge(&[figure()])
        };
        let holds = verdict("[1, 3.1]", "[3.1, 4]");
        assert_eq!((holds.verdict, holds.finding.as_str()), (Verdict::Holds, "because"));
        assert!((holds.measured.expect("a number") - 3.0).abs() < 1e-9);
        assert_eq!(verdict("[1, 2.9]", "[2.9, 4]").verdict, Verdict::HoldsWeaker);
        let fails = verdict("[1, 2]", "[2, 2.9]");
        assert_eq!((fails.verdict, fails.finding.as_str()), (Verdict::DoesNotHold, "because"));
        // Ratios and differences.
        let (measure, other) = (cell("b", "max"), cell("a", "min"));
        let rest = format!("unit = 'x'\npaper = 50\nholds = [49, 51]\nmeasure = {measure}\n");
        let ratio = claim(&format!("{rest}over = {other}")).judge(&[figure()]);
        assert_eq!(ratio.verdict, Verdict::Holds);
        let difference = claim(&format!("{rest}minus = {other}")).judge(&[figure()]);
        assert!((difference.measured.expect("a number") - 0.49).abs() < 1e-9);
        assert_eq!(claim(&rest).judge(&[]).verdict, Verdict::NotMeasured);
    }

    #[test]
    fn a_file_that_contradicts_itself_is_refused() {
        let text = "[[claim]]\nid = 'x'\nplace = ''\nwhat = ''\nwhy = ''\nunit = '%'\npaper = 5\n\
                    holds = [1, 2]\nmeasure = { figure = '6', series = 'a', at = 'mean' }\n";
        let error = Claims::read("test", text).expect_err("5 is not from 1 to 2").to_string();
        assert!(error.contains("claim x"), "{error}");
    }
}
