//! The test programs of a build in two lanes side by side, so that one computes while the other
//! waits: those that judge what a run under the pager takes, and all others.

use crate::cargo::{Totals, command, run_quietly};
use crate::silence::Victims;
use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The package whose tests have a lane of their own.
const REAL_PROGRAMS: &str = "tools/traps";
/// But for these, which look at what a program says or leaves and not at what it takes. With them
/// the lanes are about as long as each other.
const BESIDE: [&str; 6] = ["cold_boot", "own_limits", "sandbox", "secrecy", "suites", "users"];

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestProgram {
    name: String,
    package: PathBuf,
    executable: PathBuf,
}

/// How long one took.
pub struct Took {
    name: String,
    time: Duration,
}

/// Builds all tests, and the programs that they start. A build of those alone would make everything
/// below them twice, since the tests' libraries have other features.
pub fn build() -> Result<Vec<TestProgram>> {
    let words = ["test", "--workspace", "--release", "--no-run"];
    let mut build = command(&words, &[]);
    build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let done = build.output().context("cargo does not start")?;
    ensure!(done.status.success(), "cargo {} failed", words.join(" "));
    let programs = programs(&String::from_utf8(done.stdout).context("cargo's messages")?)?;
    ensure!(!programs.is_empty(), "cargo built no tests");
    Ok(programs)
}

/// A message of cargo's, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

fn programs(messages: &str) -> Result<Vec<TestProgram>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("a message of cargo's")?;
        let is_test = message.profile.is_some_and(|profile| profile.test);
        if message.reason != "compiler-artifact" || !is_test {
            continue;
        }
        let Message { manifest_path: Some(manifest), target, executable: Some(executable), .. } =
            message
        else {
            continue;
        };
        let name = target.map_or_else(String::new, |target| target.name);
        let package = manifest.parent().context("a manifest lies in a folder")?.to_owned();
        programs.push(TestProgram { name, package, executable });
    }
    Ok(programs)
}

/// Runs all of them, and the tests in documentation. Failed tests, and programs that hang, are
/// reported in the totals.
pub fn run(programs: &[TestProgram], environment: &[(&str, &str)]) -> Result<(Totals, Vec<Took>)> {
    let has_own_lane = |program: &&TestProgram| {
        program.package.ends_with(REAL_PROGRAMS) && !BESIDE.contains(&program.name.as_str())
    };
    let (real, others): (Vec<_>, Vec<_>) = programs.iter().partition(has_own_lane);
    let mut lane: Vec<_> = others.into_iter().map(|program| job(program, environment)).collect();
    lane.push(documentation(environment));
    let sum = Mutex::new(Sum::new(std::io::stdout()));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(lane, &sum));
        let real = real.into_iter().map(|program| job(program, environment)).collect();
        let outcome = work(real, &sum);
        other.join().map_err(|_| anyhow!("a lane panicked"))?.and(outcome)
    })?;
    let Sum { totals, mut took, .. } = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    took.sort_by_key(|took| std::cmp::Reverse(took.time));
    Ok((totals, took))
}

/// What both lanes come to, and where what their programs said is shown.
struct Sum<W> {
    totals: Totals,
    took: Vec<Took>,
    out: W,
}

impl<W> Sum<W> {
    fn new(out: W) -> Self {
        Sum { totals: Totals { good: true, ..Totals::default() }, took: Vec::new(), out }
    }
}

/// What a lane runs: a name, a command, and what is to be killed if it hangs.
struct Job(String, Command, Victims);

fn job(program: &TestProgram, environment: &[(&str, &str)]) -> Job {
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.package).envs(environment.iter().copied());
    let folder = program.package.file_name().unwrap_or_default().display();
    Job(format!("{folder}/{}", program.name), command, Victims::All)
}

fn documentation(environment: &[(&str, &str)]) -> Job {
    let words = ["test", "--workspace", "--release", "--no-fail-fast", "--doc"];
    Job("documentation".into(), command(&words, environment), Victims::Below)
}

fn work<W: Write>(jobs: Vec<Job>, sum: &Mutex<Sum<W>>) -> Result<()> {
    for Job(name, mut command, victims) in jobs {
        let start = Instant::now();
        let (said, totals) = run_quietly(&mut command, victims).with_context(|| name.clone())?;
        let time = start.elapsed();
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that what two programs say is not mixed.
        writeln!(sum.out, "\n== {name}: {:.1} s", time.as_secs_f64())?;
        sum.out.write_all(&said)?;
        sum.out.flush()?;
        if !totals.good {
            sum.totals.failures.push(format!("{name} FAILED"));
        }
        sum.totals.add(&totals);
        sum.took.push(Took { name, time });
    }
    Ok(())
}

/// Prints which took longest.
pub fn print_longest(took: &[Took]) {
    println!("\ntests that took longest        seconds");
    for Took { name, time } in took.iter().take(12) {
        println!("{name:<28} {:>9.1}", time.as_secs_f64());
    }
}

/// Where the program that runs now lies, for tests that start it again.
pub fn this_program() -> Result<String> {
    let path: &Path = &std::env::current_exe().context("this program's path")?;
    Ok(path.to_str().context("a path in Unicode")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cargo_built_the_tests_are_run() {
        let artifact = |name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/{name}/Cargo.toml","target":{{"name":"{name}","kind":["test"]}},"profile":{{"test":{test},"opt_level":"3"}},"executable":{executable}}}"#
            )
        };
        let messages = [
            artifact("one", true, r#""/t/one""#),
            artifact("program", false, r#""/t/program""#),
            artifact("library", true, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = programs(&messages.join("\n")).expect("messages");
        let one = TestProgram {
            name: "one".into(),
            package: "/w/one".into(),
            executable: "/t/one".into(),
        };
        assert_eq!(found, [one]);
    }

    #[test]
    fn a_lane_goes_on_after_a_failure_and_reports_it() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Job(script.into(), command, Victims::All)
        };
        let sum = Mutex::new(Sum::new(Vec::new()));
        let jobs = vec![shell("exit 3"), shell("echo 'test result: ok. 2 passed; 0 failed'")];
        work(jobs, &sum).expect("shells start");
        let Sum { totals, took, out } = sum.into_inner().expect("no panic");
        assert!(String::from_utf8_lossy(&out).contains("test result: ok. 2 passed"));
        assert_eq!((totals.passed, totals.good, took.len()), (2, false, 2));
        assert_eq!(totals.failures, ["exit 3 FAILED"]);
    }
}
