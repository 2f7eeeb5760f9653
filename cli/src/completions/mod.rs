//! `casemate completions`: what completes commands and flags in a shell.

pub mod args;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::Cli;
use crate::output;
use args::CompletionsArgs;

/// Prints a script.
pub fn completions(args: &CompletionsArgs) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "casemate", &mut script);
    output::stdout(&String::from_utf8_lossy(&script)).map(|()| 0)
}
