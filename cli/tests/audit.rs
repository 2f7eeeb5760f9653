//! `casemate audit` without a run.

mod common;

use common::run;

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    for words in [
        &["audit"][..],
        &["audit", "0"],
        &["audit", "-1"],
        &["audit", "init"],
        &["audit", "1", "--marker"],
        &["audit", "1", "--marker", ""],
        &["audit", "1", "--marker", "abc"],
        &["audit", "1", "--marker", "hex:0011223"],
        &["audit", "1", "--marker", "hex:0011223x"],
        &["audit", "1", "--watch", "--seconds", "0"],
        &["audit", "1", "--seconds", "1"],
    ] {
        let refused = run(words);
        assert_eq!(refused.code, 125, "{words:?}");
        assert!(refused.stderr.starts_with("error: "), "{words:?}: {}", refused.stderr);
    }
}

#[test]
fn what_is_wrong_with_a_marker_is_said() {
    for (marker, sentence) in [
        ("abc", "3 bytes are no marker; give 4 to 4096, as text or as hex:00ff…"),
        ("hex:0g", "\"hex:0g\" has no even number of hexadecimal digits after hex:"),
    ] {
        let refused = run(&["audit", "1", "--marker", marker]);
        assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
    }
}

#[test]
fn no_process_and_no_run_are_told_apart_and_nothing_was_looked_at() {
    let own = std::process::id().to_string();
    // Process ids end below the first.
    for (pid, sentence) in [("2147483647", "there is no process 2147483647"), (&own, "no run")] {
        let refused = run(&["audit", pid]);
        assert_eq!(refused.code, 125, "{}", refused.stderr);
        assert!(refused.stderr.starts_with("casemate: "), "{}", refused.stderr);
        assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
        assert_eq!(refused.stderr.trim_end().lines().count(), 1, "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
}
