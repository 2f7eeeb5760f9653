//! Flags of `casemate doctor`.

use clap::Args;

use crate::output::Json;

/// `casemate doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
