//! Records programs. What is recorded already, in the same way, from the same inputs and long
//! enough, is passed over.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;

use super::inputs::Inputs;
use super::manifest::{Manifest, Program};
use super::packages::{self, Needed};
use super::recipe;

/// Which files are at work.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary that records.
    pub casemate: PathBuf,
    /// `casemate-workload`: see [`super::find_workload`].
    pub workload: PathBuf,
    /// Where traces lie, with their recipes and inputs; made if it is not there.
    pub folder: PathBuf,
}

/// A trace that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The program.
    pub name: String,
    /// Its trace.
    pub path: PathBuf,
    /// How many threads do its work.
    pub threads: u32,
    /// What it does.
    pub about: String,
    /// How long the trace is, in instructions: perhaps longer than wanted.
    pub instructions: u64,
}

/// The trace of the program of that name.
#[must_use]
pub fn trace(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.casetrace"))
}

/// Records into one folder.
pub struct Recorder {
    manifest: Manifest,
    options: Options,
    inputs: Inputs,
    tracer: Needed<'static>,
}

/// Of `casemate trace record --json`.
#[derive(Deserialize)]
struct Report {
    tracer: String,
    instructions: u64,
    ending: String,
}

impl Recorder {
    /// Of the programs of `tools/workloads/programs.toml`.
    pub fn new(options: Options) -> Result<Self> {
        Self::with_manifest(Manifest::built_in()?, options)
    }

    fn with_manifest(manifest: Manifest, options: Options) -> Result<Self> {
        let name = || format!("{}: no folder for traces", options.folder.display());
        fs::create_dir_all(&options.folder).with_context(name)?;
        // Programs run in the folder of the inputs, so no name may depend on ours.
        let options = Options {
            casemate: std::path::absolute(&options.casemate)?,
            workload: std::path::absolute(&options.workload)?,
            folder: options.folder.canonicalize().with_context(name)?,
        };
        let inputs = Inputs::new(&manifest);
        Ok(Self { manifest, options, inputs, tracer: ("/usr/bin/qemu-x86_64", "qemu-user") })
    }

    /// Traces of these programs, or of all if none is named, each of at least so many
    /// `instructions` (if none are given: of as many as `programs.toml` says). A trace that fits is
    /// taken as it is, another one is recorded. If programs fail, the others are recorded all the
    /// same. `told` hears a line about each that is recorded.
    pub fn ensure(
        &self,
        names: &[&str],
        instructions: Option<u64>,
        told: &mut dyn FnMut(&str),
    ) -> Result<Vec<Recorded>> {
        let mut all = Vec::new();
        for program in self.manifest.wanted(names)? {
            let wanted = instructions.unwrap_or(program.length);
            all.push((program, wanted, self.fitting(program, wanted)?));
        }
        if all.iter().all(|(.., there)| there.is_some()) {
            return Ok(all.into_iter().filter_map(|(.., there)| there).collect());
        }
        let new = all.iter().filter(|(.., there)| there.is_none()).map(|(program, ..)| *program);
        self.install(&new.collect::<Vec<_>>(), told)?;
        let fixed = addresses_can_be_fixed(told);
        let (mut traces, mut failed) = (Vec::new(), Vec::new());
        for (program, wanted, there) in all {
            match there.map_or_else(|| self.record(program, wanted, fixed, told), Ok) {
                Ok(trace) => traces.push(trace),
                Err(error) => failed.push(format!("{}: {error:#}", program.name)),
            }
        }
        ensure!(failed.is_empty(), "not recorded: {}", failed.join("; "));
        Ok(traces)
    }

    /// The trace that is there, if it will do.
    fn fitting(&self, program: &Program, wanted: u64) -> Result<Option<Recorded>> {
        let path = trace(&self.options.folder, &program.name);
        if !path.exists() {
            return Ok(None);
        }
        let recipe = path.with_extension("recipe");
        let length = recipe::length_of_same(&recipe, program, self.inputs.sum(program)?)?;
        Ok(length.filter(|length| *length >= wanted).map(|instructions| Recorded {
            name: program.name.clone(),
            path,
            threads: program.threads,
            about: program.about.clone(),
            instructions,
        }))
    }

    fn install(&self, programs: &[&Program], told: &mut dyn FnMut(&str)) -> Result<()> {
        let mut needed = vec![self.tracer];
        for program in programs {
            if let Some(package) = &program.package {
                let file = &*program.run[0];
                needed.push((if file == "{cc1}" { "/usr/bin/gcc" } else { file }, package));
            }
        }
        packages::install(&needed, told)
    }

