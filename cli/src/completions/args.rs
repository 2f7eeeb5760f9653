//! Flags of `casemate completions`.

use clap::Args;
use clap_complete::Shell;

/// `casemate completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}
