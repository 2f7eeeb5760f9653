//! `figures.toml` of a paper that is measured: benchmarks, and figures of them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::claims::Claims;
use crate::data::Chart;

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// How this project cites the paper.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its machine and ours, in sentences.
    pub machine: String,
    /// How often everything is run.
    pub rounds: u32,
    /// The same with `--quick`.
    pub quick_rounds: u32,
    /// What is run.
    #[serde(rename = "benchmark")]
    pub benchmarks: Vec<Benchmark>,
    /// Figures and tables, in the paper's order.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// Something that is run. Systems, modes and programs are those of `casemate bench`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Benchmark {
    /// The paper's microbenchmark. Its places are numbers of pages, or Clears if there are several.
    Memeater {
        /// Its name.
        id: String,
        /// In which order it reads.
        mode: String,
        /// The Clears.
        clears: Vec<String>,
        /// Memory for ciphertext; no limit if there is none.
        crypt: Option<String>,
        /// How many pages.
        pages: Vec<u64>,
        /// The same with `--quick`.
        quick_pages: Vec<u64>,
        /// Under what.
        systems: Vec<String>,
    },
    /// A page sealed and opened by the keeper's functions.
    Cryptography {
        /// Its name.
        id: String,
    },
    /// Whole programs with a part of their memory. Its places are the programs.
    Programs {
        /// Its name.
        id: String,
        /// Their memory is divided by this.
        part: u64,
        /// Which.
        programs: Vec<String>,
        /// The same with `--quick`.
        quick_programs: Vec<String>,
        /// Under what.
        systems: Vec<String>,
    },
}

/// The system of a benchmark that has one only.
pub const OWN: &str = "casemate";
/// The quantity of [`Benchmark::Cryptography`], in microseconds.
pub const PAGE: &str = "page";
/// Its places: a page goes out, comes in, and both.
pub const PAGE_STEPS: [&str; 3] = ["seal", "open", "seal and open"];

impl Benchmark {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Benchmark::Memeater { id, .. }
            | Benchmark::Cryptography { id }
            | Benchmark::Programs { id, .. } => id,
        }
    }

    /// Where it is measured, in the order of its figures.
    #[must_use]
    pub fn places(&self) -> Vec<String> {
        match self {
            Benchmark::Memeater { clears, .. } if clears.len() > 1 => clears.clone(),
            Benchmark::Memeater { pages, .. } => pages.iter().map(u64::to_string).collect(),
            Benchmark::Cryptography { .. } => PAGE_STEPS.map(str::to_owned).to_vec(),
            Benchmark::Programs { programs, .. } => programs.clone(),
        }
    }

    fn systems(&self) -> Vec<&str> {
        match self {
            Benchmark::Memeater { systems, .. } | Benchmark::Programs { systems, .. } => {
                systems.iter().map(String::as_str).collect()
            }
            Benchmark::Cryptography { .. } => vec![OWN],
        }
    }

    fn check(&self) -> Result<()> {
        if let Benchmark::Memeater { id, clears, pages, quick_pages, .. } = self {
            ensure!(
                clears.len() == 1 || pages.len() == 1,
                "benchmark {id} has several Clears and several numbers of pages; its places are \
                 one or the other"
            );
            ensure!(
                quick_pages.iter().all(|quick| pages.contains(quick)),
                "benchmark {id}: not all of quick_pages are among its pages"
            );
        }
        Ok(())
    }
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
    /// Of which benchmark.
    pub benchmark: String,
    /// The sum of which of its quantities.
    pub quantity: Vec<String>,
    /// Divided, round by round, by the same under this system.
    pub over: Option<String>,
    /// Less, round by round, the same under this system.
    pub minus: Option<String>,
    /// Whether it is shown how much more than 1 it is, in per cent.
    #[serde(default)]
    pub percent: bool,
    /// What is on the upright axis.
    pub upright: String,
    /// What is on the level axis.
    pub level: String,
    /// What is compared.
    pub series: Vec<Series>,
    /// The paper's numbers, by series and place.
    #[serde(default)]
    pub paper: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A system with the name that the figure gives it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// The system.
    pub system: String,
}

impl Spec {
    /// Reads it.
    ///
    /// # Errors
    /// It is malformed, or names something that is not there.
    pub fn read(name: &str, text: &str) -> Result<Self> {
        let spec: Spec = toml::from_str(text).with_context(|| name.to_owned())?;
        spec.check().with_context(|| name.to_owned())?;
        Ok(spec)
    }

    /// The benchmark of a figure.
    #[must_use]
    pub fn benchmark_of(&self, figure: &Figure) -> Option<&Benchmark> {
        self.benchmarks.iter().find(|benchmark| benchmark.id() == figure.benchmark)
    }

