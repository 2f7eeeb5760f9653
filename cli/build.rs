//! Tells the binary which commit it was built from, for results of the simulator. Git itself is not
//! needed.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = commit(Path::new("..")).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=CASEMATE_COMMIT={commit}");
}

/// What HEAD is, in a checkout or a worktree of one.
fn commit(checkout: &Path) -> Option<String> {
    let mut git = checkout.join(".git");
    if git.is_file() {
        // A worktree names its own folder in the repository's.
        git = checkout.join(fs::read_to_string(&git).ok()?.strip_prefix("gitdir: ")?.trim());
    }
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return Some(head) };
    let shared = read(&git.join("commondir")).map_or(git.clone(), |common| git.join(common));
    if let Some(commit) = read(&shared.join(name)) {
        return Some(commit);
    }
    let packed: PathBuf = shared.join("packed-refs");
    let lines = read(&packed)?;
    lines.lines().find_map(|line| line.strip_suffix(name)).map(|commit| commit.trim().to_owned())
}

/// A small file, and a reason to build again when it changes.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
