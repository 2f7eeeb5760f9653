//! Real programs and kernels, recorded as `programs.toml` says. `cargo xtask workloads` and
//! `casemate reproduce` do it with this.
//!
//! In reading order:
//!
//! - [`manifest`]: what `programs.toml` says;
//! - `inputs`: the files that programs read;
//! - [`packages`]: Debian's packages, installed;
//! - [`binary`]: where the kernels are;
//! - `recipe`: how a trace was made, kept beside it;
//! - [`recorder`]: traces of what is not recorded yet.

pub mod binary;
mod inputs;
pub mod manifest;
pub mod packages;
mod recipe;
pub mod recorder;

pub use binary::find_workload;
pub use manifest::{Input, Manifest, Program};
pub use recipe::FORMAT;
pub use recorder::{Options, Recorded, Recorder, trace};

/// A test's own folder; gone with it.
#[cfg(test)]
struct Folder(std::path::PathBuf);

#[cfg(test)]
impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("casemate-workloads-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }
}

#[cfg(test)]
impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it is ours");
    }
}
