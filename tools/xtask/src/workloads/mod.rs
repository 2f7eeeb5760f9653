//! `cargo xtask workloads`: the programs of `tools/workloads/programs.toml`, listed, recorded,
//! measured.

mod table;

use std::path::{Path, PathBuf};

use anyhow::Result;
use casemate_workloads::programs::{Manifest, Options, Program, Recorder, trace};

use crate::cargo;

/// What is wanted.
pub enum What {
    /// Names and commands.
    List,
    /// Inputs, then traces of what is not recorded yet.
    Record,
    /// Misses of what is recorded.
    Table,
}

/// Does it to all programs, or to those that are named. Traces lie in `folder`.
pub fn workloads(what: &What, folder: Option<&str>, names: &[&str]) -> Result<()> {
    let manifest = Manifest::built_in()?;
    let folder = folder.map_or_else(|| crate::root().join("target/workloads"), PathBuf::from);
    let wanted = manifest.wanted(names)?;
    match what {
        What::List => list(&folder, &wanted),
        What::Record => record(folder, names)?,
        What::Table => table::print(&folder, &wanted)?,
    }
    Ok(())
}

fn list(folder: &Path, programs: &[&Program]) {
    for program in programs {
        let recorded = if trace(folder, &program.name).exists() { "recorded" } else { "" };
        println!("{:<17} {recorded:<9} {}", program.name, program.run.join(" "));
    }
}

fn record(folder: PathBuf, names: &[&str]) -> Result<()> {
    cargo::cargo(&["build", "--release", "-p", "casemate", "-p", "casemate-workloads"], &[])?;
    let release = crate::root().join("target/release").canonicalize()?;
    let recorder = Recorder::new(Options {
        casemate: release.join("casemate"),
        workload: release.join("casemate-workload"),
        folder,
    })?;
    for trace in recorder.ensure(names, None, &mut |line| println!("{line}"))? {
        println!("{}: {} instructions in {}", trace.name, trace.instructions, trace.path.display());
    }
    Ok(())
}
