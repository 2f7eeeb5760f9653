//! stress-ng, allocators, valgrind and sanitizers give the same verdicts under the keeper: those of
//! `cargo xtask suites` that a test has time for.

mod common;

use common::{casemate, loud, skip};
use std::process::Command;

#[test]
fn verdicts_are_the_same_as_in_plain_runs() {
    // `cargo xtask test` is that program; to build it again takes as long as the suites.
    let mut xtask = match std::env::var_os("CASEMATE_XTASK") {
        Some(program) => Command::new(program),
        None => {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.arg("xtask");
            cargo
        }
    };
    let done = xtask
        .args(["suites", "--short"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env("CASEMATE_BIN", casemate())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stdout);
    for line in said.lines().filter_map(|line| line.strip_prefix("skipped ")) {
        skip("suites", line.trim());
    }
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{why}");
    let same = said.lines().filter(|line| line.starts_with("same ")).count();
    assert!(same > 0, "nothing was compared: {said}");
    loud(&format!("suites: {same} programs with the same verdict"));
}
