//! Runs a program plain and under the keeper, with a deadline, and compares the two.

use super::{Compared, Program};
use crate::silence::descendants;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A plain run that takes longer counts as one that hangs.
const PLAIN: Duration = Duration::from_secs(120);
/// The same under the keeper: pages are sealed and opened, perhaps on a busy machine.
const PROTECTED: Duration = Duration::from_secs(600);
/// Bytes above the limit that the Clear may reach before a run counts as over it.
const SLACK_BYTES: u64 = 256 << 10;

/// Runs programs.
pub struct Runner {
    /// The binary.
    pub casemate: PathBuf,
    /// Where programs run, and outputs are kept while they are compared.
    pub work: PathBuf,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code, or 128 and the signal's number; -1: it hung, and was killed.
    pub code: i32,
    /// How long it took.
    pub elapsed: Duration,
    stdout: String,
    stderr: String,
    statistics: Value,
}

impl Ended {
    /// Whether it wrote this.
    pub fn says(&self, words: &str) -> bool {
        self.stdout.contains(words) || self.stderr.contains(words)
    }
}

/// What came of comparing.
pub enum Outcome {
    /// There is nothing to compare, and why.
    Skipped(String),
    /// The same verdict.
    Same { plain: Ended, protected: Ended },
    /// Not the same.
    Differs { what: String, plain: Ended, protected: Ended },
}

impl Runner {
    /// Runs it plain, and then under a Clear of that size. What fails plain, or is not there,
    /// proves nothing.
    pub fn compare(&self, program: &Program, clear: &str) -> Result<Outcome> {
        if let Some(why) = &program.missing {
            return Ok(Outcome::Skipped(why.clone()));
        }
        let plain = self.run(program, None)?;
        if plain.code == -1 {
            return Ok(Outcome::Skipped(format!("the plain run takes more than {PLAIN:?}")));
        }
        let failed = || fails_without_a_word(program, &plain);
        if let Some(why) = unusable(&plain).or_else(failed) {
            return Ok(Outcome::Skipped(format!("the plain run: {why}")));
        }
        let protected = self.run(program, Some(clear))?;
        let what = if protected.code == -1 {
            Some("it hangs".to_owned())
        } else if plain.code != protected.code {
            Some(format!("code {} plain, {}", plain.code, protected.code))
        } else {
            let (left, right) = (verdict(program, &plain), verdict(program, &protected));
            (left != right).then(|| format!("it says {left:?} plain, {right:?}"))
        };
        Ok(match what {
            Some(what) => Outcome::Differs { what, plain, protected },
            None => Outcome::Same { plain, protected },
        })
    }

    fn run(&self, program: &Program, clear: Option<&str>) -> Result<Ended> {
        let [stdout, stderr, json] =
            ["stdout", "stderr", "json"].map(|name| self.work.join(format!("run.{name}")));
        let mut words: Vec<String> = Vec::new();
        if let Some(clear) = clear {
            let json = format!("--json={}", json.display());
            let casemate = self.casemate.display().to_string();
            words.extend([
                casemate,
                "run".into(),
                "--clear".into(),
                clear.into(),
                json,
                "--".into(),
            ]);
        }
        words.extend(program.words.iter().cloned());
        let start = Instant::now();
        let child = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(&self.work)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{} does not start", words[0]))?;
        let code = wait(child, start, if clear.is_some() { PROTECTED } else { PLAIN })?;
        let text =
            |path| -> Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
        let report = clear.and_then(|_| fs::read(&json).ok()).unwrap_or_default();
        let report: Value = serde_json::from_slice(&report).unwrap_or_default();
        let ended = Ended {
            code,
            elapsed: start.elapsed(),
            stdout: text(&stdout)?,
            stderr: text(&stderr)?,
            statistics: report["statistics"].clone(),
        };
        for path in [stdout, stderr, json] {
            // The last is there after protected runs only.
            let _ = fs::remove_file(path);
        }
        Ok(ended)
    }
}

