//! `papers/*/figures.toml`: what is run for a paper, and how it is drawn.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use casemate_sim::config::{Preset, Resolved};
use serde::Deserialize;

use crate::assumption::Assumption;
use crate::data::{self, Chart, Range};
use crate::metric::Metric;

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// How this project cites the paper.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its machine, in a sentence.
    pub machine: String,
    /// The preset of `casemate sim`.
    pub preset: String,
    /// What of each trace is simulated.
    pub window: Window,
    /// The same with `--quick`.
    pub quick_window: Window,
    /// What is simulated.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// Figures and tables, in the paper's order.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// What is run with other values of our assumptions.
    pub sensitivity: Option<Study>,
    /// Values of the machine that are not the paper's.
    #[serde(rename = "assumption", default)]
    pub assumptions: Vec<Assumption>,
    /// What is run with the window's length doubled.
    pub stability: Option<Study>,
}

/// Instructions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Simulated first, and counted apart.
    pub warmup: u64,
    /// Simulated after that.
    pub length: u64,
    /// Windows of it that are measured; 0: all of it, in detail.
    #[serde(default)]
    pub windows: u64,
}

/// A program of `tools/workloads/programs.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Which of the paper's programs it stands for, and why.
    pub stands_for: String,
    /// Whether `--quick` has it too.
    #[serde(default)]
    pub quick: bool,
    /// Whether only figures that name it have it.
    #[serde(default)]
    pub apart: bool,
}

/// A figure or table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Short, for file names.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where the paper has it.
    #[serde(default)]
    pub source: String,
    /// What has to be known to read it.
    #[serde(default)]
    pub note: String,
    /// How it is drawn.
    pub chart: Chart,
    /// The metric; none if it is computed by a function of ours.
    pub value: Option<String>,
    /// The metric on the level axis of a scatter plot.
    pub across: Option<String>,
    /// The function.
    pub compute: Option<String>,
    /// Figures that it is computed of.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What is on the upright axis.
    #[serde(default)]
    pub upright: String,
    /// What is on the level axis.
    #[serde(default)]
    pub level: String,
    /// Whether places on it are shares of one, in a scatter plot that is computed.
    #[serde(default)]
    pub level_percent: bool,
    /// `key=value` of all its runs.
    #[serde(default)]
    pub set: Vec<String>,
    /// Only these workloads.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Whether `--quick` has it too.
    #[serde(default = "yes")]
    pub quick: bool,
    /// What is compared.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Places on the level axis; workloads if there are none.
    #[serde(default)]
    pub points: Vec<Point>,
    /// What a metric compares with, if not unprotected memory.
    pub baseline: Option<Baseline>,
    /// Areas to be marked in a scatter plot.
    #[serde(rename = "range", default)]
    pub ranges: Vec<Range>,
    /// Whether places stand in the order of how far they are from the first.
    #[serde(skip)]
    pub most_moved_first: bool,
    /// The paper's numbers: of which series, at which place.
    #[serde(default)]
    pub paper: BTreeMap<String, BTreeMap<String, f64>>,
}

fn yes() -> bool {
    true
}

/// A machine with a scheme.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// The scheme.
    pub scheme: String,
    /// `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A place on the level axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// What stands there.
    pub name: String,
    /// `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// What a metric compares with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The scheme.
    pub scheme: String,
    /// `key=value`, over the figure's and the point's.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A few runs that show what depends on what.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// The metric.
    pub value: String,
    /// Of which workloads.
    pub workloads: Vec<String>,
    /// `key=value` of all its runs; a shorter window, for example.
    #[serde(default)]
    pub set: Vec<String>,
    /// What is run.
    pub series: Vec<Series>,
}

impl Spec {
    /// Whether a figure needs no runs: the engine counts it, or does it on bytes.
    #[must_use]
    pub fn is_counted(&self, figure: &str) -> bool {
        let figure = self.figures.iter().find(|known| known.id == figure);
        figure.is_some_and(|figure| figure.compute.is_some() && figure.needs.is_empty())
    }
}

impl Figure {
    /// Whether it shows a workload.
    pub(crate) fn has(&self, workload: &Workload) -> bool {
        if self.workloads.is_empty() {
            !workload.apart
        } else {
            self.workloads.contains(&workload.name)
        }
    }

    /// The figure with these values.
    #[must_use]
    pub fn with(&self, percent: bool, series: Vec<data::Series>) -> data::Figure {
        let metric = |name: &Option<String>| Metric::of_name(name.as_deref()?).ok();
        let across = metric(&self.across).is_some_and(|across| across.percent());
        data::Figure {
            id: self.id.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            note: self.note.clone(),
            chart: self.chart,
            upright: self.upright.clone(),
            level: self.level.clone(),
            percent,
            level_percent: self.level_percent || across,
            base: metric(&self.value).map_or(0.0, |value| value.unprotected()),
            series,
            ranges: self.ranges.clone(),
        }
    }
}

