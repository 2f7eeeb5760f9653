//! `casemate man`: manual pages, one for each command, with examples.

pub mod args;
mod examples;
pub mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;
use serde::Serialize;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use args::ManArgs;

#[derive(Serialize)]
struct Report {
    schema: u32,
    pages: Vec<Named>,
}

/// A page, as a report tells of it.
#[derive(Serialize)]
struct Named {
    /// What man(1) is asked for: `casemate-trace-record`.
    name: String,
    /// The command's words, without `casemate`.
    command: String,
    /// Where it was written.
    file: Option<PathBuf>,
}

/// Prints a page, or writes all of them into a folder. A report names pages instead of printing
/// one.
pub fn man(args: &ManArgs) -> Result<u8> {
    let mut root = Cli::command();
    root.build();
    if let Some(folder) = &args.out {
        crate::out::not_standard(
            folder,
            "pages are files of a folder; name a command to print its page",
        )?;
        if folder.exists() && !folder.is_dir() {
            let sentence = format!("{}: this is no folder; name another", folder.display());
            return Err(Failure::no(sentence).into());
        }
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    if args.out.is_some() || (args.json.to.is_some() && args.command.is_empty()) {
        let mut pages = Vec::new();
        all(&root, &mut Vec::new(), args.out.as_deref(), &mut pages)?;
        return report(args, pages);
    }
    let (mut command, mut path) = (&root, Vec::new());
    let words = words(&root, &args.command)?;
    for word in words.iter().map(String::as_str) {
        let known = |command: &'_ clap::Command| -> Vec<String> {
            shown(command).map(|sub| sub.get_name().to_owned()).collect()
        };
        let Some(sub) = shown(command).find(|sub| sub.get_name() == word) else {
            let known = known(command);
            let meant = casemate_schemes::nearest::meant(word, known.iter().map(String::as_str));
            let sentence =
                format!("there is no command {word}{meant}; there are {}", known.join(", "));
            return Err(Failure::own(sentence).into());
        };
        path.push(word);
        command = sub;
    }
    if args.json.to.is_some() {
        return report(args, vec![Named::of(&path, None)]);
    }
    let page = page(command, &path)?;
    output::stdout(&String::from_utf8_lossy(&page)).map(|()| 0)
}

/// The words of the command that is asked for: `trace record` in two arguments or one, or the name
/// of its page, `casemate-trace-record` or `trace-record`.
fn words(root: &clap::Command, arguments: &[String]) -> Result<Vec<String>> {
    if let [name] = arguments {
        let mut pages = Vec::new();
        all(root, &mut Vec::new(), None, &mut pages)?;
        let is_it = |page: &&Named| page.name == *name || page.name == format!("casemate-{name}");
        if let Some(page) = pages.iter().find(is_it) {
            return Ok(page.command.split_whitespace().map(str::to_owned).collect());
        }
    }
    Ok(arguments.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect())
}

/// Commands that people are told of.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

impl Named {
    /// The page of the command of these words, in this folder or none.
    fn of(path: &[&str], folder: Option<&Path>) -> Named {
        let name = [&["casemate"], path].concat().join("-");
        let file = folder.map(|folder| folder.join(format!("{name}.1")));
        Named { name, command: path.join(" "), file }
    }
}

fn report(args: &ManArgs, pages: Vec<Named>) -> Result<u8> {
    if let Some(to) = &args.json.to {
        output::json(to, &Report { schema: SCHEMA, pages })?;
    }
    Ok(0)
}

/// The pages of a command and of all below it, written into a folder if there is one:
/// `casemate.1`, `casemate-run.1`, `casemate-trace-record.1` ...
fn all<'a>(
    command: &'a clap::Command,
    path: &mut Vec<&'a str>,
    folder: Option<&Path>,
    pages: &mut Vec<Named>,
) -> Result<()> {
    let named = Named::of(path, folder);
    if let Some(file) = &named.file {
        output::replace(file, &page(command, path)?)
            .with_context(|| format!("{}: the page cannot be written", file.display()))?;
    }
    pages.push(named);
    for sub in shown(command) {
        path.push(sub.get_name());
        all(sub, path, folder, pages)?;
        path.pop();
    }
    Ok(())
}

