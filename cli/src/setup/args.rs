//! Flags of `casemate setup`.

use std::path::PathBuf;

use clap::Args;

use crate::output::Json;

/// `casemate setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Take everything back that setup did
    #[arg(long)]
    pub undo: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// User to add to the group casemate [default: who called sudo]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Work on the system installed in DIR instead of the running one (for images)
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
