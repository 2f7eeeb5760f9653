//! Flags of `casemate man`.

use std::path::PathBuf;

use clap::Args;

use crate::output::Json;

/// `casemate man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command whose page is printed: run, or trace record [default: the page of all commands]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub command: Vec<String>,
    /// Folder for the pages of all commands, instead of printing one
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
