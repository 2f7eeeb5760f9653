//! What the tests share: finding the programs, running them with a deadline, reading the
//! statistics.
// Each test file is a crate of its own and uses its own part of this.
#![allow(dead_code)]

pub mod door;
pub mod keeper;
pub mod processes;
pub mod run;
pub mod sampler;
pub mod scan;
pub mod tally;

pub use run::{Done, Run};

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Exit codes of `casemate run` (its help lists them).
pub const VIOLATION: i32 = 120;
/// See [`VIOLATION`].
pub const STORE_FAILED: i32 = 121;

/// The trap program.
pub fn traps() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_casemate-traps"))
}

/// The `casemate` program: `CASEMATE_BIN`, or the one in this build's target directory, built if
/// missing.
pub fn casemate() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

fn find() -> PathBuf {
    if let Some(told) = std::env::var_os("CASEMATE_BIN") {
        return told.into();
    }
    let profile = traps().parent().expect("a program stands in a directory").to_owned();
    let target = profile.parent().expect("the target directory").to_owned();
    let release = target.join("release").join("casemate");
    for candidate in [profile.join("casemate"), release.clone()] {
        if candidate.exists() {
            return candidate;
        }
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "-p", "casemate"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .status()
        .expect("cargo starts");
    assert!(built.success(), "cargo build --release -p casemate failed");
    release
}

/// Words that run the rest as the user of whom `CASEMATE_AS_USER` gives the number, under the eyes
/// of root; none without it. (For that user `casemate setup` must have been done, with the binary
/// that `CASEMATE_BIN` names.)
pub fn as_user() -> Vec<OsString> {
    let Some(user) = std::env::var_os("CASEMATE_AS_USER") else { return Vec::new() };
    let user = user.to_str().expect("a number");
    ["setpriv", &format!("--reuid={user}"), &format!("--regid={user}"), "--init-groups", "--"]
        .map(OsString::from)
        .to_vec()
}

/// A directory of its own that goes away at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Beside the build, on a real file system.
    pub fn new(name: &str) -> Self {
        Self::under(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    /// Under another directory.
    pub fn under(directory: &Path, name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        if std::env::var_os("CASEMATE_AS_USER").is_some() {
            let open = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(&path, open).expect("the directory is ours");
        }
        Scratch(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            loud(&format!("NOTE: {} could not be removed: {error}", self.0.display()));
        }
    }
}

/// Writes past libtest's capture, so that it is seen although the test passes.
pub fn loud(line: &str) {
    // Where standard error is gone, there is no place to report that.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says why a test did nothing. `cargo xtask test` counts these lines.
pub fn skip(test: &str, why: &str) {
    loud(&format!("SKIPPED {test}: {why}"));
}

/// Are we root?
pub fn root() -> bool {
    // SAFETY: asks only.
    unsafe { libc::geteuid() == 0 }
}

/// Tries until `found` gives something; after the deadline the test fails with `what`.
pub fn poll<T>(what: &str, limit: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The statistics of a run, as written by `--json=FILE`.
pub struct Json(pub serde_json::Value);

impl Json {
    /// Reads the file.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("no statistics in {}: {error}", path.display()));
        Json(serde_json::from_str(&text).expect("the statistics are JSON"))
    }

    /// A counter, wherever in the report it stands.
    pub fn number(&self, name: &str) -> u64 {
        find_key(&self.0, name)
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_else(|| panic!("no number {name} in {}", self.0))
    }
}

fn find_key<'a>(value: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    let fields = value.as_object()?;
    fields.get(name).or_else(|| fields.values().find_map(|field| find_key(field, name)))
}
