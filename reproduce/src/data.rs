//! What comes out of a paper's reproduction: what tables, plots and reports are made of.

use crate::estimate::{Estimate, Moves};

/// A paper, reproduced.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// Its folder's name.
    pub slug: String,
    /// How this project cites it.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its machine, in a sentence.
    pub machine: String,
    /// What was run, in sentences: traces, windows, how long it took.
    pub remarks: Vec<String>,
    /// Figures and tables, in the paper's order.
    pub figures: Vec<Figure>,
    /// Claims, in the paper's order.
    pub claims: Vec<Claim>,
    /// Beside the results: everything that they depend on.
    pub provenance: serde_json::Value,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chart {
    /// A group of bars for each place.
    Bars,
    /// A line for each series.
    Lines,
    /// A dot for each point, with its place beside it.
    Scatter,
    /// Not at all: a table.
    Table,
}

/// A figure or table.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Short, for file names: "6", "10a", "table-2", "stability".
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where the paper has it: "Figure 6". Empty if it has not.
    pub source: String,
    /// What has to be known to read it; may be empty.
    pub note: String,
    /// How it is drawn.
    pub chart: Chart,
    /// What is on the upright axis.
    pub upright: String,
    /// What is on the level axis.
    pub level: String,
    /// Whether values are shares of one, to be shown in per cent.
    pub percent: bool,
    /// Whether places on the level axis of a scatter plot are.
    pub level_percent: bool,
    /// What bars stand on, or hang from: 1 where that is what an unprotected machine has.
    pub base: f64,
    /// The values.
    pub series: Vec<Series>,
    /// Areas to be marked in a scatter plot.
    pub ranges: Vec<Range>,
}

/// Values that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// The values.
    pub points: Vec<Point>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its place on the level axis, as text; in a scatter plot what stands beside the dot.
    pub place: String,
    /// Its place on the level axis of a scatter plot.
    pub x: Option<f64>,
    /// The value, if there is one.
    pub value: Option<f64>,
    /// Half of its 95 % interval, if it is known.
    pub half_width: Option<f64>,
    /// What that is made of.
    pub moves: Option<Moves>,
    /// What each round gave, if it was measured on the machine at hand; the value is their median.
    pub rounds: Option<Vec<f64>>,
    /// What it cannot be below, if that is known.
    pub least: Option<f64>,
    /// What the paper says of it, if it says a number.
    pub paper: Option<f64>,
}

impl Point {
    /// A value at a place.
    #[must_use]
    pub fn of(place: &str, value: Option<Estimate>) -> Point {
        let half_width = value.as_ref().and_then(Estimate::half_width);
        let mean = value.as_ref().map(|value| value.mean);
        let least = value.as_ref().and_then(|value| value.least);
        let (moves, rounds) = value.map_or((None, None), |value| (value.moves, value.rounds));
        let place = place.to_owned();
        Point { place, x: None, value: mean, half_width, moves, rounds, least, paper: None }
    }

    /// The value with its interval.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        let (moves, rounds) = (self.moves.clone(), self.rounds.clone());
        self.value.map(|mean| Estimate { mean, moves, rounds, least: self.least })
    }
}

/// An area of a scatter plot.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// What it is.
    pub name: String,
    /// From and to, on the level axis.
    pub x: (f64, f64),
    /// From and to, on the upright axis.
    pub y: (f64, f64),
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within what was said beforehand to be agreement.
    Holds,
    /// The same thing, but less of it (or more) than that.
    HoldsWeaker,
    /// Its interval is on both sides of a border between two of the others.
    Undecided,
    /// Not on our workloads and our model.
    DoesNotHold,
    /// Within that range, because the machine was calibrated to it: no agreement.
    ByConstruction,
    /// Its figure was not computed.
    NotMeasured,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsWeaker => "holds weaker",
            Verdict::Undecided => "undecided",
            Verdict::DoesNotHold => "does not hold here",
            Verdict::ByConstruction => "by construction",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// What a number of ours comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Our workloads on our model of the machine.
    Simulated,
    /// What the engine counts of its layouts, or does on bytes, without a workload.
    Counted,
    /// Simulated, on a machine that was calibrated to the paper's number.
    Constructed,
    /// Real programs on the machine at hand.
    Measured,
}

/// A claim of a paper, and what we measured.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Claim {
    /// Short, unique in the paper.
    pub id: String,
    /// Where the paper says it.
    pub place: String,
    /// What it says.
    pub what: String,
    /// "%", "x", "" or any other unit, of all numbers here.
    pub unit: String,
    /// The paper's number, if it says one: of an order, a sign or a trend it does not.
    pub paper: Option<f64>,
    /// What ours comes from.
    pub basis: Basis,
    /// Ours.
    pub measured: Option<f64>,
    /// Half of its 95 % interval, if it is known.
    pub half_width: Option<f64>,
    /// The least and the greatest of its rounds, if it was measured on the machine at hand.
    pub range: Option<(f64, f64)>,
    /// What counts as agreement, from and to.
    pub holds: (f64, f64),
    /// What counts as agreement that is weaker.
    pub weaker: Option<(f64, f64)>,
    /// Why those.
    pub why: String,
    /// What became of it.
    pub verdict: Verdict,
    /// What explains that, in sentences; may be empty.
    pub finding: String,
    /// Numbers that show it: what, and how much in which unit.
    pub evidence: Vec<Evidence>,
    /// What was tried to see whether that is so.
    pub experiments: Vec<Experiment>,
}

/// A suspected cause, taken away or turned, and what we measured then.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Experiment {
    /// Short, unique in the paper.
    pub id: String,
    /// The cause, and what was done to it.
    pub what: String,
    /// "%", "x", "" or any other unit, of all numbers here.
    pub unit: String,
    /// What was measured.
    pub measured: Option<f64>,
    /// Half of its 95 % interval, if it is known.
    pub half_width: Option<f64>,
    /// From and to: what it had to be if the cause is the right one.
    pub expected: (f64, f64),
    /// Why that.
    pub why: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is as it has to be if the cause is the right one.
    Shows,
    /// The interval reaches over an end of what was expected.
    Undecided,
    /// It is not.
    DoesNotShow,
    /// Its figures were not computed.
    NotRun,
}

impl Outcome {
    /// As in a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Shows => "shows it",
            Outcome::Undecided => "undecided",
            Outcome::DoesNotShow => "does not show it",
            Outcome::NotRun => "not run",
        }
    }
}

/// A number that explains.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Evidence {
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// How much.
    pub measured: Option<f64>,
    /// Half of its 95 % interval, if it is known.
    pub half_width: Option<f64>,
}
