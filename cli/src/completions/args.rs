//! Flags of `casemate completions`.

use clap::Args;
use clap_complete::Shell;

use crate::out::Out;
use crate::output::Json;

/// `casemate completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
    /// The script to write, replaced in one step; - is standard output
    #[arg(long, short, alias = "output", value_name = "FILE", default_value = "-")]
    pub out: Out,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
