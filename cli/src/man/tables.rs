//! What documents say of each command: usage, arguments and flags, as `--help` has them
//! (`cargo xtask tables` writes them into `docs/commands.md`).

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use casemate_lab::tables::{Table, with_table};
use clap::{Arg, ArgAction, Args, Command, CommandFactory};

use super::shown;
use crate::args::Cli;
use crate::output;

/// Characters of a line of prose at most.
const LINE_COLUMNS: usize = 100;

/// `casemate command-tables`.
#[derive(Debug, Args)]
pub struct TablesArgs {
    /// The document
    #[arg(value_name = "FILE")]
    pub document: PathBuf,
}

/// Writes the commands anew between the markers of a document.
pub fn tables(args: &TablesArgs) -> Result<u8> {
    let path = &args.document;
    let document = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut root = Cli::command();
    root.build();
    let mut text = String::new();
    commands(&root, "casemate", &mut text);
    text.push('\n');
    let table = Table { name: "COMMANDS", text };
    let fresh = with_table(&document, &table)
        .with_context(|| format!("{} has no markers for COMMANDS", path.display()))?;
    output::replace(path, fresh.as_bytes()).with_context(|| path.display().to_string())?;
    output::stdout(&format!("wrote {}\n", path.display())).map(|()| 0)
}

/// A section for each command that has no commands of its own.
fn commands(command: &Command, name: &str, text: &mut String) {
    let mut deeper = shown(command).peekable();
    if deeper.peek().is_none() {
        section(command, name, text);
    }
    for sub in deeper {
        commands(sub, &format!("{name} {}", sub.get_name()), text);
    }
}

fn section(command: &Command, name: &str, text: &mut String) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = wrapped(&plain(&about), LINE_COLUMNS);
    *text += &format!("\n### {name}\n\n`{usage}`\n\n{about}.\n");
    let is_told = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    let (positional, flags): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(is_told).partition(|arg| arg.is_positional());
    if positional.is_empty() && flags.is_empty() {
        return;
    }
    *text += "\n| argument or flag | meaning |\n|---|---|\n";
    for arg in positional.into_iter().chain(flags) {
        let short = match arg.get_short() {
            Some(short) if arg.get_long().is_some() => format!("`-{short}`, "),
            _ => String::new(),
        };
        let name = arg.to_string().replace('|', "\\|");
        *text += &format!("| {short}`{name}` | {} |\n", meaning(arg));
    }
}

/// An argument's help, whether it takes several values, its default and the values that it can
/// have.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(|help| plain(&help.to_string())).unwrap_or_default();
    match (arg.get_value_delimiter(), arg.get_action()) {
        (Some(between), _) => text += &format!(" (several: with `{between}` between them)"),
        (None, ArgAction::Append) if !arg.is_positional() => text += " (can be repeated)",
        _ => {}
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        text += &format!(" [default: {}]", plain(&defaults.join(",")));
    }
    let values = arg.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if values.is_empty() || !arg.get_action().takes_values() {
        return text;
    }
    let told = values.iter().map(|value| match value.get_help() {
        Some(help) => format!("`{}`: {}", value.get_name(), plain(&help.to_string())),
        None => format!("`{}`", value.get_name()),
    });
    let between = if values.iter().any(|value| value.get_help().is_some()) { "; " } else { ", " };
    text + ". " + &told.collect::<Vec<_>>().join(between)
}

/// A text in lines that, with a full stop, have at most so many characters.
fn wrapped(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one line at least");
        if line.is_empty() || line.chars().count() + 1 + word.chars().count() < columns {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// A text in one line that means nothing else in a table of Markdown.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}
