//! `casemate set` without a run.

mod common;

use common::run;

fn one_sentence(text: &str) {
    assert!(text.starts_with("casemate: "), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    for words in [
        &["set"][..],
        &["set", "1"],
        &["set", "1", "--clear"],
        &["set", "1", "--clear", "1M"],
        &["set", "1", "--rotate", "1h"],
        &["set", "1", "--clear", "0%"],
        &["set", "1", "--clear", "auto"],
        &["set", "0", "--clear", "8M"],
        &["set", "-1", "--clear", "8M"],
        &["set", "4294967296", "--clear", "8M"],
        &["set", "init", "--clear", "8M"],
    ] {
        assert_eq!(run(words).code, 125, "{words:?}");
    }
}

#[test]
fn a_size_that_is_too_small_is_refused_as_run_does() {
    let sentence = "1M is less than the 2 MiB that the Clear needs at least";
    for words in [&["set", "1", "--clear", "1M"][..], &["run", "--clear", "1M", "--", "true"]] {
        let refused = run(words);
        assert_eq!(refused.code, 125, "{words:?}");
        assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
    }
}

#[test]
fn no_process_and_no_run_are_told_apart() {
    // Process ids end below this.
    let none = run(&["set", "2147483647", "--clear", "8M"]);
    assert_eq!(none.code, 1);
    one_sentence(&none.stderr);
    let report = run(&["set", "2147483647", "--clear", "8M", "--json"]);
    assert_eq!((report.code, &report.stderr), (1, &none.stderr));
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    assert_eq!((&report["run"], &report["outcome"]), (&2_147_483_647_u32.into(), &"failed".into()));
    assert!(report["why"].as_str().is_some_and(|why| none.stderr.contains(why)), "{report}");
    assert!(none.stderr.contains("there is no process 2147483647"), "{}", none.stderr);
    let own = std::process::id().to_string();
    let stranger = run(&["set", &own, "--clear", "8M"]);
    assert_eq!(stranger.code, 1);
    one_sentence(&stranger.stderr);
    assert!(stranger.stderr.contains("belongs to no run"), "{}", stranger.stderr);
    let stranger = run(&["set", &own, "--rotate"]);
    assert_eq!(stranger.code, 1);
    assert!(stranger.stderr.contains("belongs to no run"), "{}", stranger.stderr);
}
