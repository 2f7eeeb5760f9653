//! Starts a program under one system, and takes its time.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::catalogue::Program;
use crate::bench::args::Home;
use crate::bench::cgroup::Cgroup;
use crate::bench::folder::Folder;
use crate::bench::measure::{read_report, run_words};
use crate::bench::swap_file::SwapFile;
use crate::bench::zram::Zram;
use crate::sys::signals;

/// What `timeout` ends with when it has ended the program.
const TIMED_OUT: i32 = 124;
/// More than any of the programs takes: nothing is paged then.
const PLENTY: &str = "4G";
/// What the kernel counts times in for programs, on x86-64 (its `USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;
/// A limit that no program reaches.
const NO_LIMIT_BYTES: u64 = 1 << 40;
/// Swap for each byte of the program.
const SWAP_PER_BYTE: u64 = 3;

/// What a program takes when it has all the memory it wants.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Anonymous memory at most.
    pub anonymous_bytes: u64,
    /// Pages of files that it has mapped, at most.
    pub file_bytes: u64,
    /// Of these, those that a cgroup of its own is charged for. What was in memory before is not:
    /// a limit that had room for it would leave the program more than its share.
    pub charged_bytes: u64,
}

/// The memory that a program gets.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The Clear.
    pub clear_bytes: u64,
    /// The cgroup's limit: the Clear, and files' pages that it is charged for, which are not in the
    /// Clear.
    pub limit_bytes: u64,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Wall-clock time of the whole command.
    pub seconds: f64,
    /// User time of all its processes, the keeper included, in the kernel's ticks.
    pub user_s: f64,
    /// System time of the same.
    pub system_s: f64,
    /// Pages that came in again.
    pub page_ins: u64,
    /// Of what it printed and wrote.
    pub result: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Well.
    Done(Run),
    /// It took longer than it may.
    TooLong,
    /// The kernel killed it for want of memory. It does so when a cgroup's pages are all in use
    /// again and again, however much swap is free.
    Killed,
}

/// A program that was prepared.
pub struct Bench<'a> {
    /// Where its files are.
    pub folder: &'a Folder,
    /// The program.
    pub program: &'a Program,
    /// How it is started.
    pub words: &'a [OsString],
    /// The longest that it may take, in seconds.
    pub longest: u64,
}

