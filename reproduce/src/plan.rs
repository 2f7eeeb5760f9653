//! Which runs a paper's figures need: each machine, scheme and workload once, however many figures
//! show it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use casemate_sim::config::{Layer, Resolved};
use casemate_sim::results::compare::BASELINE;

use crate::metric::Metric;
use crate::spec::{Figure, Series, Spec};

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The program.
    pub workload: String,
    /// The machine with its scheme, and what of the trace is simulated.
    pub config: Resolved,
}

/// A cell of a figure before it is measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its series.
    pub series: usize,
    /// Its point; 0 in a figure without points.
    pub point: usize,
    /// Its workload.
    pub workload: String,
    /// The run, by its number in [`Plan::runs`].
    pub run: usize,
    /// What it is compared with.
    pub baseline: Option<usize>,
}

/// A figure that is simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What it shows.
    pub metric: Metric,
    /// What it shows across, in a scatter plot.
    pub across: Option<Metric>,
    /// Its workloads, in the paper's order.
    pub workloads: Vec<String>,
    /// Its cells.
    pub cells: Vec<Cell>,
}

/// What is wanted of a paper.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Less of everything.
    pub quick: bool,
    /// Only figures of these names; all if there are none.
    pub figures: Vec<String>,
}

/// How many instructions are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// In detail.
    pub in_detail: u64,
    /// Without time, between windows.
    pub warming: u64,
}

impl Instructions {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Instructions) -> Instructions {
        Instructions {
            in_detail: self.in_detail + other.in_detail,
            warming: self.warming + other.warming,
        }
    }
}

/// All runs of a paper.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The runs.
    pub runs: Vec<Run>,
    /// What each figure makes of them, by its place in the spec.
    pub figures: BTreeMap<usize, Simulated>,
    known: BTreeMap<String, usize>,
}

impl Spec {
    /// The figures that are wanted, by their places.
    #[must_use]
    pub fn wanted(&self, wanted: &Wanted) -> Vec<usize> {
        let asked = |figure: &&Figure| wanted.figures.contains(&figure.id);
        let needed: Vec<&String> =
            self.figures.iter().filter(asked).flat_map(|figure| &figure.needs).collect();
        let named = |figure: &Figure| asked(&figure) || needed.contains(&&figure.id);
        let is_wanted = |figure: &Figure| {
            if wanted.figures.is_empty() { figure.quick || !wanted.quick } else { named(figure) }
        };
        self.figures.iter().enumerate().filter(|(_, f)| is_wanted(f)).map(|(at, _)| at).collect()
    }

    /// Makes the plan.
    ///
    /// # Errors
    /// A figure asks for a machine, a scheme or a metric that there is not.
    pub fn plan(&self, wanted: &Wanted) -> Result<Plan> {
        let mut plan = Plan::default();
        let base = self.base(wanted.quick)?;
        for at in self.wanted(wanted) {
            let figure = &self.figures[at];
            if figure.compute.is_none() {
                let simulated = self.simulated(figure, &base, wanted.quick, &mut plan);
                let simulated = simulated.with_context(|| format!("figure {}", figure.id))?;
                plan.figures.insert(at, simulated);
            }
        }
        Ok(plan)
    }

    fn base(&self, quick: bool) -> Result<Resolved> {
        let window = if quick { self.quick_window } else { self.window };
        let set = [
            format!("run.warmup_instructions={}", window.warmup),
            format!("run.length_instructions={}", window.length),
            format!("run.sample_windows={}", window.windows),
        ];
        with(&self.machine()?, &set)
    }

