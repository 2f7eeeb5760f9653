//! Flags of `casemate seeds`.

use clap::Args;

use crate::output::Json;

/// `casemate seeds`.
#[derive(Debug, Args)]
pub struct SeedsArgs {
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
