//! Runs the load under one system.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::Swapping;
use super::args::{Content, PagerArgs};
use super::timer::{Line, Phase};
use crate::sys::signals;

/// What the load runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Linux, nothing in the way.
    Plain,
    /// The bare userfaultfd handler.
    Floor,
    /// `casemate run`.
    Casemate,
    /// Swapping to zram.
    Zram,
}

/// What one start of the load gave.
pub struct Measured {
    /// A line for each phase.
    pub lines: Vec<Line>,
    /// The keeper's report.
    pub report: Option<Value>,
    /// Wall-clock time of the whole command.
    pub seconds: f64,
}

/// The bench's own binary and folder for reports.
pub struct Bench {
    exe: PathBuf,
    clear: u64,
    content: Content,
    report: PathBuf,
}

impl Bench {
    /// For these arguments.
    pub fn new(args: &PagerArgs) -> Result<Self> {
        let exe = std::env::current_exe().context("cannot find the path of this binary")?;
        let name = format!("casemate-bench-{}.json", std::process::id());
        let report = std::env::temp_dir().join(name);
        Ok(Bench { exe, clear: args.clear.0, content: args.content, report })
    }

    /// The paging phases, over three times the Clear.
    pub fn pages(
        &self,
        system: System,
        threads: usize,
        seed: u64,
        zram: Option<&Swapping>,
    ) -> Result<Measured> {
        let mut load = vec![
            "bench-load".to_owned(),
            format!("--bytes={}", self.clear * 3),
            format!("--threads={threads}"),
            format!("--seed={seed}"),
        ];
        if let Some(value) = self.content.to_possible_value() {
            load.push(format!("--content={}", value.get_name()));
        }
        match system {
            System::Floor => load.push("--floor".to_owned()),
            System::Zram => {
                let zram = zram.context("zram is not set up")?;
                load.push(format!("--cgroup={}", zram.cgroup.path.display()));
                load.push(format!("--zram={}", zram.device.device.display()));
            }
            System::Plain | System::Casemate => {}
        }
        self.start(system, &load)
    }

    /// All pages written, and so many accesses of one phase afterwards.
    pub fn one_phase(&self, phase: Phase, threads: usize, accesses: u64) -> Result<Measured> {
        let name = phase.to_possible_value().context("the phase has no name")?;
        let load = [
            "bench-load".to_owned(),
            format!("--bytes={}", self.clear * 3),
            format!("--threads={threads}"),
            format!("--only={}", name.get_name()),
            format!("--accesses={accesses}"),
        ];
        self.start(System::Casemate, &load)
    }

    /// The program that fits.
    pub fn fits(&self, system: System, bytes: u64, accesses: u64) -> Result<Measured> {
        let load =
            ["bench-load".to_owned(), format!("--bytes={bytes}"), format!("--fits={accesses}")];
        self.start(system, &load)
    }

    fn start(&self, system: System, load: &[String]) -> Result<Measured> {
        let mut words: Vec<OsString> = Vec::new();
        if system == System::Casemate {
            words = run_words(&self.exe, &self.clear.to_string());
            words.push(format!("--json={}", self.report.display()).into());
            words.push("--".into());
        }
        words.push(self.exe.clone().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(load);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let output = command.output().context("cannot start the load")?;
        let seconds = start.elapsed().as_secs_f64();
        if signals::stop_wanted() {
            bail!("stopped; nothing that was set up for the benchmark is left");
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("the load under {system:?} failed ({}): {}", output.status, said.trim());
        }
        let lines = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).context("cannot understand the load"))
            .collect::<Result<_>>()?;
        let report = match system {
            System::Casemate => Some(read_report(&self.report)?),
            _ => None,
        };
        Ok(Measured { lines, report, seconds })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.report);
    }
}

/// `casemate run` with a Clear, up to where more flags, `--` and the program follow.
pub fn run_words(own: &Path, clear: &str) -> Vec<OsString> {
    vec![own.into(), "run".into(), "--quiet".into(), format!("--clear={clear}").into()]
}

pub fn read_report(path: &Path) -> Result<Value> {
    let text = fs::read(path).context("the run left no report")?;
    serde_json::from_slice(&text).context("cannot understand the run's report")
}
