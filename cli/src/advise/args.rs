//! Flags of `casemate advise`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::count::count;
use crate::out::Out;
use crate::output::Json;
use crate::trace::args::From;

/// `casemate advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// A trace of the program instead of a run of it
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub trace: Option<PathBuf>,
    /// Format of another tool's trace (gz and xz are unpacked) [default: by its content]
    #[arg(long, value_name = "FORMAT", value_enum, requires = "trace")]
    pub from: Option<From>,
    /// End after so many instructions, when the program is killed; 0 is all of them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub length: u64,
    /// Instructions that the program executes in a nanosecond without Casemate: what it is slower
    /// by is a share of that time
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = rate)]
    pub instructions_per_ns: f64,
    /// Nanoseconds of a page that comes in again: `casemate bench pager` measures them
    #[arg(long, value_name = "N", default_value_t = 18_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub page_in_ns: u32,
    /// Draw page-ins over the Clear's size into a file (.svg, .png or .pdf); - is standard output,
    /// as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<Out>,
    /// The report.
    #[command(flatten)]
    pub json: Json,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse().ok().filter(|rate| (0.001..=1000.0).contains(rate));
    rate.ok_or_else(|| format!("{text:?} is no number from 0.001 to 1000"))
}
