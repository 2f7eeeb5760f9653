//! Flags of `casemate storage`.

use clap::Args;

use crate::output::Json;

/// `casemate storage`.
#[derive(Debug, Args)]
pub struct StorageArgs {
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
