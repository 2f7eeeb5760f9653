//! Flags of `casemate sim`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use casemate_sim::config::presets::PRESETS;
use clap::Args;

use crate::count::count;
use crate::output::Json;
use crate::trace::args::From;

/// `casemate sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Machine to begin with (--list names all)
    #[arg(long, value_name = "NAME", default_value = PRESETS[0].name)]
    pub preset: String,
    /// TOML file over the preset; the config.toml beside a result is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Value over preset and file; with several values, a run for each (every combination of all
    /// --set)
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    pub set: Vec<String>,
    /// Protection scheme: a name, ENCRYPTION/INTEGRITY, or all [default: the configuration's]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Trace to run
    #[arg(long, value_name = "FILE")]
    pub trace: Vec<PathBuf>,
    /// Traces of programs to run at once, each on a core of its own and again and again until all
    /// are measured, and each alone; one may be there several times
    #[arg(
        long,
        value_name = "FILE,FILE...",
        value_delimiter = ',',
        conflicts_with_all = ["trace", "command", "sampled", "error", "every", "list"]
    )]
    pub mix: Vec<PathBuf>,
    /// Format of another tool's traces (gz and xz are unpacked) [default: by their content]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub from: Option<From>,
    /// Leave out so many instructions at the beginning (run.skip_instructions)
    #[arg(long, value_name = "N", value_parser = count)]
    pub skip: Option<u64>,
    /// Simulate so many instructions then, counted apart (run.warmup_instructions)
    #[arg(long, value_name = "N", value_parser = count)]
    pub warmup: Option<u64>,
    /// Simulate at most so many instructions then; 0 is all of them (run.length_instructions)
    #[arg(long, value_name = "N", value_parser = count)]
    pub length: Option<u64>,
    /// Take a sample each so many instructions (run.every_instructions)
    #[arg(long, value_name = "N", value_parser = count)]
    pub every: Option<u64>,
    /// Measure so many windows, spread evenly, and only warm caches and metadata between them
    /// (run.sample_windows); auto: as many as --error wants
    #[arg(long, value_name = "N|auto", group = "sampled", conflicts_with = "every")]
    pub sample: Option<Windows>,
    /// Measure the windows that SimPoint chose, by their weights: its .simpoints file
    /// (run.sample_points)
    #[arg(
        long,
        value_name = "FILE",
        group = "sampled",
        conflicts_with = "every",
        requires = "weights"
    )]
    pub simpoints: Option<PathBuf>,
    /// With --simpoints: its .weights file
    #[arg(long, value_name = "FILE", requires = "simpoints")]
    pub weights: Option<PathBuf>,
    /// With --sample auto: how far off cycles for an instruction may be, in each direction: half of
    /// the 95 % interval, and what no window met [default: 2%]
    #[arg(long, value_name = "PERCENT", requires = "sample", value_parser = percent)]
    pub error: Option<f64>,
    /// Instructions of a window (run.sample_window_instructions); of SimPoint its interval's
    #[arg(long, value_name = "N", requires = "sampled", value_parser = count)]
    pub window: Option<u64>,
    /// Seed of everything random: policies, and the place of the first window (run.seed)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Folder for results; what it has already is not computed again (--json is for standard
    /// output)
    #[arg(long, short, alias = "output", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Compute again what the folder has already
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Runs at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: Option<u64>,
    /// Explain presets, schemes and keys, and do nothing
    #[arg(long, conflicts_with_all = ["trace", "command"])]
    pub list: bool,
    /// The report.
    #[command(flatten)]
    pub json: Json,
    /// Program to run and simulate at the same time, instead of a trace
    #[arg(value_name = "CMD", last = true, conflicts_with_all = ["trace", "from"])]
    pub command: Vec<OsString>,
}

/// How many windows are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// So many.
    Number(u64),
    /// As many as it takes.
    Auto,
}

impl FromStr for Windows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) if number > 0 => Ok(Windows::Number(number)),
            _ if text == "auto" => Ok(Windows::Auto),
            _ => Err("a number of windows from 1, or auto".to_owned()),
        }
    }
}

/// `2%`, `0.5 %` or `2`, as a share.
fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim_end().parse().ok();
    let share = number.map(|number| number / 100.0).filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "a percentage between 0 and 100, for example 2%".to_owned())
}
