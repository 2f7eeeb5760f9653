//! `run` with the keeper: exit codes, streams, reports, and a run inside a run.
//!
//! Where this machine cannot protect programs (see `casemate doctor`) these tests say so and pass.

mod common;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use common::{Folder, casemate, code, stderr, stdout};
use serde_json::Value;

fn works() -> bool {
    let works = code(&casemate(&["doctor", "--json=/dev/null"])) == 0;
    if !works {
        eprintln!("skipped: `casemate doctor` says that run does not work here");
    }
    works
}

#[test]
fn the_programs_own_code_and_signal_come_through() {
    if !works() {
        return;
    }
    for own in [0, 1, 7, 119, 255] {
        let output = casemate(&["run", "-q", "--", "sh", "-c", &format!("exit {own}")]);
        assert_eq!(code(&output), own, "{}", stderr(&output));
    }
    let output = casemate(&["run", "-q", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(code(&output), 137);
}

#[test]
fn quiet_leaves_the_streams_to_the_program() {
    if !works() {
        return;
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["run", "--quiet", "--", "sh", "-c", "cat; echo err >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through and through").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "through and through");
    assert_eq!(stderr(&output), "err\n");
}

#[test]
fn the_summary_goes_to_stderr_and_says_what_is_unprotected() {
    if !works() {
        return;
    }
    let output = casemate(&["run", "--", "echo", "hello"]);
    assert_eq!(stdout(&output), "hello\n");
    let text = stderr(&output);
    assert!(text.contains(" protected, ") && text.contains(" unprotected"), "{text}");
    assert!(text.lines().count() <= 8, "{text}");
}

#[test]
fn json_goes_to_stderr_or_to_a_file_in_one_step() {
    if !works() {
        return;
    }
    let output = casemate(&["run", "--json", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!(stdout(&output), "out\n");
    let report: Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!((&report["schema"], &report["exit_code"]), (&1.into(), &3.into()));

    let folder = Folder::new("run-json");
    let file = folder.path("report.json");
    fs::write(&file, "old").unwrap();
    let output = casemate(&["run", &format!("--json={}", file.display()), "--", "true"]);
    assert_eq!(code(&output), 0);
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["nested"], false);
    assert!(report["statistics"]["protected_bytes_peak"].is_u64());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "something else was left");
}

/// The bound on plaintext in a run of something small.
fn limit_with(flags: &[&str]) -> u64 {
    let folder = Folder::new("limit");
    let json = format!("--json={}", folder.arg("report.json"));
    let words: Vec<&str> =
        ["run", &json].iter().chain(flags).chain(&["--", "true"]).copied().collect();
    assert_eq!(code(&casemate(&words)), 0, "{words:?}");
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path("report.json")).unwrap()).unwrap();
    report["statistics"]["clear_bytes_limit"].as_u64().unwrap()
}

#[test]
fn a_small_program_does_not_page_unless_it_is_asked_to() {
    if !works() {
        return;
    }
    let ram = rustix::system::sysinfo();
    let quarter = ram.totalram as u64 * u64::from(ram.mem_unit) / 4;
    assert_eq!(limit_with(&[]), quarter.min(64 << 20));
    for (flag, mib) in [("--clear=25%", 2), ("--clear=3M", 3)] {
        assert_eq!(limit_with(&[flag]), mib << 20, "{flag}");
    }
}

#[test]
fn a_run_inside_a_run_says_who_protects_and_runs_the_program() {
    if !works() {
        return;
    }
    let folder = Folder::new("nested");
    let json = format!("--json={}", folder.arg("inner.json"));
    let me = env!("CARGO_BIN_EXE_casemate");
    let output =
        casemate(&["run", "-q", "--", me, "run", &json, "--", "sh", "-c", "echo in; exit 5"]);
    assert_eq!(code(&output), 5);
    assert_eq!(stdout(&output), "in\n");
    let note = stderr(&output);
    assert_eq!(note.matches("already inside a protected run").count(), 1, "{note}");
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path("inner.json")).unwrap()).unwrap();
    assert_eq!(report["nested"], true);
    // The outer keeper does not know what the inner run requires.
    let flags = ["run", "-q", "--", env!("CARGO_BIN_EXE_casemate"), "run"];
    let output =
        casemate(&[&flags[..], &["--require-protected=1", "--", "echo", "started"]].concat());
    assert_eq!((code(&output), stdout(&output).as_str()), (123, ""), "{}", stderr(&output));
    assert!(stderr(&output).contains("give the flag to the outer"), "{}", stderr(&output));
    assert!(note.contains(&format!("keeper {}", report["keeper"])), "{note} {report}");

    let quiet = casemate(&["run", "-q", "--", me, "run", "-q", "--", "true"]);
    assert!(stderr(&quiet).is_empty(), "{}", stderr(&quiet));
}
