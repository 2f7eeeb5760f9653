//! `cargo xtask workloads`: the programs of `workloads/programs.toml`, listed, recorded, measured.

mod inputs;
mod manifest;
mod record;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use manifest::{Manifest, Program};

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
    let manifest = Manifest::read(&crate::root().join("workloads/programs.toml"))?;
    let folder = folder.map_or_else(|| crate::root().join("target/workloads"), PathBuf::from);
    let wanted = wanted(&manifest, names)?;
    match what {
        What::List => list(&folder, &wanted),
        What::Record => record::record(&manifest, &folder, &wanted)?,
        What::Table => table::print(&folder, &wanted)?,
    }
    Ok(())
}

fn wanted<'a>(manifest: &'a Manifest, names: &[&str]) -> Result<Vec<&'a Program>> {
    for name in names {
        if !manifest.programs.iter().any(|program| program.name == *name) {
            bail!("workloads/programs.toml has no program {name:?}");
        }
    }
    let is_wanted = |program: &&Program| names.is_empty() || names.contains(&&*program.name);
    Ok(manifest.programs.iter().filter(is_wanted).collect())
}

fn list(folder: &Path, programs: &[&Program]) {
    for program in programs {
        let recorded = if trace(folder, program).exists() { "recorded" } else { "" };
        println!("{:<17} {recorded:<9} {}", program.name, program.run.join(" "));
    }
}

/// A program's trace.
fn trace(folder: &Path, program: &Program) -> PathBuf {
    folder.join(format!("{}.casetrace", program.name))
}