/// A page: name, synopsis, description, options, subcommands, examples, exit codes.
fn page(command: &clap::Command, path: &[&str]) -> Result<Vec<u8>> {
    // A subcommand has no version of its own, and the page's foot would say none.
    let source = concat!("casemate ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend_from_slice(synopsis(command).as_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if shown(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend_from_slice(examples::section(path).as_bytes());
    page.extend_from_slice(last_section(command).as_bytes());
    Ok(page)
}

/// How a command is written, as its help has it: all flags in one word, each argument by its name.
/// (clap's own section has a flag beside the other and says of none that it takes a value.)
fn synopsis(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().replace('\\', "\\\\").replace('-', "\\-");
    let name = command.get_bin_name().unwrap_or("casemate").replace('-', "\\-");
    let rest = usage.strip_prefix(&name).unwrap_or(&usage);
    format!(".SH SYNOPSIS\n\\fB{name}\\fR{rest}\n")
}

/// What a command's help ends with: exit codes, or what else there is to know. Its lines stay as
/// they are.
fn last_section(command: &clap::Command) -> String {
    let Some(text) = command.get_after_help() else { return String::new() };
    let text = text.to_string();
    let heading = if text.starts_with("Exit codes") { "EXIT STATUS" } else { "NOTES" };
    let mut section = format!(".SH \"{heading}\"\n.nf\n");
    for line in text.lines() {
        // A dot or an apostrophe at the start would be a request.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let line = line.replace('\\', "\\\\").replace('-', "\\-");
        section.push_str(&format!("{guard}{line}\n"));
    }
    section + ".fi\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn commands(command: &clap::Command, path: Vec<String>, all: &mut Vec<Vec<String>>) {
        for sub in shown(command) {
            let longer = [path.clone(), vec![sub.get_name().to_owned()]].concat();
            commands(sub, longer, all);
        }
        all.push(path);
    }

    fn paths() -> Vec<Vec<String>> {
        let mut root = Cli::command();
        root.build();
        let mut all = Vec::new();
        commands(&root, Vec::new(), &mut all);
        all
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let paths = paths();
        assert!(paths.len() > 20, "{paths:?}");
        for path in &paths {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let examples = examples::of(&path);
            assert!(!examples.is_empty(), "casemate {} has no example", path.join(" "));
            for (line, _) in examples {
                let words: Vec<&str> = line.split_whitespace().take_while(|w| *w != "|").collect();
                let expected = [&["casemate"], &path[..]].concat();
                assert!(words.starts_with(&expected), "{line}");
                if let Err(refusal) = Cli::try_parse_from(&words) {
                    panic!("{line}: {refusal}");
                }
            }
        }
        for (path, _) in examples::ALL {
            let words: Vec<String> = path.split_whitespace().map(str::to_owned).collect();
            assert!(paths.contains(&words), "{path} is no command");
        }
    }

    #[test]
    fn a_synopsis_names_every_argument() {
        let mut root = Cli::command();
        root.build();
        for path in paths() {
            let found = path.iter().try_fold(&root, |command, word| command.find_subcommand(word));
            let command = found.expect("it was found before");
            let text = synopsis(command).replace("\\-", "-");
            let name = [&["casemate".to_owned()], &path[..]].concat().join(" ");
            assert!(text.starts_with(&format!(".SH SYNOPSIS\n\\fB{name}\\fR ")), "{text}");
            for argument in command.get_positionals() {
                for value in argument.get_value_names().expect("it is named") {
                    assert!(text.contains(value.as_str()), "{value}: {text}");
                }
            }
            assert_eq!(text.lines().count(), 2, "{text}");
        }
    }

    #[test]
    fn every_command_and_every_flag_says_what_it_is() {
        let mut root = Cli::command();
        root.build();
        for path in paths() {
            let found = path.iter().try_fold(&root, |command, word| command.find_subcommand(word));
            let command = found.expect("it was found before");
            assert!(command.get_about().is_some(), "{path:?}");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path:?}: {argument}");
            }
        }
    }
}
