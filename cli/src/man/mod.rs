//! `casemate man`: manual pages, one for each command, with examples.

pub mod args;
mod examples;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;
use args::ManArgs;

/// Prints a page, or writes all of them into a folder.
pub fn man(args: &ManArgs) -> Result<u8> {
    let mut root = Cli::command();
    root.build();
    if let Some(folder) = &args.out {
        crate::out::not_standard(
            folder,
            "pages are files of a folder; name a command to print its page",
        )?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        return write(&root, "casemate", folder).map(|()| 0);
    }
    let mut command = &root;
    let mut path = Vec::new();
    for word in &args.command {
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
        path.push(word.as_str());
        command = sub;
    }
    let page = page(command, &path)?;
    output::stdout(&String::from_utf8_lossy(&page)).map(|()| 0)
}

/// Commands that people are told of.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// `casemate.1`, `casemate-run.1`, `casemate-trace-record.1` ...
fn write(command: &clap::Command, name: &str, folder: &Path) -> Result<()> {
    let path: Vec<&str> = name.split(' ').skip(1).collect();
    let file = folder.join(format!("{}.1", name.replace(' ', "-")));
    output::replace(&file, &page(command, &path)?)
        .with_context(|| format!("{}: the page cannot be written", file.display()))?;
    shown(command).try_for_each(|sub| write(sub, &format!("{name} {}", sub.get_name()), folder))
}

/// A page: name, synopsis, description, options, subcommands, examples, exit codes.
fn page(command: &clap::Command, path: &[&str]) -> Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if shown(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend_from_slice(examples::section(path).as_bytes());
    page.extend_from_slice(last_section(command).as_bytes());
    Ok(page)
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

    fn all() -> Vec<Vec<String>> {
        let mut root = Cli::command();
        root.build();
        let mut all = Vec::new();
        commands(&root, Vec::new(), &mut all);
        all
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let paths = all();
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
    fn every_command_and_every_flag_says_what_it_is() {
        let mut root = Cli::command();
        root.build();
        for path in all() {
            let found = path.iter().try_fold(&root, |command, word| command.find_subcommand(word));
            let command = found.expect("it was found before");
            assert!(command.get_about().is_some(), "{path:?}");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path:?}: {argument}");
            }
        }
    }
}