    /// The figures of these names; all if there are none.
    pub fn wanted<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = &'a Figure> {
        self.figures.iter().filter(|figure| names.is_empty() || names.contains(&figure.id))
    }

    fn check(&self) -> Result<()> {
        self.benchmarks.iter().try_for_each(Benchmark::check)?;
        for (at, figure) in self.figures.iter().enumerate() {
            let id = &figure.id;
            ensure!(self.figures[..at].iter().all(|other| other.id != *id), "figure {id}: twice");
            let Some(benchmark) = self.benchmark_of(figure) else {
                bail!("figure {id}: there is no benchmark {}", figure.benchmark);
            };
            let systems = benchmark.systems();
            let beside = figure.over.iter().chain(&figure.minus);
            for system in figure.series.iter().map(|series| &series.system).chain(beside) {
                ensure!(
                    systems.contains(&&**system),
                    "figure {id}: benchmark {} is not run under {system}",
                    figure.benchmark
                );
            }
            ensure!(!figure.percent || figure.over.is_some(), "figure {id}: per cent of what?");
            let places = benchmark.places();
            for (series, numbers) in &figure.paper {
                let is_known = figure.series.iter().any(|known| known.name == *series)
                    && numbers.keys().all(|place| places.contains(place));
                ensure!(is_known, "figure {id}: the paper's numbers are of no cell of {series}");
            }
        }
        Ok(())
    }

    /// Refuses claims about cells that no figure has.
    ///
    /// # Errors
    /// The first of them.
    pub fn check_claims(&self, claims: &Claims) -> Result<()> {
        const OF_ALL: [&str; 4] = ["mean", "max", "min", "same"];
        for (who, cell) in claims.cells() {
            let Some(figure) = self.figures.iter().find(|figure| figure.id == cell.figure) else {
                bail!("{who}: there is no figure {}", cell.figure);
            };
            let known = figure.series.iter().any(|series| series.name == cell.series);
            ensure!(known, "{who}: figure {} has no {}", figure.id, cell.series);
            let places = self.benchmark_of(figure).map(Benchmark::places).unwrap_or_default();
            let at = Some(&cell.at).filter(|at| !OF_ALL.contains(&&***at));
            for place in cell.among.iter().chain(at) {
                ensure!(places.contains(place), "{who}: figure {} has no {place}", figure.id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"
        name = "Test"
        title = ""
        machine = ""
        rounds = 3
        quick_rounds = 1
        [[benchmark]]
        kind = "memeater"
        id = "m"
        mode = "stripe"
        clears = ["4M"]
        pages = [1, 2]
        quick_pages = [1]
        systems = ["plain", "casemate"]
        [[figure]]
        id = "3"
        title = ""
        chart = "lines"
        benchmark = "m"
        quantity = ["read"]
        over = "plain"
        percent = true
        upright = ""
        level = ""
        series = [{ name = "ours", system = "casemate" }]
        [figure.paper]
        ours = { 2 = 0.5 }
    "#;
    const CLAIM: &str = "[[claim]]\nid = 'c'\nplace = ''\nwhat = ''\nunit = 'x'\nwhy = 'y'\n\
                         holds = [0, 1]\nmeasure = { figure = '3', series = 'ours', at = '2' }";

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |from: &str, to: &str| {
            let spec = Spec::read("test", &SPEC.replace(from, to));
            format!("{:#}", spec.expect_err("it is wrong"))
        };
        assert!(refused("over = \"plain\"", "over = \"zram\"").contains("not run under zram"));
        assert!(refused("over = \"plain\"", "").contains("per cent of what"));
        assert!(refused("benchmark = \"m\"", "benchmark = \"n\"").contains("no benchmark n"));
        assert!(refused("{ 2 = 0.5 }", "{ 3 = 0.5 }").contains("no cell of ours"));
        assert!(refused("[\"4M\"]", "[\"4M\", \"8M\"]").contains("one or the other"));
        assert!(refused("quick_pages = [1]", "quick_pages = [3]").contains("quick_pages"));
    }

    #[test]
    fn claims_are_of_cells_that_there_are() {
        let spec = Spec::read("test", SPEC).expect("it is right");
        let checked = |from: &str, to: &str| {
            let claims = Claims::read("test", &CLAIM.replace(from, to)).expect("it is right");
            spec.check_claims(&claims).map_err(|error| error.to_string())
        };
        assert_eq!(checked("", ""), Ok(()));
        assert_eq!(checked("at = '2'", "at = 'mean', among = ['1']"), Ok(()));
        let refused = |from, to| checked(from, to).expect_err("it is wrong");
        assert!(refused("at = '2'", "at = '4'").contains("figure 3 has no 4"));
        assert!(refused("at = '2'", "at = 'max', among = ['4']").contains("figure 3 has no 4"));
        assert!(refused("'ours'", "'theirs'").contains("has no theirs"));
        assert!(refused("figure = '3'", "figure = '9'").contains("no figure 9"));
    }
}
