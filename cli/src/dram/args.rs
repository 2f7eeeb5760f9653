//! Flags of `casemate dram`.

use std::path::PathBuf;

use casemate_schemes::nearest::meant;
use casemate_sim::dram::preset::{self, Preset};
use casemate_sim::dram::streams::{self, Named};
use clap::Args;

use crate::output::Json;

/// `casemate dram`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct DramArgs {
    /// The requests: a file of lines `0xADDRESS READ|WRITE CLOCK`, compressed (gz, xz) or not; -
    /// is standard input
    #[arg(value_name = "STREAM", required_unless_present = "generate")]
    pub stream: Option<PathBuf>,
    /// A generated stream instead of a file
    #[arg(long, value_name = "NAME", value_parser = stream, conflicts_with = "stream")]
    pub generate: Option<&'static Named>,
    /// Requests of the generated stream
    #[arg(long, value_name = "N", default_value_t = 50_000, requires = "generate", conflicts_with = "stream", value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    pub count: u32,
    /// The memory
    #[arg(long, value_name = "NAME", default_value = "ddr4-2400", value_parser = memory)]
    pub preset: &'static Preset,
    /// One parameter changed
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

fn stream(name: &str) -> Result<&'static Named, String> {
    let known = || streams::ALL.iter().map(|stream| stream.name);
    Named::find(name).ok_or_else(|| unknown("stream", name, known().collect()))
}

fn memory(name: &str) -> Result<&'static Preset, String> {
    let known = || preset::ALL.iter().map(|preset| preset.name);
    Preset::find(name).ok_or_else(|| unknown("memory", name, known().collect()))
}

fn unknown(what: &str, name: &str, known: Vec<&str>) -> String {
    let meant = meant(name, known.iter().copied());
    format!("no {what} has that name{meant}; there are {}", known.join(", "))
}

/// The names that the flags take.
fn after_help() -> String {
    let mut text = "Memories:\n".to_owned();
    for preset in &preset::ALL {
        text += &format!("  {:20} {}\n", preset.name, preset.meaning);
    }
    text += "\nStreams:\n";
    for stream in &streams::ALL {
        text += &format!("  {:20} {}\n", stream.name, stream.meaning);
    }
    text += &format!("\nKeys of --set, in clocks or numbers:\n  {}\n", preset::KEYS.join(" "));
    text += "\nExamples:\n  casemate dram --generate random-light --preset ddr3-1600\n  \
             casemate dram requests.txt --set write_high=28 --set write_low=20 --json\n";
    text
}
