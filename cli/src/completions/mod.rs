//! `casemate completions`: what completes commands and flags in a shell.

pub mod args;

use anyhow::Result;
use clap::CommandFactory;
use serde::Serialize;

use crate::args::Cli;
use crate::out::Out;
use crate::output::{self, SCHEMA};
use args::CompletionsArgs;

#[derive(Serialize)]
struct Report {
    schema: u32,
    shell: String,
    file: String,
    bytes: usize,
}

/// Prints a script, or writes it into a file.
pub fn completions(args: &CompletionsArgs) -> Result<u8> {
    args.out.apart_from(&args.json)?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "casemate", &mut script);
    match &args.out {
        Out::Standard => output::stdout(&String::from_utf8_lossy(&script))?,
        file => file.write(&script)?,
    }
    if let Some(to) = &args.json.to {
        let (shell, file) = (args.shell.to_string(), args.out.to_string());
        output::json(to, &Report { schema: SCHEMA, shell, file, bytes: script.len() })?;
    }
    Ok(0)
}
