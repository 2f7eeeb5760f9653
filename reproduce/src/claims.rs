//! `papers/*/claims.toml`: what a paper says, and what becomes of it.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::cell::{Cell, Quantity, scaled};
use crate::data::{Basis, Claim, Evidence, Figure, Verdict};
use crate::estimate::Estimate;
use crate::experiment::Experiment;

/// The file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// In the paper's order.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Stated>,
    /// Why some of them do not hold, tried out.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
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
    /// The paper's number, in that unit; none if it gives an order, a sign or a trend.
    pub paper: Option<f64>,
    /// What is measured.
    pub measure: Option<Cell>,
    /// Why nothing is, if it cannot be.
    pub not_measured: Option<String>,
    /// Subtracted from it. If one of these two is at the place "same", it is taken at each place
    /// of what is measured, whose `at` says which of the results counts: that is how "for all" is
    /// judged.
    pub minus: Option<Cell>,
    /// It is divided by that.
    pub over: Option<Cell>,
    /// What counts as agreement, from and to.
    #[serde(default = "anything")]
    pub holds: (f64, f64),
    /// What counts as the same thing, but weaker.
    pub weaker: Option<(f64, f64)>,
    /// Why those.
    #[serde(default)]
    pub why: String,
    /// Whether the machine was calibrated to the paper's number, so that agreeing with it says
    /// nothing. No longer agreeing does: the calibration is not one any more.
    #[serde(default)]
    pub by_construction: bool,
    /// What explains what we measured.
    #[serde(default)]
    pub finding: String,
    /// Numbers that show it.
    #[serde(default)]
    pub evidence: Vec<Shown>,
    /// Experiments that show whether the finding names the cause.
    #[serde(default)]
    pub experiments: Vec<String>,
}

fn anything() -> (f64, f64) {
    (f64::NEG_INFINITY, f64::INFINITY)
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
                claim.paper.is_none_or(|paper| (from..=to).contains(&paper)),
                "{name}: claim {id}: the paper's own number is not what counts as agreement"
            );
            ensure!(
                claim.measure.is_some() != claim.not_measured.is_some(),
                "{name}: claim {id} needs either what is measured or why nothing is"
            );
            ensure!(
                claim.measure.is_none() || claim.holds != anything(),
                "{name}: claim {id}: everything would count as agreement"
            );
            ensure!(
                claim.measure.is_none() || !claim.why.is_empty(),
                "{name}: claim {id} does not say why its range is what it is"
            );
            ensure!(
                !claim.by_construction || claim.weaker.is_none(),
                "{name}: claim {id}: what is so by construction cannot hold weaker"
            );
        }
        claims.check_experiments().with_context(|| name.to_owned())?;
        Ok(claims)
    }

    /// Each has its own name and a claim, and those that claims name are there.
    fn check_experiments(&self) -> Result<()> {
        for (at, experiment) in self.experiments.iter().enumerate() {
            experiment.check()?;
            let id = &experiment.id;
            let same = |other: &Experiment| other.id == *id;
            ensure!(!self.experiments[..at].iter().any(same), "experiment {id} is there twice");
            let is_named = self.claims.iter().any(|claim| claim.experiments.contains(id));
            ensure!(is_named, "experiment {id} explains no claim");
        }
        for claim in &self.claims {
            for named in &claim.experiments {
                let is_there = self.experiments.iter().any(|experiment| experiment.id == *named);
                ensure!(is_there, "claim {}: there is no experiment {named}", claim.id);
            }
        }
        Ok(())
    }

    /// What becomes of a claim, with its experiments; `is_counted` says whether a figure needs no
    /// runs.
    #[must_use]
    pub fn judge(
        &self,
        stated: &Stated,
        figures: &[Figure],
        is_counted: impl Fn(&str) -> bool,
    ) -> Claim {
        let named = self.experiments.iter().filter(|one| stated.experiments.contains(&one.id));
        let experiments = named.map(|experiment| experiment.outcome(figures)).collect();
        Claim { experiments, ..stated.judge(figures, is_counted) }
    }

    /// Those that are measured in these figures alone; all of them if none is named.
    pub fn of_figures<'a>(&'a self, figures: &'a [String]) -> impl Iterator<Item = &'a Stated> {
        let named = |cell: &Cell| figures.is_empty() || figures.contains(&cell.figure);
        self.claims.iter().filter(move |claim| {
            let cells = [&claim.measure, &claim.minus, &claim.over].into_iter().flatten();
            let is_of_none = claim.measure.is_none() && !figures.is_empty();
            !is_of_none && cells.into_iter().all(named)
        })
    }

    /// All cells that claims and experiments name, with who does.
    pub fn cells(&self) -> impl Iterator<Item = (String, &Cell)> {
        let of_claims = self.claims.iter().flat_map(|claim| {
            let own = [&claim.measure, &claim.minus, &claim.over].into_iter().flatten();
            let shown = claim.evidence.iter().map(|shown| &shown.measure);
            own.chain(shown).map(|cell| (format!("claim {}", claim.id), cell))
        });
        of_claims.chain(self.experiments.iter().flat_map(|experiment| {
            experiment.cells().map(|cell| (format!("experiment {}", experiment.id), cell))
        }))
    }
}