fn wait(mut child: Child, start: Instant, limit: Duration) -> Result<i32> {
    loop {
        if let Some(status) = child.try_wait()? {
            let by_signal = status.signal().map(|signal| 128 + signal);
            return Ok(status.code().or(by_signal).unwrap_or(-1));
        }
        if start.elapsed() > limit {
            let mut pids = descendants(child.id());
            pids.push(child.id());
            crate::silence::kill(&pids);
            child.wait()?;
            return Ok(-1);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Why a plain run is nothing to compare with: this machine has not what it tries.
fn unusable(plain: &Ended) -> Option<String> {
    const SIGNS: &[&str] = &[
        "unrecognized option",
        "No stress workers",
        "unexpected memory mapping",
        "not implemented",
    ];
    let text = || plain.stderr.lines().chain(plain.stdout.lines());
    text().find(|line| SIGNS.iter().any(|sign| line.contains(sign))).map(str::to_owned)
}

/// stress-ng's way of saying that a stressor failed, where none of its lines says what did: there
/// is nothing that a run under the keeper could say as well.
fn fails_without_a_word(program: &Program, plain: &Ended) -> Option<String> {
    let failed = plain.says("unsuccessful run completed") && verdict(program, plain).is_empty();
    failed.then(|| format!("it failed with code {} and did not say why", plain.code))
}

fn verdict(program: &Program, ended: &Ended) -> Vec<String> {
    match program.compared {
        Compared::Output => vec![ended.stdout.clone()],
        Compared::Lines(words) => {
            let lines = ended.stdout.lines().chain(ended.stderr.lines());
            let mut lines: Vec<String> = lines
                .filter(|line| words.iter().any(|word| line.contains(word)))
                .map(without_numbers)
                .collect();
            lines.sort();
            lines.dedup();
            lines
        }
    }
}

fn without_numbers(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.starts_with("0x"));
    words.collect::<Vec<_>>().join(" ").replace(|c: char| c.is_ascii_digit(), "")
}

impl Ended {
    /// A count of the keeper's; 0 of a plain run.
    pub fn number(&self, name: &str) -> u64 {
        self.statistics[name].as_u64().unwrap_or(0)
    }

    /// Was there more plaintext than the Clear holds?
    pub fn is_over(&self) -> bool {
        self.number("clear_bytes_excess_peak") > SLACK_BYTES
    }

    /// Exit code and the last lines.
    pub fn tail(&self) -> String {
        let lines: Vec<&str> = self.stdout.lines().chain(self.stderr.lines()).collect();
        let from = lines.len().saturating_sub(12);
        format!("code {}\n    {}", self.code, lines[from..].join("\n    "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(script: &str, compared: Compared) -> Program {
        Program {
            name: "it".to_owned(),
            words: ["sh", "-c", script].map(str::to_owned).into(),
            compared,
            clear: None,
            is_short: true,
            refused: Some("errno = 16"),
            missing: None,
        }
    }

    #[test]
    fn a_refusal_is_known_by_its_words_and_nothing_else_is_one() {
        let outcome = |keeper| compare("exit 0", Compared::Output, keeper);
        for (keeper, expected) in [("echo errno = 16; exit 2", true), ("exit 2", false)] {
            let Outcome::Differs { protected, .. } = outcome(keeper) else {
                panic!("{keeper}: the codes differ");
            };
            let program = program("exit 0", Compared::Output);
            assert_eq!(super::super::is_refused(&program, &protected), expected, "{keeper}");
        }
    }

    /// `sh` that runs what comes behind the flags of `casemate run` stands in for it.
    fn compare(script: &str, compared: Compared, keeper: &str) -> Outcome {
        let work = std::env::temp_dir().join(format!("casemate-xtask-{}", std::process::id()));
        fs::create_dir_all(&work).expect("a directory");
        let number = std::thread::current().name().map(str::len).unwrap_or(0) + keeper.len();
        let casemate = work.join(format!("keeper-{number}"));
        fs::write(&casemate, format!("#!/bin/sh\nshift 5\n{keeper}\n")).expect("a script");
        Command::new("chmod").arg("+x").arg(&casemate).status().expect("chmod");
        let outcome = Runner { casemate, work: work.clone() }
            .compare(&program(script, compared), "8M")
            .expect("it runs");
        fs::remove_dir_all(&work).expect("it can be removed");
        outcome
    }

    #[test]
    fn other_codes_and_other_words_differ() {
        let lines = Compared::Lines(&["fail:"]);
        let same = compare("echo fail: 7 0xab; exit 3", lines, "\"$@\"; echo fail: 8 0xb; exit 3");
        assert!(matches!(same, Outcome::Same { .. }), "numbers are left out");
        let code = compare("exit 3", lines, "exit 4");
        assert!(matches!(code, Outcome::Differs { .. }), "another code");
        let words = compare("exit 0", lines, "echo fail: x");
        assert!(matches!(words, Outcome::Differs { .. }), "another word");
        let output = compare("echo a", Compared::Output, "echo b");
        assert!(matches!(output, Outcome::Differs { .. }), "another output");
        let skipped = compare("echo unrecognized option; exit 1", lines, "exit 1");
        assert!(matches!(skipped, Outcome::Skipped(_)), "what fails plain proves nothing");
        let silent = "echo unsuccessful run completed; exit 2";
        let skipped = compare(silent, lines, "exit 0");
        assert!(matches!(skipped, Outcome::Skipped(_)), "what fails plain proves nothing");
        let told = compare(&format!("echo fail: x; {silent}"), lines, "exit 0");
        assert!(matches!(told, Outcome::Differs { .. }), "the keeper hides a failure");
    }
}