    fn record(
        &self,
        program: &Program,
        wanted: u64,
        fixed: bool,
        told: &mut dyn FnMut(&str),
    ) -> Result<Recorded> {
        let _lock = self.lock(told)?;
        // The process that held the lock may have recorded it, and longer.
        if let Some(there) = self.fitting(program, wanted)? {
            return Ok(there);
        }
        self.inputs.write(program, &self.inputs_folder())?;
        told(&format!("{}: recording {wanted} instructions after {}", program.name, program.skip));
        let start = Instant::now();
        let path = trace(&self.options.folder, &program.name);
        let part = path.with_extension("part");
        let run = self.run(program, wanted, &part, fixed);
        let report = run.inspect_err(|_| drop(fs::remove_file(&part)))?;
        let recipe_file = path.with_extension("recipe");
        // Never a new trace beside an old recipe: if this is interrupted, it is recorded again.
        let _ = fs::remove_file(&recipe_file);
        fs::rename(&part, &path).with_context(|| path.display().to_string())?;
        fs::write(&recipe_file, recipe::text(program, wanted, self.inputs.sum(program)?)?)
            .with_context(|| recipe_file.display().to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        told(&format!("{}: recorded in {seconds:.1} s: {}", program.name, report.tracer));
        self.fitting(program, wanted)?.context("the trace has gone again")
    }

    /// Two that record into one folder would write the same files: held as long as the file is
    /// open.
    fn lock(&self, told: &mut dyn FnMut(&str)) -> Result<File> {
        let path = self.options.folder.join("lock");
        let name = || format!("{} cannot be locked", path.display());
        let file = File::create(&path).with_context(name)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            told(&format!("waiting for another recording into {}", self.options.folder.display()));
            flock(&file, FlockOperation::LockExclusive).with_context(name)?;
        }
        Ok(file)
    }

    fn run(&self, program: &Program, length: u64, part: &Path, fixed: bool) -> Result<Report> {
        let report_file = part.with_extension("report");
        let mut command = self.command(program, length, part, fixed)?;
        let output = command.output().context("casemate does not start")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim_end().lines().next_back().unwrap_or("it said nothing");
            bail!("casemate trace record failed ({}): {last}", output.status);
        }
        let report = fs::read(&report_file).with_context(|| report_file.display().to_string())?;
        fs::remove_file(&report_file)?;
        let report: Report = serde_json::from_slice(&report).context("casemate's report")?;
        // It ended too early, or was interrupted.
        ensure!(
            report.instructions >= length,
            "only {} of {length} instructions could be recorded; the program: {}",
            report.instructions,
            report.ending
        );
        Ok(report)
    }

    fn command(
        &self,
        program: &Program,
        length: u64,
        output: &Path,
        fixed: bool,
    ) -> Result<Command> {
        let mut command = if fixed {
            let mut command = Command::new("setarch");
            command.arg("-R").arg(&self.options.casemate);
            command
        } else {
            Command::new(&self.options.casemate)
        };
        let mut json = std::ffi::OsString::from("--json=");
        json.push(output.with_extension("report"));
        command.args(["trace", "record", "--quiet"]).arg(json).arg("--output").arg(output);
        command.arg("--skip").arg(program.skip.to_string());
        command.arg("--length").arg(length.to_string());
        command.arg("--").arg(self.file(&program.run[0])?).args(&program.run[1..]);
        command.env_clear().envs(&self.manifest.environment);
        command.current_dir(self.inputs_folder()).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    fn inputs_folder(&self) -> PathBuf {
        self.options.folder.join("inputs")
    }

    /// What stands for a program's file.
    fn file(&self, word: &str) -> Result<PathBuf> {
        match word {
            "{workload}" => {
                let file = &self.options.workload;
                ensure!(file.exists(), "{}: not there", file.display());
                Ok(file.clone())
            }
            "{cc1}" => {
                let asked = Command::new("gcc").arg("-print-prog-name=cc1").output();
                let said = asked.context("gcc does not start")?.stdout;
                let said = String::from_utf8(said).context("gcc names a strange file")?;
                Ok(PathBuf::from(said.trim()))
            }
            file => Ok(PathBuf::from(file)),
        }
    }
}

/// Whether `setarch` may switch random addresses off. Where a container forbids that, traces of two
/// recordings differ in their addresses.
fn addresses_can_be_fixed(told: &mut dyn FnMut(&str)) -> bool {
    let tried = Command::new("setarch").args(["-R", "true"]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        told("NOT DETERMINISTIC: setarch -R does not work here, so addresses are random");
    }
    can
}

#[cfg(test)]
mod tests;
