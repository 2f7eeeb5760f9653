//! Chores of the project: `cargo xtask test`, `soak`, `suites`, `workloads`, `packages`, `lines`,
//! `book`, `tables`.

mod book;
mod cargo;
mod guest_kernels;
mod lanes;
mod lines;
mod links;
mod packages;
mod phases;
mod quotes;
mod silence;
mod soak;
mod suites;
mod tally;
mod workloads;

use anyhow::{Context, Result, bail};
use cargo::{Totals, cargo};
use phases::Phases;
use std::path::PathBuf;
use std::process::ExitCode;
use workloads::{What, workloads};

const USAGE: &str = "usage: cargo xtask test | soak [--hours N | --minutes N] | packages | lines | book | tables
       cargo xtask suites [--only NAME]... [--clear SIZE] [--short]
       cargo xtask workloads list | record | table [--into FOLDER] [PROGRAM...]

  test      install what the tests need (as root), build, test everything, count lines
  soak      the longer versions: large inputs, 10⁸ accesses, 5000 seeds while memory is compacted,
            then all hostile tests with new seeds until the time has passed (two hours unless told).
            In the end: accesses checked, hostile runs, wrong bytes, runs stopped in doubt, bounds
            passed, processes left
  suites    stress-ng's stressors, allocators, valgrind and sanitizers, plain and under
            `casemate run --clear SIZE` (8M): one line for each program, a table at the end; fails if
            a verdict differs. --only: a suite or a program; --short: what a test has time for, with
            the binary that is there
  packages  only install what the tests need
  lines     only count lines
  book      build docs/ and the documents beside it with mdBook (installed if missing) into
            target/book/html, and check the links of its pages
  tables    write anew what documents have of the sources: the tables of schemes in
            docs/schemes.md, the flags in docs/commands.md, the code in docs/design/extending.md
  workloads of tools/workloads/programs.toml: list programs; make their inputs and record what is
            not recorded yet; print what misses in caches. Traces lie in FOLDER (target/workloads)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test"] => test(),
        ["soak", ref rest @ ..] => match soak::time(rest) {
            Some(time) => soak::soak(time),
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
        ["suites", ref rest @ ..] => match suites::Wanted::parse(rest) {
            Some(wanted) => suites::suites(&wanted),
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
        ["packages"] => packages::install(),
        ["lines"] => lines::print(&root()),
        ["book"] => book::build(),
        ["tables"] => tables(),
        ["workloads", "list", ref rest @ ..] => with_folder(&What::List, rest),
        ["workloads", "record", ref rest @ ..] => with_folder(&What::Record, rest),
        ["workloads", "table", ref rest @ ..] => with_folder(&What::Table, rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn with_folder(what: &What, words: &[&str]) -> Result<()> {
    match words {
        ["--into", folder, names @ ..] => workloads(what, Some(folder), names),
        names => workloads(what, None, names),
    }
}

/// Writes anew what documents have of the sources.
fn tables() -> Result<()> {
    cargo(&["run", "--release", "--quiet", "-p", "casemate-lab", "--example", "tables"], &[])?;
    let commands = ["command-tables", "docs/commands.md"];
    let casemate = ["run", "--release", "--quiet", "-p", "casemate", "--"];
    cargo(&[&casemate[..], &commands].concat(), &[])?;
    let page = root().join("docs/design/extending.md");
    let text = std::fs::read_to_string(&page)?;
    let read = |path: &str| std::fs::read_to_string(root().join(path)).ok();
    let fresh =
        quotes::with_files(&text, read).context("a quotation of docs/design/extending.md")?;
    std::fs::write(page, fresh)?;
    println!("wrote docs/design/extending.md");
    Ok(())
}

/// The workspace's directory.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn test() -> Result<()> {
    let mut phases = Phases::new();
    phases.run("packages", packages::install)?;
    let programs = phases.run("build", lanes::build)?;
    let mut environment = packages::environment()?;
    let this = lanes::this_program()?;
    environment.push(("CASEMATE_XTASK", &this));
    let (totals, took) = phases.run("tests", || lanes::run(&programs, &environment))?;
    lines::print(&root())?;
    lanes::print_longest(&took);
    phases.print();
    finish(&totals)
}

fn finish(totals: &Totals) -> Result<()> {
    println!("{totals}");
    if totals.failed > 0 || !totals.good {
        bail!("tests failed");
    }
    if totals.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}
