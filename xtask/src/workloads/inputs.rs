//! Makes the programs' inputs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::manifest::{Input, Manifest};

/// Makes all of them in `folder`; a number that changes when one of them does.
pub fn make(manifest: &Manifest, workload: &Path, folder: &Path) -> Result<u64> {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for input in &manifest.inputs {
        let path = folder.join(input.file());
        let name = || path.display().to_string();
        let parent = path.parent().context("an input has no folder")?;
        std::fs::create_dir_all(parent).with_context(name)?;
        match input {
            Input::Text { text, .. } => std::fs::write(&path, text).with_context(name)?,
            Input::Made { kind, size, seed, .. } => {
                let mut command = Command::new(workload);
                command.args(["input", kind]).arg(&path);
                command.args(["--size", size, "--seed", &seed.to_string()]);
                ensure!(command.status().with_context(name)?.success(), "{} was not made", name());
            }
        }
        // FNV-1a.
        for byte in std::fs::read(&path).with_context(name)? {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Ok(sum)
}