impl Bench<'_> {
    /// Runs it with plenty of memory, and takes down how much it uses.
    pub fn needs(&self) -> Result<(Needs, u64)> {
        let words = self.under_casemate(PLENTY)?;
        let Outcome::Done(run) = self.time(&words)? else {
            bail!("it takes too long with all the memory it wants");
        };
        let statistics = self.statistics()?;
        let bytes = |name: &str| statistics[name].as_u64().context("the report lacks a size");
        let anonymous_bytes = bytes("clear_bytes_peak")?;
        let file_bytes = bytes("unprotected_bytes_peak")?;
        let charged_bytes = self.charged()?.map_or(file_bytes, |charged| charged.min(file_bytes));
        Ok((Needs { anonymous_bytes, file_bytes, charged_bytes }, run.result))
    }

    /// What a cgroup is charged for files' pages of the program; none where there can be no cgroup.
    fn charged(&self) -> Result<Option<u64>> {
        let Ok(group) = Cgroup::with_limit(NO_LIMIT_BYTES) else { return Ok(None) };
        self.time(&self.inside(&group))?;
        group.file_bytes().map(Some)
    }

    /// Runs it.
    pub fn run(&self, home: Home, share: Share, needs: Needs) -> Result<Outcome> {
        let swap_bytes = needs.anonymous_bytes * SWAP_PER_BYTE;
        match home {
            Home::Plain => self.time(self.words),
            Home::Casemate => {
                let words = self.under_casemate(&share.clear_bytes.to_string())?;
                let outcome = self.time(&words)?;
                if let Outcome::Done(run) = outcome {
                    let page_ins =
                        self.statistics()?["pages_in"].as_u64().context("no page-ins")?;
                    return Ok(Outcome::Done(Run { page_ins, ..run }));
                }
                Ok(outcome)
            }
            Home::Zram => {
                let _swap = Zram::start(swap_bytes)?;
                self.swapping(share)
            }
            Home::SwapFile => {
                let _swap = SwapFile::start(&self.folder.0, swap_bytes)?;
                self.swapping(share)
            }
        }
    }

    fn swapping(&self, share: Share) -> Result<Outcome> {
        let group = Cgroup::with_limit(share.limit_bytes)?;
        let before = swapped_in()?;
        let timed = self.time(&self.inside(&group));
        // A server that was killed leaves a client that prints something else, or fails.
        if group.has_killed() && !signals::stop_wanted() {
            return Ok(Outcome::Killed);
        }
        let outcome = timed?;
        let page_ins = swapped_in()?.saturating_sub(before);
        Ok(match outcome {
            Outcome::Done(run) => Outcome::Done(Run { page_ins, ..run }),
            other => other,
        })
    }

    /// The words that start the program inside a cgroup.
    fn inside(&self, group: &Cgroup) -> Vec<OsString> {
        let join = r#"echo 0 > "$0/cgroup.procs" && exec "$@""#;
        let mut words: Vec<OsString> = vec!["sh".into(), "-c".into(), join.into()];
        words.push(group.path.clone().into());
        words.extend_from_slice(self.words);
        words
    }

    fn under_casemate(&self, clear: &str) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().context("cannot find the path of this binary")?;
        let mut words = run_words(&own, clear);
        words.push(format!("--json={}", self.report().display()).into());
        words.push("--".into());
        words.extend_from_slice(self.words);
        Ok(words)
    }

    fn report(&self) -> PathBuf {
        self.folder.0.join("report.json")
    }

    fn statistics(&self) -> Result<Value> {
        Ok(read_report(&self.report())?["statistics"].take())
    }

    /// Runs a command that starts the program.
    fn time(&self, words: &[OsString]) -> Result<Outcome> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &self.longest.to_string()]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (before, start) = (of_children()?, Instant::now());
        let output = command.output().context("cannot start timeout(1)")?;
        let seconds = start.elapsed().as_secs_f64();
        let after = of_children()?;
        if signals::stop_wanted() {
            bail!("stopped; nothing that was set up for the benchmark is left");
        }
        if output.status.code() == Some(TIMED_OUT) {
            return Ok(Outcome::TooLong);
        }
        if output.status.signal() == Some(libc::SIGKILL) {
            return Ok(Outcome::Killed);
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("it failed ({}): {}", output.status, said.trim());
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(&output.stdout);
        if let Some(name) = self.program.output {
            hasher.write(&fs::read(self.folder.0.join(name)).context("it wrote nothing")?);
        }
        let [user_s, system_s] = [after[0] - before[0], after[1] - before[1]];
        let result = hasher.finish();
        Ok(Outcome::Done(Run { seconds, user_s, system_s, page_ins: 0, result }))
    }
}

/// User and system time of all children that have ended, and of theirs, in seconds (proc(5),
/// `/proc/PID/stat`: `cutime` and `cstime` are fields 16 and 17).
fn of_children() -> Result<[f64; 2]> {
    let text = fs::read_to_string("/proc/self/stat")?;
    times_of(&text, TICKS_PER_SECOND).context("the kernel does not say what processes took")
}

fn times_of(stat: &str, ticks_per_second: u64) -> Option<[f64; 2]> {
    // The name may have blanks and brackets of its own; the field behind it is the third.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace().skip(16 - 3);
    let mut next = || Some(fields.next()?.parse::<u64>().ok()? as f64 / ticks_per_second as f64);
    Some([next()?, next()?])
}

/// Pages that the kernel has brought in from swap, on the whole machine.
fn swapped_in() -> Result<u64> {
    let text = fs::read_to_string(Path::new("/proc/vmstat"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("pswpin "));
    Ok(line.context("the kernel does not count what it swaps in")?.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields as proc(5) numbers them: each is its number, but for the name.
    #[test]
    fn times_of_children_are_fields_16_and_17() {
        let numbers: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("1 (a) b (c) {}", numbers.join(" "));
        assert_eq!(times_of(&stat, 10), Some([1.6, 1.7]));
        assert_eq!(times_of("1 (a", 10), None);
    }
}
