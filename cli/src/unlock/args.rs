//! Flags of `casemate unlock`.

use clap::Args;

use crate::door::runs::Which;
use crate::exit_codes;
use crate::output::Json;
use crate::passphrase::Source;

/// `casemate unlock`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::UNLOCK_HELP)]
pub struct UnlockArgs {
    /// What is unlocked.
    #[command(flatten)]
    pub which: Which,
    /// The passphrase.
    #[command(flatten)]
    pub passphrase: Source,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
