//! Starts memeater under one system.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use casemate_keeper::PAGE_BYTES;
use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::System;
use super::program::Times;
use crate::bench::args::Mode;
use crate::bench::cgroup::Cgroup;
use crate::bench::floor::allowed_cpus;
use crate::bench::folder::Folder;
use crate::bench::measure::run_words;
use crate::bench::swap_file::SwapFile;
use crate::bench::zram::Zram;
use crate::exit_codes;
use crate::sys::signals;

/// Swap for each byte of the pages.
const SWAP_PER_BYTE: u64 = 2;

/// What is the same in all runs.
pub struct Bench {
    own: PathBuf,
    /// Where the swap file is.
    folder: Folder,
    clear_bytes: u64,
    /// Memory for ciphertext, if that has a limit; the rest goes to a file.
    crypt_bytes: Option<u64>,
    mode: Mode,
}

/// How a run ended.
pub enum Outcome {
    /// Well.
    Done(Times),
    /// The kernel killed it for want of memory in its cgroup.
    Killed,
    /// A page was not what was written. With what was said of it.
    Wrong(String),
}

impl Bench {
    /// With a Clear, which is also the limit of a Linux that swaps, and memory for ciphertext.
    pub fn new(clear_bytes: u64, crypt_bytes: Option<u64>, mode: Mode) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find the path of this binary")?;
        Ok(Bench { own, folder: Folder::new()?, clear_bytes, crypt_bytes, mode })
    }

    /// Runs it once. What is set up for the run is taken down again.
    ///
    /// # Errors
    /// This machine or user cannot; one sentence says why.
    pub fn run(&self, system: System, pages: u64, seed: u64) -> Result<Outcome> {
        let swap_bytes = pages * PAGE_BYTES as u64 * SWAP_PER_BYTE;
        let limited = || Cgroup::with_limit(self.clear_bytes);
        let all_bytes = self.clear_bytes + self.crypt_bytes.unwrap_or(0);
        match system {
            System::Plain => self.start(Vec::new(), self.words(pages, seed)),
            System::Casemate => self.start(self.under_casemate(), self.words(pages, seed)),
            System::OneHandler => {
                let _pinned = OneProcessor::pin()?;
                self.start(self.under_casemate(), self.words(pages, seed))
            }
            System::Zram => {
                let _swap = Zram::start(swap_bytes)?;
                self.within(&limited()?, pages, seed)
            }
            System::SwapFile => {
                let _swap = SwapFile::start(&self.folder.0, swap_bytes)?;
                self.within(&limited()?, pages, seed)
            }
            System::Linux => {
                let _swap = SwapFile::start(&self.folder.0, swap_bytes)?;
                self.within(&Cgroup::with_limit(all_bytes)?, pages, seed)
            }
        }
    }

    fn words(&self, pages: u64, seed: u64) -> Vec<OsString> {
        let mode = self
            .mode
            .to_possible_value()
            .map_or_else(String::new, |mode| format!("--mode={}", mode.get_name()));
        let own = self.own.clone().into();
        let flags = [mode, format!("--pages={pages}"), format!("--seed={seed}")];
        [own, "bench-memeater".into()].into_iter().chain(flags.map(OsString::from)).collect()
    }

    fn under_casemate(&self) -> Vec<OsString> {
        let mut words = run_words(&self.own, &self.clear_bytes.to_string());
        if let Some(bytes) = self.crypt_bytes {
            words.push(format!("--crypt-limit={bytes}").into());
            words.push(format!("--swap={}", self.folder.0.join("crypt").display()).into());
        }
        words.push("--".into());
        words
    }

    fn within(&self, group: &Cgroup, pages: u64, seed: u64) -> Result<Outcome> {
        let mut words = self.words(pages, seed);
        words.push(format!("--cgroup={}", group.path.display()).into());
        self.start(Vec::new(), words)
    }

    /// Starts the program, by way of another if there is one.
    fn start(&self, mut words: Vec<OsString>, program: Vec<OsString>) -> Result<Outcome> {
        words.extend(program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        let output = command.output().context("cannot start memeater")?;
        if signals::stop_wanted() {
            bail!("stopped; nothing that was set up for the benchmark is left");
        }
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.signal() == Some(libc::SIGKILL) {
            return Ok(Outcome::Killed);
        }
        if output.status.code() == Some(i32::from(exit_codes::VIOLATION)) {
            return Ok(Outcome::Wrong(said()));
        }
        if !output.status.success() {
            bail!("not measured: memeater ended with {}: {}", output.status, said());
        }
        let times = serde_json::from_slice(&output.stdout).context("cannot understand memeater")?;
        Ok(Outcome::Done(times))
    }
}

/// Keeps this thread, and what it starts, on the first of its processors until it is dropped.
struct OneProcessor {
    before: CpuSet,
}

impl OneProcessor {
    fn pin() -> Result<Self> {
        let before = sched_getaffinity(None).context("cannot ask for the processors")?;
        let cpus = allowed_cpus()?;
        let [first, _, ..] = cpus[..] else {
            bail!("not measured: there is one processor only, so `casemate` has one handler too");
        };
        let mut only = CpuSet::new();
        only.set(first);
        sched_setaffinity(None, &only).context("not measured: cannot keep to one processor")?;
        Ok(OneProcessor { before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        let restored = sched_setaffinity(None, &self.before).map_err(std::io::Error::from);
        crate::bench::cgroup::report(restored, "use all processors");
    }
}
