//! `cargo xtask suites`: what others wrote to try kernels, allocators and checkers, plain and under
//! the keeper.

mod allocators;
mod checkers;
mod run;
mod stressors;

use crate::{cargo, packages};
use anyhow::{Context, Result, bail, ensure};
use run::{Ended, Outcome, Runner};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The Clear of the protected runs, unless a program needs more or something else is told.
const CLEAR: &str = "8M";

/// What of a program's output makes its verdict, beside its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Standard output, byte for byte.
    Output,
    /// The lines of both outputs that hold one of these words, without their numbers and addresses.
    Lines(&'static [&'static str]),
}

/// One program of a suite.
#[derive(Clone, Debug)]
pub struct Program {
    /// Unique in its suite.
    pub name: String,
    /// What is executed.
    pub words: Vec<String>,
    /// What is compared.
    pub compared: Compared,
    /// The least Clear that it can do with, if that is more than usual.
    pub clear: Option<&'static str>,
    /// Is it one of the few that a test has time for?
    pub is_short: bool,
    /// What it says under the keeper if it is refused something that `docs/limits.md` names: no
    /// other difference is let pass.
    pub refused: Option<&'static str>,
    /// Why it cannot be run here, if it cannot.
    pub missing: Option<String>,
}

/// Where suites find and make what they need.
pub struct Places {
    /// Sources in C.
    pub sources: PathBuf,
    /// Programs made of them, and whatever the programs write.
    pub work: PathBuf,
}

impl Places {
    /// Compiles one of the sources; says where the program is.
    pub fn compile(&self, source: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
        let program = self.work.join(name);
        let done = Command::new("gcc")
            .args(["-O1", "-g", "-pthread", "-o"])
            .arg(&program)
            .arg(self.sources.join(source))
            .args(flags)
            .output()
            .context("gcc does not start")?;
        ensure!(done.status.success(), "gcc: {}", String::from_utf8_lossy(&done.stderr));
        Ok(program)
    }
}

/// A suite by its name.
type Suite = (&'static str, fn(&Places) -> Result<Vec<Program>>);

const SUITES: &[Suite] = &[
    ("stress-ng", stressors::programs),
    ("allocators", allocators::programs),
    ("checkers", checkers::programs),
];

/// What the command line says.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    only: Vec<String>,
    clear: String,
    is_short: bool,
}

impl Wanted {
    /// None if it cannot be understood.
    pub fn parse(words: &[&str]) -> Option<Self> {
        let mut wanted = Wanted { only: Vec::new(), clear: CLEAR.to_owned(), is_short: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--only" => wanted.only.push((*words.next()?).to_owned()),
                "--clear" => wanted.clear = (*words.next()?).to_owned(),
                "--short" => wanted.is_short = true,
                _ => return None,
            }
        }
        Some(wanted)
    }

    fn takes(&self, suite: &str, program: &Program) -> bool {
        let named = |name: &String| *name == suite || *name == program.name;
        (self.only.is_empty() || self.only.iter().any(named))
            && (program.is_short || !self.is_short)
    }
}

/// How a suite went.
struct Row {
    suite: &'static str,
    same: usize,
    refused: usize,
    differs: Vec<String>,
    skipped: usize,
    over: usize,
}

/// Runs what is wanted, plain and under `casemate run`, and compares.
pub fn suites(wanted: &Wanted) -> Result<()> {
    packages::install()?;
    if !wanted.is_short {
        cargo::cargo(&["build", "--release", "-p", "casemate"], &[])?;
    }
    let root = crate::root().canonicalize()?;
    let work = root.join("target/suites");
    std::fs::create_dir_all(&work)?;
    let places = Places { sources: root.join("tools/traps/suites"), work: work.clone() };
    let casemate = std::env::var_os("CASEMATE_BIN")
        .map_or_else(|| root.join("target/release/casemate"), PathBuf::from);
    ensure!(casemate.exists(), "{} is missing: build it first", casemate.display());
    let runner = Runner { casemate, work };
    let mut rows = Vec::new();
    for (name, programs) in SUITES {
        let programs = programs(&places).with_context(|| format!("suite {name}"))?;
        let chosen = programs.iter().filter(|program| wanted.takes(name, program)).collect();
        rows.extend(run_suite(name, chosen, &runner, wanted)?);
    }
    print_table(&rows);
    ensure!(
        !rows.is_empty(),
        "--only names no suite (stress-ng, allocators, checkers) and no program of one"
    );
    let differs: Vec<String> = rows.into_iter().flat_map(|row| row.differs).collect();
    if !differs.is_empty() {
        bail!("verdicts that differ under the keeper: {}", differs.join(", "));
    }
    Ok(())
}