    fn simulated(
        &self,
        figure: &Figure,
        base: &Resolved,
        quick: bool,
        plan: &mut Plan,
    ) -> Result<Simulated> {
        let metric = Metric::of_name(figure.value.as_deref().unwrap_or_default())?;
        let across = figure.across.as_deref().map(Metric::of_name).transpose()?;
        let workloads = self.workloads_of(figure, quick);
        let base = with(base, &figure.set)?;
        let mut cells = Vec::new();
        let none = [crate::spec::Point { name: String::new(), set: Vec::new() }];
        let points = if figure.points.is_empty() { &none[..] } else { &figure.points };
        for (point_at, point) in points.iter().enumerate() {
            let at_point = with(&base, &point.set).with_context(|| point.name.clone())?;
            for (series_at, series) in figure.series.iter().enumerate() {
                let config = machine(&at_point, series).with_context(|| series.name.clone())?;
                let compares = metric.compares() || across.as_ref().is_some_and(Metric::compares);
                let compared = match (&figure.baseline, compares) {
                    (_, false) => None,
                    (Some(baseline), true) => {
                        Some(scheme(&with(&at_point, &baseline.set)?, &baseline.scheme)?)
                    }
                    // The same instructions, however many the series has.
                    (None, true) => Some(same_window(&scheme(&at_point, BASELINE)?, &config)?),
                };
                for workload in &workloads {
                    let run = plan.run(workload, &config);
                    let baseline = compared.as_ref().map(|config| plan.run(workload, config));
                    let workload = workload.clone();
                    let (series, point) = (series_at, point_at);
                    cells.push(Cell { series, point, workload, run, baseline });
                }
            }
        }
        Ok(Simulated { metric, across, workloads, cells })
    }

    fn workloads_of(&self, figure: &Figure, quick: bool) -> Vec<String> {
        let all = self.workloads.iter().filter(|workload| figure.has(workload));
        let few: Vec<String> =
            all.clone().filter(|workload| workload.quick).map(|w| w.name.clone()).collect();
        if quick && !few.is_empty() {
            return few;
        }
        // A figure of one slow program has it in a quick run too, or it would have none.
        all.map(|workload| workload.name.clone()).collect()
    }
}

impl Plan {
    /// The workloads that are run.
    #[must_use]
    pub fn workloads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !names.contains(&&*run.workload) {
                names.push(&run.workload);
            }
        }
        names
    }

    /// Instructions that all runs simulate.
    #[must_use]
    pub fn instructions(&self) -> Instructions {
        let of = |run: &Run| {
            let number = |key: &str| run.config.number(&format!("run.{key}"));
            let all = number("warmup_instructions") + number("length_instructions");
            let window =
                number("sample_window_instructions") + number("sample_warmup_instructions");
            let in_detail = match number("sample_windows") {
                0 => all,
                windows => all.min(windows * window),
            };
            Instructions { in_detail, warming: all - in_detail }
        };
        self.runs.iter().map(of).fold(Instructions::default(), Instructions::and)
    }

    /// Adds a run unless it is there.
    fn run(&mut self, workload: &str, config: &Resolved) -> usize {
        let key = format!("{workload}\n{}", config.json());
        let next = self.runs.len();
        let number = *self.known.entry(key).or_insert(next);
        if number == next {
            self.runs.push(Run { workload: workload.to_owned(), config: config.clone() });
        }
        number
    }
}

fn machine(base: &Resolved, series: &Series) -> Result<Resolved> {
    scheme(&with(base, &series.set)?, &series.scheme)
}

fn scheme(base: &Resolved, name: &str) -> Result<Resolved> {
    with(base, &[format!("run.scheme={name}")])
}

fn same_window(base: &Resolved, other: &Resolved) -> Result<Resolved> {
    let keys =
        ["warmup_instructions", "length_instructions", "every_instructions", "sample_windows"];
    let set = keys.map(|key| format!("run.{key}={0}", other.number(&format!("run.{key}"))));
    with(base, &set)
}

