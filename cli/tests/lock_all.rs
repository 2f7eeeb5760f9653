//! `casemate lock --all` and `casemate unlock --all`, in a network namespace of the test's own:
//! elsewhere they would lock runs that are not the test's.

mod common;

use std::process::{Command, Output};

use common::{Folder, root, stderr, stdout};

const CASEMATE: &str = env!("CARGO_BIN_EXE_casemate");

/// A script in a network namespace without other runs; none where none can be made.
fn alone(script: &str) -> Option<Output> {
    if !root() {
        eprintln!("NOTE: skipped, since only root makes a network namespace");
        return None;
    }
    let words = ["--net", "sh", "-c", script, "sh", CASEMATE];
    let output = Command::new("unshare").args(words).output().expect("unshare starts");
    let made = !stderr(&output).contains("unshare failed");
    if !made {
        eprintln!("NOTE: skipped, since no network namespace can be made");
    }
    made.then_some(output)
}

#[test]
fn where_there_is_no_run_there_is_nothing_to_do() {
    let script = r#"for command in lock unlock; do
        "$1" "$command" --all --passphrase-file /nonexistent/passphrase || exit
    done"#;
    let Some(output) = alone(script) else { return };
    assert_eq!(common::code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "there is no run to lock\nthere is no run to unlock\n");
}

#[test]
fn all_runs_are_found_and_those_that_go_on_are_as_they_should_be() {
    let script = r#"
        for n in 1 2; do
            mkfifo "$0.$n" 2> /dev/null
            "$1" run -q --clear 64M -- sh -c "echo begun; exec sleep 60" > "$0.$n" &
            pids="$pids $!"
            read line < "$0.$n" || { echo cannot; kill $pids; exit 0; }
        done
        "$1" unlock --all --passphrase-file /nonexistent/passphrase
        echo "code $?"
        kill $pids
        wait
        echo pids $pids"#;
    let folder = Folder::new("all");
    let script = script.replace("$0.", &format!("{}.", folder.arg("begun")));
    let Some(output) = alone(&script) else { return };
    let text = stdout(&output);
    if text.contains("cannot") {
        return eprintln!("NOTE: skipped, since this machine cannot protect");
    }
    let pids = text.lines().last().and_then(|line| line.strip_prefix("pids ")).expect("pids");
    let mut pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().expect("a pid")).collect();
    assert_eq!(pids.len(), 2, "{text}");
    pids.sort_unstable();
    let expected =
        format!("run {}: is not locked\nrun {}: is not locked\ncode 0\n", pids[0], pids[1]);
    assert!(text.starts_with(&expected), "{text}{}", stderr(&output));
}
