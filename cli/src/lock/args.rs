//! Flags of `casemate lock`.

use std::path::PathBuf;

use clap::Args;

use crate::door::runs::Which;
use crate::exit_codes;
use crate::out::Out;
use crate::output::Json;
use crate::passphrase::Source;

/// `casemate lock`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::LOCK_HELP)]
pub struct LockArgs {
    /// What is locked.
    #[command(flatten)]
    pub which: Which,
    /// Lock nothing, and create FILE, under which --key locks; - is standard output
    #[arg(long, value_name = "FILE", group = "which")]
    pub make_key: Option<Out>,
    /// Lock under this file of --make-key, without a passphrase, as before the machine sleeps
    #[arg(long, value_name = "FILE", conflicts_with_all = ["make_key", "file"])]
    pub key: Option<PathBuf>,
    /// The passphrase.
    #[command(flatten)]
    pub passphrase: Source,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
