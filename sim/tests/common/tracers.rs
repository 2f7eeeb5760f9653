//! Tracers that may be here, and programs to trace.

use casemate_sim::trace::live::{Tracer, Which};
use std::path::PathBuf;
use std::process::Command;

/// Whether a tracer is here; its absence fails the test where everything was installed.
pub fn there(which: Which) -> bool {
    let found = Tracer::find(Some(which));
    if found.is_err() && std::env::var_os("CASEMATE_INSTALLED").is_some() {
        panic!("{which:?} is not here, though packages were installed: {found:?}");
    }
    if found.is_err() {
        eprintln!("SKIPPED: {which:?} is not here");
    }
    found.is_ok()
}

/// A C program, compiled; removed afterwards.
pub struct Program(pub PathBuf);

impl Program {
    /// Compiles `source`.
    pub fn new(name: &str, source: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("casemate-live-{name}-{}", std::process::id()));
        let code = path.with_extension("c");
        std::fs::write(&code, source).expect("a file for the test");
        let compiled =
            Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&path).arg(&code).status();
        assert!(compiled.expect("cc starts").success());
        let _ = std::fs::remove_file(code);
        Program(path)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
