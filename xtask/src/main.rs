//! Chores of the project: `cargo xtask test`, `soak`, `workloads`, `packages`, `lines`.

mod cargo;
mod lines;
mod packages;
mod phases;
mod silence;
mod workloads;

use anyhow::{Context, Result, bail};
use cargo::{Totals, cargo, run_tests};
use phases::Phases;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use workloads::{What, workloads};

const USAGE: &str = "usage: cargo xtask test | soak [--minutes N] | packages | lines
       cargo xtask workloads list | record | table [--into FOLDER] [PROGRAM...]

  test      install what the tests need (as root), build, test everything, count lines
  soak      the longer versions: large inputs, 10⁸ accesses, then traps with new seeds until N minutes
            have passed (120 unless told)
  packages  only install what the tests need
  lines     only count lines
  workloads of workloads/programs.toml: list programs; make their inputs and record them, but for what is recorded;
            print what misses in caches. Traces lie in FOLDER (target/workloads)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test"] => test(),
        ["soak"] => soak(120),
        ["soak", "--minutes", minutes] => match minutes.parse() {
            Ok(minutes) => soak(minutes),
            Err(error) => {
                eprintln!("--minutes {minutes}: {error}");
                return ExitCode::from(2);
            }
        },
        ["packages"] => packages::install(),
        ["lines"] => lines::print(&root()),
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

/// The workspace's directory.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn test() -> Result<()> {
    let mut phases = Phases::new();
    phases.run("packages", packages::install)?;
    phases.run("build", || cargo(&["build", "--workspace", "--release"], &[]))?;
    phases.run("build tests", || cargo(&["test", "--workspace", "--release", "--no-run"], &[]))?;
    let environment = packages::environment()?;
    let words = ["test", "--workspace", "--release", "--no-fail-fast"];
    let totals = phases.run("tests", || run_tests(&words, &environment))?;
    lines::print(&root())?;
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

fn soak(minutes: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    let mut phases = Phases::new();
    phases.run("packages", packages::install)?;
    phases.run("build", || cargo(&["build", "--workspace", "--release"], &[]))?;
    let mut soak = packages::environment()?;
    soak.push(("CASEMATE_SOAK", "1"));
    let long = |name: &str| {
        let words = ["test", "--release", "-p", "casemate-traps", "--no-fail-fast", "--test", name];
        run_tests(&words, &soak)
    };
    let mut totals = phases.run("real programs", || long("real_programs"))?;
    totals.add(&phases.run("oracle", || long("oracle"))?);
    let mut seed = 2_u64;
    while Instant::now() < end {
        let text = seed.to_string();
        let words = ["test", "--release", "-p", "casemate-traps", "--no-fail-fast", "--test"];
        for name in ["traps", "failures"] {
            let words: Vec<&str> = words.iter().copied().chain([name]).collect();
            let what = format!("{name}, seed {seed}");
            let round =
                phases.run(&what, || run_tests(&words, &[("CASEMATE_SEED", text.as_str())]))?;
            totals.add(&round);
        }
        seed = seed.checked_add(1).context("seeds ran out")?;
    }
    phases.print();
    finish(&totals)
}
