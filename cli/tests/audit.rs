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

#[test]
fn an_image_that_cannot_be_read_is_not_one_without_finds() {
    let folder = std::env::temp_dir();
    let folder = folder.to_str().expect("a plain path");
    for image in ["/nonexistent/image", folder] {
        let refused = run(&["audit", "--image", image, "--marker", "correct horse"]);
        assert_eq!(refused.code, 125, "{}", refused.stderr);
        assert!(refused.stderr.contains(image), "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
    for words in [
        &["audit", "1", "--image", "x"][..],
        &["audit", "--image", "x", "--watch"],
        &["audit", "--image", "/dev/null", "--seconds", "3"],
    ] {
        assert_eq!(run(words).code, 125, "{words:?}");
    }
}

/// The test's own program has the marker.
#[test]
fn a_marker_in_an_image_is_found_by_its_offset() {
    const MARKER: &str = "a marker that is in this program alone";
    let own = std::env::current_exe().expect("it runs");
    let bytes = std::fs::read(&own).expect("it can be read");
    let place = bytes.windows(MARKER.len()).position(|part| part == MARKER.as_bytes());
    let place = place.expect("it is there");
    let image = own.to_str().expect("a plain path");
    let found = run(&["audit", "--image", image, "--marker", MARKER]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert!(found.stdout.contains(&format!("at {place:#x}")), "{}", found.stdout);
    let other = MARKER.replace("alone", "- not -");
    assert_eq!(run(&["audit", "--image", image, "--marker", &other]).code, 0);
}
