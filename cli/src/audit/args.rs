//! Flags of `casemate audit`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::marker::Marker;
use crate::exit_codes;
use crate::output::Json;
use crate::pid;

/// `casemate audit`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::AUDIT_HELP)]
#[command(group(ArgGroup::new("what").required(true).args(["pid", "image"])))]
pub struct AuditArgs {
    /// Process id of `casemate run`, or of a process that it protects
    #[arg(value_name = "PID", value_parser = pid::parse)]
    pub pid: Option<u32>,
    /// Search an image of a machine's memory, or any other file, instead of a run
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub image: Option<PathBuf>,
    /// Bytes to look for, 4 to 4096: text, or hex:… (may be given several times)
    #[arg(long = "marker", value_name = "BYTES")]
    pub markers: Vec<Marker>,
    /// Watch also how much is readable on average and how long pages stay so, until Ctrl-C or the
    /// run's end
    #[arg(long)]
    pub watch: bool,
    /// Watch for so many seconds
    #[arg(long, value_name = "N", requires = "watch", conflicts_with = "image", value_parser = clap::value_parser!(u64).range(1..=31_622_400))]
    pub seconds: Option<u64>,
    #[command(flatten)]
    pub json: Json,
}
