//! Flags of `casemate plot`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::out::Out;
use crate::output::Json;

/// What each colour stands for if nothing is said.
pub const SERIES: &str = "scheme";

/// `casemate plot`.
#[derive(Debug, Args)]
pub struct PlotArgs {
    /// Folders that `casemate sim -o` wrote, result.json files, or CSV files whose first line names
    /// the columns (then --value, --by and --series name some)
    #[arg(value_name = "RESULTS", required = true)]
    pub results: Vec<PathBuf>,
    /// The drawing: FILE.svg, FILE.png, FILE.pdf, or - for SVG on standard output
    #[arg(long, short, alias = "output", value_name = "FILE", default_value = "plot.svg")]
    pub out: Out,
    /// How to draw
    #[arg(long, value_enum, default_value_t = Kind::Bars)]
    pub kind: Kind,
    /// What is on the upright axis: overhead, or the name of a column of result.csv [default:
    /// overhead, but ipc for lines of the samples of --every]
    #[arg(long, value_name = "KEY")]
    pub value: Option<String>,
    /// What is on the level axis [default: trace for bars, the samples of --every for lines]
    #[arg(long, value_name = "KEY")]
    pub by: Option<String>,
    /// What each colour stands for
    #[arg(long, value_name = "KEY", default_value = SERIES)]
    pub series: String,
    /// What stands above it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// The kinds of drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A group of bars for each place
    Bars,
    /// A line for each series
    Lines,
}