fn with(base: &Resolved, set: &[String]) -> Result<Resolved> {
    let mut resolved = base.clone();
    for text in set {
        resolved = resolved.with(&Layer::assignment("figures.toml", text)?)?;
    }
    resolved.check()?;
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"
        name = "Test"
        title = "Test"
        machine = "one"
        preset = "aise-bmt"
        window = { warmup = 100, length = 200 }
        quick_window = { warmup = 10, length = 20 }
        [[workload]]
        name = "gzip"
        stands_for = "itself"
        quick = true
        [[workload]]
        name = "join"
        stands_for = "itself"
        [[figure]]
        id = "6"
        title = ""
        chart = "bars"
        value = "overhead"
        series = [{ name = "a", scheme = "aise+bmt" }, { name = "b", scheme = "aise" }]
        [[figure]]
        id = "7"
        title = ""
        chart = "lines"
        value = "overhead"
        series = [{ name = "a", scheme = "aise+bmt" }]
        points = [{ name = "1M" }, { name = "2M", set = ["l2.size_bytes=2M"] }]
        [[figure]]
        id = "9"
        title = ""
        chart = "scatter"
        compute = "scatter-overhead-storage-detection"
        needs = ["6"]
        [stability]
        value = "overhead"
        workloads = ["gzip"]
        series = [{ name = "a", scheme = "aise+bmt" }]
    "#;

    fn plan(quick: bool, figures: &[&str]) -> Plan {
        let figures = figures.iter().map(|id| (*id).to_owned()).collect();
        let spec = Spec::read("test", SPEC).expect("it is right");
        spec.plan(&Wanted { quick, figures }).expect("it can be planned")
    }

    #[test]
    fn what_figures_share_is_run_once() {
        // Two workloads under two schemes and none.
        assert_eq!(plan(false, &["6"]).runs.len(), 6);
        // What is computed of it needs the same.
        assert_eq!(plan(false, &["9"]).runs.len(), 6);
        // The second point is another machine: two more workloads under one scheme and none.
        assert_eq!(plan(false, &["6", "7"]).runs.len(), 10);
        // Twice as long, under one scheme and none; once as long is there already.
        let all = plan(false, &[]);
        assert_eq!(all.runs.len(), 12);
        assert_eq!(all.instructions(), in_detail(10 * 300 + 2 * 500));
        // One workload, and no stability.
        let quick = plan(true, &[]);
        assert_eq!((quick.runs.len(), quick.instructions()), (5, in_detail(5 * 30)));
        assert_eq!(quick.workloads(), ["gzip"]);
    }

    fn in_detail(in_detail: u64) -> Instructions {
        Instructions { in_detail, warming: 0 }
    }

    /// Three windows of 20,000 with 10,000 in front of each, of 50 million in all.
    #[test]
    fn between_windows_there_is_warming() {
        let window = "window = { warmup = 10_000_000, length = 40_000_000, windows = 3 }";
        let spec = SPEC.replace("window = { warmup = 100, length = 200 }", window);
        let spec = Spec::read("test", &spec).expect("it is right");
        let wanted = Wanted { quick: false, figures: vec!["6".to_owned()] };
        let plan = spec.plan(&wanted).expect("it can be planned");
        let all = Instructions { in_detail: 6 * 90_000, warming: 6 * 49_910_000 };
        assert_eq!(plan.instructions(), all);
        assert!(plan.runs.iter().all(|run| run.config.number("run.sample_windows") == 3));
    }

    #[test]
    fn a_run_is_compared_with_one_of_the_same_length() {
        let plan = plan(false, &["stability"]);
        for cell in plan.figures.values().flat_map(|figure| &figure.cells) {
            let baseline = cell.baseline.expect("an overhead is compared");
            let length = |run: usize| plan.runs[run].config.number("run.length_instructions");
            assert_eq!(length(cell.run), length(baseline));
            assert_eq!(plan.runs[baseline].config.text("run.scheme"), "none");
            assert_eq!(plan.runs[cell.run].config.text("run.scheme"), "aise+bmt");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |from: &str, to: &str| {
            let spec = Spec::read("test", &SPEC.replace(from, to));
            let plan = spec.and_then(|spec| spec.plan(&Wanted::default()).map(|_| ()));
            format!("{:#}", plan.expect_err("it is wrong"))
        };
        assert!(refused("l2.size_bytes=2M", "l2.size_byte=2M").contains("l2.size_byte"));
        assert!(refused("value = \"overhead\"", "value = \"overheat\"").contains("overheat"));
        assert!(refused("id = \"7\"", "id = \"6\"").contains("twice"));
        assert!(refused("workloads = [\"gzip\"]", "workloads = [\"zip\"]").contains("zip"));
    }
}