impl Stated {
    /// What becomes of it, without its experiments; `is_counted` says whether a figure needs no
    /// runs.
    #[must_use]
    pub fn judge(&self, figures: &[Figure], is_counted: impl Fn(&str) -> bool) -> Claim {
        let measured = self.measured(figures);
        let verdict = measured.as_ref().map_or(Verdict::NotMeasured, |value| self.verdict(value));
        let half_width = measured.as_ref().and_then(Estimate::half_width);
        let range = measured.as_ref().and_then(Estimate::range);
        let measured = measured.map(|value| value.mean);
        let evidence = |shown: &Shown| {
            let value = shown.measure.value(figures).map(|value| scaled(&shown.unit, &value));
            Evidence {
                what: shown.what.clone(),
                unit: shown.unit.clone(),
                measured: value.as_ref().map(|value| value.mean),
                half_width: value.as_ref().and_then(Estimate::half_width),
            }
        };
        Claim {
            id: self.id.clone(),
            place: self.place.clone(),
            what: self.what.clone(),
            unit: self.unit.clone(),
            paper: self.paper,
            basis: self.basis(is_counted),
            measured,
            half_width,
            range,
            holds: self.holds,
            weaker: self.weaker,
            why: self.why.clone(),
            verdict,
            finding: self.not_measured.clone().unwrap_or_else(|| self.finding.clone()),
            evidence: self.evidence.iter().map(evidence).collect(),
            experiments: Vec::new(),
        }
    }

    /// What a value says, if all of its interval says the same.
    fn verdict(&self, value: &Estimate) -> Verdict {
        let of = self.verdict_of(value.mean);
        let Some((from, to)) = value.interval().filter(|(from, to)| from < to) else { return of };
        let weaker = self.weaker.unwrap_or(self.holds);
        let borders = [self.holds.0, self.holds.1, weaker.0, weaker.1];
        let inside = borders.into_iter().filter(|border| (from..to).contains(border));
        let mut ends: Vec<f64> = [from, to].into_iter().chain(inside).collect();
        ends.sort_by(f64::total_cmp);
        // Between two borders all values say the same.
        let says_so =
            |two: &[f64]| two[0] == two[1] || self.verdict_of((two[0] + two[1]) / 2.0) == of;
        if ends.windows(2).all(says_so) { of } else { Verdict::Undecided }
    }

    fn verdict_of(&self, value: f64) -> Verdict {
        let within = |range: (f64, f64)| (range.0..=range.1).contains(&value);
        if within(self.holds) && self.by_construction {
            Verdict::ByConstruction
        } else if within(self.holds) {
            Verdict::Holds
        } else if self.weaker.is_some_and(within) {
            Verdict::HoldsWeaker
        } else {
            Verdict::DoesNotHold
        }
    }

