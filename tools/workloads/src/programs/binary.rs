//! Where the binary with the kernels is.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

const NAME: &str = "casemate-workload";

/// `casemate-workload` beside this `casemate`. If it is not there and `casemate` lies in a clone,
/// it is built.
pub fn find_workload(casemate: &Path) -> Result<PathBuf> {
    let beside = casemate.with_file_name(NAME);
    if beside.exists() {
        return Ok(beside);
    }
    let Some(root) = casemate.ancestors().find(|folder| is_clone(folder)) else {
        bail!(
            "{}: not there; put it beside casemate (cargo build --release -p casemate-workloads)",
            beside.display()
        );
    };
    build(root)?;
    let built = root.join("target/release").join(NAME);
    ensure!(built.exists(), "{}: not there, though cargo has built it", built.display());
    Ok(built)
}

fn is_clone(folder: &Path) -> bool {
    folder.join("Cargo.toml").exists() && folder.join("tools/workloads/programs.toml").exists()
}

fn build(root: &Path) -> Result<()> {
    // Our own standard output is for results.
    let output = std::io::stderr().as_fd().try_clone_to_owned()?;
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "-p", "casemate-workloads", "--target-dir", "target"])
        .current_dir(root)
        .stdout(output)
        .status()
        .with_context(|| format!("{NAME} cannot be built: cargo does not start"))?;
    ensure!(status.success(), "{NAME} cannot be built: cargo build failed ({status})");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Folder;
    use super::*;

    #[test]
    fn it_is_beside_casemate_or_missed() {
        let folder = Folder::new("binary");
        let casemate = folder.0.join("casemate");
        let error = find_workload(&casemate).expect_err("it is not there").to_string();
        assert!(error.contains("casemate-workload: not there"), "{error}");
        std::fs::write(folder.0.join(NAME), "").expect("it can be written");
        assert_eq!(find_workload(&casemate).expect("it is there"), folder.0.join(NAME));
    }

    #[test]
    fn this_repository_is_a_clone_and_a_crate_of_it_is_none() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(!is_clone(own));
        assert!(is_clone(own.ancestors().nth(2).expect("it is in the workspace")));
    }
}
