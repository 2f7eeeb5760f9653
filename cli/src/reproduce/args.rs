//! Flags of `casemate reproduce`.

use std::path::{Path, PathBuf};

use casemate_reproduce::papers::{MEASURED, PAPERS};
use clap::Args;

use crate::output::Json;

/// `casemate reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    // Help: `papers()`.
    #[arg(value_name = "PAPER|all", help = papers())]
    pub paper: String,
    /// Few workloads and short windows: minutes instead of an hour, and numbers that say less
    #[arg(long)]
    pub quick: bool,
    /// Only these figures or tables
    #[arg(long, value_name = "ID")]
    pub figure: Vec<String>,
    /// Only draw the figures again whose tables are in DIR, without simulating; judge the
    /// measurements in DIR again
    #[arg(long, conflicts_with_all = ["quick", "jobs"])]
    pub redraw: bool,
    /// Runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: Option<u64>,
    /// Where PAPER/results and the report are written [default: target/reproduce/full, or quick]
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where traces lie, and are recorded to if they are missing [default: target/workloads]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Where runs that were done are found again [default: target/reproduce/runs]
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

impl ReproduceArgs {
    /// Where traces lie.
    pub fn traces(&self) -> &Path {
        self.traces.as_deref().unwrap_or(Path::new("target/workloads"))
    }

    /// Where runs that were done are found again.
    pub fn runs(&self) -> &Path {
        self.runs.as_deref().unwrap_or(Path::new("target/reproduce/runs"))
    }

    /// Of the flags that were given, one that is about simulations.
    pub fn of_simulations(&self) -> Option<&'static str> {
        let given = [
            (self.jobs.is_some(), "--jobs"),
            (self.traces.is_some(), "--traces"),
            (self.runs.is_some(), "--runs"),
        ];
        given.into_iter().find_map(|(is_given, flag)| is_given.then_some(flag))
    }
}

fn papers() -> String {
    let names: Vec<&str> = PAPERS.iter().map(|paper| paper.slug).collect();
    let measured: Vec<&str> = MEASURED.iter().map(|paper| paper.slug).collect();
    format!(
        "{} (the last: what no paper could draw), or all of these; {}, which is not among all: \
         measured on this machine, in half an hour, as root",
        names.join(", "),
        measured.join(", ")
    )
}
