//! What the tests of the command line share.
#![allow(dead_code, missing_docs)]

pub mod sim;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

pub fn casemate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_casemate")).args(arguments).output().expect("casemate starts")
}

/// What a call of `casemate` came to.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(arguments: &[&str]) -> Run {
    let output = casemate(arguments);
    Run { code: code(&output), stdout: stdout(&output), stderr: stderr(&output) }
}

pub fn code(output: &Output) -> i32 {
    output.status.code().expect("casemate is not killed")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Copies an executable, in a process of its own: a file that this process has open for writing
/// while another test forks cannot be executed (ETXTBSY).
pub fn copy(from: &str, to: &std::path::Path) {
    let status = Command::new("cp").arg(from).arg(to).status().expect("cp starts");
    assert!(status.success());
}

pub fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A folder of the test's own, removed afterwards.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir()
            .join(format!("casemate-test-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn arg(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
