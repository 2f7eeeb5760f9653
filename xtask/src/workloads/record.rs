//! Records programs. What is recorded already, in the same way from the same inputs, is passed over.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::manifest::{Manifest, Program};
use super::{inputs, trace};
use crate::{cargo, packages};

/// Records these programs into `folder`.
pub fn record(manifest: &Manifest, folder: &Path, programs: &[&Program]) -> Result<()> {
    install(programs)?;
    cargo::cargo(&["build", "--release", "-p", "casemate", "-p", "casemate-workloads"], &[])?;
    let release = crate::root().join("target/release").canonicalize()?;
    std::fs::create_dir_all(folder.join("inputs")).with_context(|| folder.display().to_string())?;
    let folder = folder.canonicalize()?;
    let recorder = Recorder {
        environment: manifest,
        casemate: release.join("casemate"),
        workload: release.join("casemate-workload"),
        inputs: folder.join("inputs"),
        fixed: addresses_can_be_fixed(),
    };
    let sum = inputs::make(manifest, &recorder.workload, &recorder.inputs)?;
    let mut failed = Vec::new();
    for program in programs {
        if let Err(error) = recorder.one(program, &trace(&folder, program), sum) {
            eprintln!("{}: {error:#}", program.name);
            failed.push(&*program.name);
        }
    }
    if !failed.is_empty() {
        bail!("not recorded: {}", failed.join(", "));
    }
    Ok(())
}

fn install(programs: &[&Program]) -> Result<()> {
    let mut needed: Vec<(&str, &str)> = vec![("/usr/bin/qemu-x86_64", "qemu-user")];
    for program in programs {
        if let Some(package) = &program.package {
            let file = &*program.run[0];
            needed.push((if file == "{cc1}" { "/usr/bin/gcc" } else { file }, package));
        }
    }
    packages::install_these(&needed)
}

/// Whether `setarch` may switch random addresses off. Where a container forbids that, traces of two recordings
/// differ in their addresses.
fn addresses_can_be_fixed() -> bool {
    let tried = Command::new("setarch").args(["-R", "true"]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        println!("NOT DETERMINISTIC: setarch -R does not work here, so addresses are random");
    }
    can
}

struct Recorder<'a> {
    environment: &'a Manifest,
    casemate: PathBuf,
    workload: PathBuf,
    inputs: PathBuf,
    fixed: bool,
}

impl Recorder<'_> {
    fn one(&self, program: &Program, trace: &Path, inputs: u64) -> Result<()> {
        let recipe = toml::to_string(program)? + &format!("inputs = \"{inputs:016x}\"\n");
        let recipe_file = trace.with_extension("recipe");
        let done = std::fs::read_to_string(&recipe_file).is_ok_and(|old| old == recipe);
        if done && trace.exists() {
            println!("{}: recorded already", program.name);
            return Ok(());
        }
        println!("{}: recording", program.name);
        let part = trace.with_extension("part");
        let status = self.command(program, &part)?.status().context("casemate does not start")?;
        ensure!(status.success(), "casemate trace record: {status}");
        std::fs::rename(&part, trace)?;
        std::fs::write(&recipe_file, recipe)?;
        Ok(())
    }

    fn command(&self, program: &Program, output: &Path) -> Result<Command> {
        let mut command = if self.fixed {
            let mut command = Command::new("setarch");
            command.arg("-R").arg(&self.casemate);
            command
        } else {
            Command::new(&self.casemate)
        };
        command.args(["trace", "record", "--output"]).arg(output);
        command.arg("--skip").arg(program.skip.to_string());
        command.arg("--length").arg(program.length.to_string());
        command.arg("--").arg(self.file(&program.run[0])?).args(&program.run[1..]);
        command.env_clear().envs(&self.environment.environment);
        command.current_dir(&self.inputs).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    /// What stands for a program's file.
    fn file(&self, word: &str) -> Result<PathBuf> {
        match word {
            "{workload}" => Ok(self.workload.clone()),
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