impl Spec {
    /// Reads it.
    ///
    /// # Errors
    /// It is malformed, or names something that is not there.
    pub fn read(name: &str, text: &str) -> Result<Self> {
        let mut spec: Spec = toml::from_str(text).with_context(|| name.to_owned())?;
        spec.add_studies();
        spec.check().with_context(|| name.to_owned())?;
        Ok(spec)
    }

    /// Sensitivity and stability are figures like others.
    fn add_studies(&mut self) {
        let figure = |id: &str, title: &str, note: &str, study: &Study| Figure {
            id: id.to_owned(),
            title: title.to_owned(),
            source: String::new(),
            note: note.to_owned(),
            chart: Chart::Table,
            value: Some(study.value.clone()),
            across: None,
            ranges: Vec::new(),
            compute: None,
            needs: Vec::new(),
            upright: study.value.clone(),
            level: String::new(),
            level_percent: false,
            set: study.set.clone(),
            workloads: study.workloads.clone(),
            quick: false,
            series: study.series.clone(),
            points: Vec::new(),
            baseline: None,
            most_moved_first: false,
            paper: BTreeMap::new(),
        };
        if let Some(study) = &self.sensitivity {
            let title = "What our assumptions move";
            let note = "Each value that the paper does not give, halved and doubled, or another; mean over a few workloads. What moves most comes first.";
            let mut sensitivity = figure("sensitivity", title, note, study);
            sensitivity.points.push(Point { name: "as assumed".to_owned(), set: Vec::new() });
            let variants = self.assumptions.iter().flat_map(Assumption::variants);
            sensitivity.points.extend(variants);
            sensitivity.level = "assumption".to_owned();
            sensitivity.most_moved_first = true;
            self.figures.push(sensitivity);
        }
        if let Some(study) = &self.stability {
            let title = "Whether the window is long enough";
            let note = "The same with the window's length doubled.";
            let mut stability = figure("stability", title, note, study);
            stability.level = "workload".to_owned();
            let twice = format!("run.length_instructions={}", 2 * self.window.length);
            let both = |series: &Series| {
                let named = |times: &str, set: Vec<String>| Series {
                    name: format!("{}, {times}", series.name),
                    scheme: series.scheme.clone(),
                    set: [series.set.clone(), set].concat(),
                };
                [named("1x", Vec::new()), named("2x", vec![twice.clone()])]
            };
            stability.series = study.series.iter().flat_map(both).collect();
            self.figures.push(stability);
        }
    }

    /// The paper's machine, as its preset has it.
    pub(crate) fn machine(&self) -> Result<Resolved> {
        Ok(Resolved::new(&[Preset::of_name(&self.preset)?.layer()?])?)
    }

    fn check(&self) -> Result<()> {
        let machine = self.machine()?;
        self.assumptions.iter().try_for_each(|assumption| assumption.check(&machine))?;
        for (at, figure) in self.figures.iter().enumerate() {
            let id = &figure.id;
            ensure!(self.figures[..at].iter().all(|other| other.id != *id), "figure {id}: twice");
            match (&figure.value, &figure.compute) {
                (Some(_), None) => {
                    ensure!(!figure.series.is_empty(), "figure {id} has no series");
                }
                (None, Some(_)) => {
                    ensure!(figure.series.is_empty(), "figure {id} is computed and has series");
                }
                _ => bail!("figure {id} needs either a value or something to compute"),
            }
            let scatter = figure.chart == Chart::Scatter && figure.compute.is_none();
            ensure!(
                figure.across.is_some() == scatter,
                "figure {id}: a scatter plot, and nothing else, has a value across"
            );
            ensure!(!scatter || figure.points.is_empty(), "figure {id}: its points are workloads");
            for needed in &figure.needs {
                let simulated = |other: &Figure| other.id == *needed && other.compute.is_none();
                ensure!(self.figures.iter().any(simulated), "figure {id} needs {needed}");
            }
            for name in &figure.workloads {
                let known = self.workloads.iter().any(|workload| workload.name == *name);
                ensure!(known, "figure {id}: {name} is no workload of this paper");
            }
            for (series, places) in &figure.paper {
                let known = figure.compute.is_some()
                    || figure.series.iter().any(|known| known.name == *series);
                ensure!(
                    known,
                    "figure {id}: the paper's numbers are of {series}, which is no series"
                );
                for place in places.keys() {
                    let known = self.has_place(figure, place);
                    ensure!(known, "figure {id}: the paper's number of {place}, which is no place");
                }
            }
        }
        Ok(())
    }

    /// Whether a figure has a place, as far as that is known before it is computed.
    pub(crate) fn has_place(&self, figure: &Figure, place: &str) -> bool {
        if figure.compute.is_some() {
            return true;
        }
        if figure.points.is_empty() {
            let has = |workload: &Workload| workload.name == place && figure.has(workload);
            return place == MEAN || self.workloads.iter().any(has);
        }
        figure.points.iter().any(|point| point.name == place)
    }
}

/// The place of the mean over workloads.
pub const MEAN: &str = "mean";