fn run_suite(
    suite: &'static str,
    programs: Vec<&Program>,
    runner: &Runner,
    wanted: &Wanted,
) -> Result<Option<Row>> {
    if programs.is_empty() {
        return Ok(None);
    }
    let mut row = Row { suite, same: 0, refused: 0, differs: Vec::new(), skipped: 0, over: 0 };
    for program in programs {
        show_progress(&format!("{suite}: {} ...", program.name));
        let outcome = runner.compare(program, program.clear.unwrap_or(&wanted.clear))?;
        show_progress("");
        let (word, rest) = match &outcome {
            Outcome::Skipped(why) => {
                row.skipped += 1;
                ("skipped", why.clone())
            }
            Outcome::Same { plain, protected } => {
                row.same += 1;
                row.over += usize::from(protected.is_over());
                ("same", numbers(plain, protected))
            }
            Outcome::Differs { protected, .. } if is_refused(program, protected) => {
                row.refused += 1;
                ("refused", program.refused.unwrap_or_default().to_owned())
            }
            Outcome::Differs { what, .. } => {
                row.differs.push(program.name.clone());
                ("DIFFERS", what.clone())
            }
        };
        println!("{word:<8} {:<24} {rest}", program.name);
        if let ("DIFFERS", Outcome::Differs { plain, protected, .. }) = (word, &outcome) {
            println!("  plain:     {}", plain.tail());
            println!("  protected: {}", protected.tail());
        }
    }
    Ok(Some(row))
}

fn is_refused(program: &Program, protected: &Ended) -> bool {
    program.refused.is_some_and(|words| protected.says(words))
}

fn numbers(plain: &Ended, protected: &Ended) -> String {
    let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
    format!(
        "code {:<3} {:>6} s plain {:>6} s, {} pages out, {} in, Clear at most {} KiB{}",
        plain.code,
        seconds(plain.elapsed),
        seconds(protected.elapsed),
        protected.number("pages_out"),
        protected.number("pages_in"),
        protected.number("clear_bytes_peak") >> 10,
        if protected.is_over() { " (OVER)" } else { "" }
    )
}

/// What is being done, on a terminal; a file or a pipe gets results only.
fn show_progress(text: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // An error is ignored: no result depends on this line.
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }
}

fn print_table(rows: &[Row]) {
    println!("\nsuite         same  refused  differs  skipped  over the Clear");
    for row in rows {
        println!(
            "{:<12} {:>5} {:>8} {:>8} {:>8} {:>15}",
            row.suite,
            row.same,
            row.refused,
            row.differs.len(),
            row.skipped,
            row.over
        );
    }
}

/// Is there such a file, in a directory of programs or by its whole path?
fn is_there(name: &str) -> bool {
    Path::new("/usr/bin").join(name).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_suites_and_programs() {
        let all = Wanted::parse(&[]).expect("nothing is fine");
        assert_eq!((all.clear.as_str(), all.is_short), ("8M", false));
        let some = Wanted::parse(&["--only", "vm", "--clear", "16M", "--short"]).expect("fine");
        assert_eq!((some.only, some.clear, some.is_short), (vec!["vm".into()], "16M".into(), true));
        for wrong in [&["--only"][..], &["vm"], &["--clear"]] {
            assert_eq!(Wanted::parse(wrong), None);
        }
    }
}
