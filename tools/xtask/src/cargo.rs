//! Runs cargo, and reads what its tests say.

use crate::silence::{Silence, Victims};
use crate::tally::Tally;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A call of cargo that builds as all tests are built.
pub fn command(words: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(crate::root()).envs(environment.iter().copied());
    // Some sixty test programs are linked: what that optimisation and line tables
    // take for each is most of a build.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    command
}

/// Runs cargo; its failure is ours.
pub fn cargo(words: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let status = command(words, environment).status().context("cargo does not start")?;
    if !status.success() {
        bail!("cargo {} failed", words.join(" "));
    }
    Ok(())
}

/// What tests said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// The reasons of tests that did nothing.
    pub skipped: Vec<String>,
    /// The names of tests that failed.
    pub failures: Vec<String>,
    /// Did cargo end well?
    pub good: bool,
    /// What a soak adds up.
    pub tally: Tally,
}

impl Totals {
    /// Takes note of one line of output.
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result: ") {
            self.passed += number_before(rest, " passed");
            self.failed += number_before(rest, " failed");
        } else if let Some(at) = line.find("SKIPPED ") {
            // libtest may have begun a line of its own before it.
            self.skipped.push(line[at..].to_owned());
        } else if let Some((_, words)) = line.split_once("TALLY ") {
            self.tally.line(words);
        } else if line.starts_with("test ") && line.ends_with(" ... FAILED") {
            self.failures.push(line.to_owned());
        }
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Totals) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped.iter().cloned());
        self.failures.extend(other.failures.iter().cloned());
        self.good &= other.good;
        self.tally.add(&other.tally);
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

impl fmt::Display for Totals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out)?;
        for line in self.failures.iter().chain(&self.skipped) {
            writeln!(out, "{line}")?;
        }
        write!(
            out,
            "tests: {} passed, {} failed, {} of those passed were skipped",
            self.passed,
            self.failed,
            self.skipped.len()
        )
    }
}

/// No test is silent for so long. The longest takes two minutes on a busy machine.
const SILENCE: Duration = Duration::from_secs(600);

/// Runs `cargo test`, shows its output and adds it up. Failed tests are reported in the totals, and
/// so is a test program that hangs: it is killed, and the others go on.
pub fn run_tests(words: &[&str], environment: &[(&str, &str)]) -> Result<Totals> {
    let mut child = start(&mut command(words, environment))?;
    listen(&mut child, Victims::Below, SILENCE, std::io::stdout(), std::io::stderr())
}

/// Runs one test program, or cargo with one group of tests. Returns what it said, in the order in
/// which it was said, and what that adds up to.
pub fn run_quietly(command: &mut Command, victims: Victims) -> Result<(Vec<u8>, Totals)> {
    let said = Mutex::new(Vec::new());
    let mut child = start(command)?;
    let totals = listen(&mut child, victims, SILENCE, Lines(&said), Lines(&said))?;
    Ok((said.into_inner().unwrap_or_else(PoisonError::into_inner), totals))
}

/// What two readers write, a line at a time.
struct Lines<'a>(&'a Mutex<Vec<u8>>);

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn start(command: &mut Command) -> Result<Child> {
    let name = command.get_program().to_owned();
    let command = command.env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    child.with_context(|| format!("{} does not start", name.display()))
}

fn listen(
    child: &mut Child,
    victims: Victims,
    limit: Duration,
    out: impl Write,
    err: impl Write + Send,
) -> Result<Totals> {
    let errors = child.stderr.take().context("no standard error")?;
    let output = child.stdout.take().context("no standard output")?;
    let (pid, silence) = (child.id(), Silence::new());
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| silence.watch(pid, victims, limit));
        let errors = scope.spawn(|| read(errors, err, &silence));
        let totals = read(output, out, &silence);
        let said = errors.join();
        silence.over();
        let hung = watcher.join().map_err(|_| anyhow!("the watcher panicked"))?;
        let mut totals = totals?;
        let said = said.map_err(|_| anyhow!("the reader panicked"))??;
        totals.skipped.extend(said.skipped);
        totals.tally.add(&said.tally);
        totals.good = child.wait().context("it cannot be waited for")?.success() && hung == 0;
        Ok(totals)
    })
}

fn read(from: impl Read, mut to: impl Write, silence: &Silence) -> Result<Totals> {
    let mut totals = Totals::default();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        silence.heard();
        to.write_all(&line)?;
        totals.line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_failures_and_skips_are_added_up() {
        let mut totals = Totals { good: true, ..Totals::default() };
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out",
            "test a::b ... FAILED",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "test x ... SKIPPED redis: not installed",
        ] {
            totals.line(line);
        }
        let again = totals.clone();
        totals.add(&again);
        assert_eq!((totals.passed, totals.failed), (30, 4));
        assert_eq!(totals.skipped, ["SKIPPED redis: not installed"; 2]);
        assert_eq!(totals.failures, ["test a::b ... FAILED"; 2]);
    }

    /// Were it not killed, this test would last a quarter of an hour.
    #[test]
    fn what_hangs_is_killed_and_the_rest_goes_on() {
        let script = "sh -c 'echo one; exec sleep 900'; echo 'test result: ok. 7 passed; 0 failed'";
        let heard = |script: &str, victims, seconds| {
            let mut child = start(Command::new("sh").args(["-c", script])).expect("sh starts");
            let limit = Duration::from_secs(seconds);
            listen(&mut child, victims, limit, std::io::sink(), std::io::sink()).expect("a shell")
        };
        let totals = heard(script, Victims::Below, 1);
        assert_eq!(totals.passed, 7, "what came after it was not heard");
        assert!(!totals.good, "a hang passes for success");
        let totals = heard(script, Victims::All, 1);
        assert_eq!(totals.passed, 0, "the program itself was not killed");
        assert!(!totals.good, "a hang passes for success");
        assert!(heard("echo one", Victims::All, 60).good);
    }

    #[test]
    fn both_outputs_are_kept_and_added_up() {
        let script = "echo 'test result: ok. 7 passed; 0 failed'; echo 'SKIPPED this' >&2; exit 1";
        let (said, totals) =
            run_quietly(Command::new("sh").args(["-c", script]), Victims::All).expect("sh starts");
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("7 passed") && said.contains("SKIPPED this\n"), "{said}");
        assert_eq!((totals.passed, totals.good), (7, false));
        assert_eq!(totals.skipped, ["SKIPPED this"]);
    }
}