    /// What its number comes from.
    pub fn basis(&self, is_counted: impl Fn(&str) -> bool) -> Basis {
        if self.by_construction {
            Basis::Constructed
        } else if self.measure.as_ref().is_some_and(|cell| is_counted(&cell.figure)) {
            Basis::Counted
        } else {
            Basis::Simulated
        }
    }

    fn measured(&self, figures: &[Figure]) -> Option<Estimate> {
        let (minus, over) = (self.minus.as_ref(), self.over.as_ref());
        Quantity { of: self.measure.as_ref()?, minus, over, unit: &self.unit }.value(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Chart, Outcome, Point, Series};
    use crate::estimate::{Moved, Moves, Parts};

    fn figure() -> Figure {
        let point = |place: &str, value| Point::of(place, Some(Estimate::alone(value)));
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
            level_percent: false,
            base: 0.0,
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
            claim(&rest).judge(&[figure()], |_| false)
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
        let ratio = claim(&format!("{rest}over = {other}")).judge(&[figure()], |_| false);
        assert_eq!(ratio.verdict, Verdict::Holds);
        let difference = claim(&format!("{rest}minus = {other}")).judge(&[figure()], |_| false);
        assert!((difference.measured.expect("a number") - 0.49).abs() < 1e-9);
        assert_eq!(claim(&rest).judge(&[], |_| false).verdict, Verdict::NotMeasured);
    }

    /// "For all" is the worst of the ratios, not the ratio of the means: b has ten times as much of
    /// each as a, but for one.
    #[test]
    fn what_is_said_for_all_is_judged_at_each_place() {
        let mut figure = figure();
        figure.series[1].points[0].value = Some(0.02);
        let claim = |which: &str| {
            claim(&format!(
                "unit = 'x'\nholds = [1, 20]\nmeasure = {{ figure = '6', series = 'b', at = \
                 '{which}' }}\nover = {{ figure = '6', series = 'a', at = 'same' }}"
            ))
        };
        let judged =
            |which: &str| claim(which).judge(std::slice::from_ref(&figure), |_| false).measured;
        assert_eq!(judged("min"), Some(2.0));
        assert!((judged("max").expect("a number") - 10.0).abs() < 1e-9);
        assert!((judged("mean").expect("a number") - 6.0).abs() < 1e-9);
        assert_eq!(judged("gzip"), None, "one place is not all");
    }

    #[test]
    fn the_farthest_from_the_paper_counts_over_all_series() {
        let mut figure = figure();
        figure.series[0].points[1].paper = Some(0.051);
        figure.series[1].points[0].paper = Some(0.13);
        let rest = "unit = '%'\nholds = [0, 0.1]\nmeasure = { figure = '6', series = 'a', at = \
                    'farthest' }";
        let judged = claim(rest).judge(&[figure], |id| id == "6");
        assert!((judged.measured.expect("a number") - 3.0).abs() < 1e-9);
        assert_eq!((judged.verdict, judged.basis), (Verdict::DoesNotHold, Basis::Counted));
        assert_eq!(judged.paper, None);
    }

    /// Of 3 ± a half width.
    #[test]
    fn an_interval_on_both_sides_of_a_border_decides_nothing() {
        let verdict = |half: f64, holds: &str, weaker: &str| {
            let measure = "{ figure = '6', series = 'a', at = 'mean' }";
            let rest = format!(
                "unit = '%'\npaper = 3\nmeasure = {measure}\nholds = {holds}\nweaker = {weaker}"
            );
            let mut figure = figure();
            // Two windows: t of one degree is 12.706205, and the half width that times the move.
            let moved = half / 100.0 / 12.706_205;
            let moved = Moved::Each(Parts::Windows, vec![moved, -moved]);
            let moves = Moves::from([("gcc".to_owned(), moved)]);
            figure.series[0].points[2].moves = Some(moves);
            let claim = claim(&rest).judge(&[figure], |_| false);
            assert!(claim.half_width.is_some_and(|found| (found - half).abs() < 1e-6));
            claim.verdict
        };
        let weaker = "[1, 9]";
        assert_eq!(verdict(0.9, "[2, 4]", weaker), Verdict::Holds);
        assert_eq!(verdict(1.1, "[2, 4]", weaker), Verdict::Undecided);
        assert_eq!(verdict(1.1, "[2, 40]", "[2, 50]"), Verdict::Undecided);
        assert_eq!(verdict(0.0, "[3, 4]", weaker), Verdict::Holds);
        // The whole range is inside of the interval.
        assert_eq!(verdict(2.0, "[2.9, 3.1]", "[2.9, 3.1]"), Verdict::Undecided);
        // A border between ranges that both hold is none.
        assert_eq!(verdict(1.5, "[1, 40]", "[2, 4]"), Verdict::Holds);
    }

    #[test]
    fn what_the_machine_was_calibrated_to_is_no_agreement() {
        let verdict = |holds: &str| {
            let rest = format!(
                "unit = '%'\npaper = 3\nby_construction = true\nholds = {holds}\n\
                 measure = {{ figure = '6', series = 'a', at = 'mean' }}"
            );
            (
                claim(&rest).judge(&[figure()], |_| false).verdict,
                claim(&rest).judge(&[], |_| false).verdict,
            )
        };
        assert_eq!(verdict("[2.9, 3.1]"), (Verdict::ByConstruction, Verdict::NotMeasured));
        // The figure's mean is 3 %. What misses the range is not calibrated.
        let paper_only = "unit = '%'\npaper = 5\nby_construction = true\nholds = [4, 6]\n\
                          measure = { figure = '6', series = 'a', at = 'mean' }";
        assert_eq!(claim(paper_only).judge(&[figure()], |_| false).verdict, Verdict::DoesNotHold);
        let text =
            format!("[[claim]]\nid='x'\nplace=''\nwhat=''\nwhy='y'\n{paper_only}\nweaker=[1, 4]");
        let error = Claims::read("test", &text).expect_err("it has no weaker form").to_string();
        assert!(error.contains("by construction"), "{error}");
    }

    #[test]
    fn a_claim_has_the_outcomes_of_the_experiments_that_it_names() {
        let measure = "measure = { figure = '6', series = 'a', at = 'mean' }";
        let experiment = |id: &str, expected: &str| {
            format!(
                "[[experiment]]\nid = '{id}'\nwhat = 'w'\nwhy = 'y'\nunit = '%'\n{measure}\n\
                 expected = {expected}\n"
            )
        };
        let read = |named: &str, experiments: &str| {
            let text = format!(
                "[[claim]]\nid = 'x'\nplace = ''\nwhat = ''\nwhy = 'y'\nunit = '%'\n{measure}\n\
                 holds = [1, 2]\nexperiments = {named}\n{experiments}"
            );
            Claims::read("test", &text)
        };
        let both = experiment("right", "[2, 4]") + &experiment("wrong", "[4, 5]");
        let claims = read("['right', 'wrong']", &both).expect("it is right");
        let claim = claims.judge(&claims.claims[0], &[figure()], |_| false);
        let outcomes: Vec<Outcome> = claim.experiments.iter().map(|one| one.outcome).collect();
        assert_eq!(outcomes, [Outcome::Shows, Outcome::DoesNotShow]);
        assert_eq!(claim.verdict, Verdict::DoesNotHold, "experiments change no verdict");
        let refused = |named: &str, experiments: &str| {
            format!("{:#}", read(named, experiments).expect_err("it is wrong"))
        };
        assert!(refused("['right']", &both).contains("wrong explains no claim"));
        assert!(refused("['other']", "").contains("no experiment other"));
        let twice = experiment("right", "[2, 4]").repeat(2);
        assert!(refused("['right']", &twice).contains("right is there twice"));
    }

    #[test]
    fn a_file_that_contradicts_itself_is_refused() {
        let text = "[[claim]]\nid = 'x'\nplace = ''\nwhat = ''\nwhy = ''\nunit = '%'\npaper = 5\n\
                    holds = [1, 2]\nmeasure = { figure = '6', series = 'a', at = 'mean' }\n";
        let error = Claims::read("test", text).expect_err("5 is not from 1 to 2").to_string();
        assert!(error.contains("claim x"), "{error}");
    }
}
