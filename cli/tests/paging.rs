//! `casemate trace pages` and `casemate advise` from outside.

mod common;

use common::{Folder, run as casemate};
use serde_json::Value;
use std::fs;

const PAGES: usize = 1024;
const ROUNDS: usize = 3;

/// A program that stores to 1,024 pages, one after the other, three times.
fn a_loop(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let line = |page: usize| format!("ST {}\n", page * 4096);
    let lines: String = (0..ROUNDS).flat_map(|_| (0..PAGES).map(line)).collect();
    let file = folder.arg("loop");
    fs::write(&file, lines).expect("the folder is ours");
    (folder, file)
}

fn json(arguments: &[&str]) -> Value {
    let run = casemate(arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

/// What comes before memory holds all of a loop is missed in every round under LRU and in the order
/// of arrival, and nothing after that. The optimum keeps what it can.
#[test]
fn a_loop_misses_always_or_never() {
    let (_folder, file) = a_loop("pages");
    let report = json(&["trace", "pages", &file, &file, "--memory", "1/2,4M", "--json"]);
    let trace = &report["traces"][0];
    assert_eq!(
        (&trace["pages"], &trace["page_changes"]),
        (&PAGES.into(), &(ROUNDS * PAGES).into())
    );
    let page_ins = |policy: &str| -> Vec<u64> {
        let cells = trace["cells"].as_array().expect("cells").iter();
        let cells = cells.filter(|cell| cell["policy"] == policy);
        cells.map(|cell| cell["page_ins"].as_u64().expect("a count")).collect()
    };
    let all = ((ROUNDS - 1) * PAGES) as u64;
    assert_eq!(page_ins("lru"), [all, 0]);
    assert_eq!(page_ins("fifo"), [all, 0]);
    let optimum = page_ins("optimum");
    assert!(optimum[0] < all * 52 / 100 && optimum[0] >= all / 2 && optimum[1] == 0, "{optimum:?}");
    // Two traces that are the same have their own ratio as their mean: all page-ins over the
    // optimum's, and first touches in both.
    let of = |row: &Value| row["policy"] == "lru" && row["memory"] == "1/2";
    let means = report["means"].as_array().expect("means");
    let mean = means.iter().find(|row| of(row)).expect("LRU with a half");
    let expected = (PAGES as u64 + all) as f64 / (PAGES as u64 + optimum[0]) as f64;
    let found = mean["times_optimum"].as_f64().expect("a number");
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    let text = casemate(&["trace", "pages", &file, &file]).stdout;
    assert!(text.contains("1024 pages that it stores to (4 MiB)"), "{text}");
    assert!(text.contains("Geometric means of 2 traces"), "{text}");
}

/// A loop pays for everything or nothing: each advice is the Clear that holds all 1,024 pages.
#[test]
fn advice_on_a_loop_is_all_of_it() {
    let (folder, file) = a_loop("advise");
    let drawing = folder.arg("curve.svg");
    let report = json(&["advise", "--trace", &file, "--plot", &drawing, "--json"]);
    let drawn = fs::read_to_string(&drawing).expect("it was drawn");
    assert!(drawn.starts_with("<svg") && drawn.contains("page-ins"), "{drawn}");
    assert_eq!(report["stored_to_bytes"], PAGES * 4096);
    // A drawing on standard output is alone there; the table goes to standard error.
    let run = casemate(&["advise", "--trace", &file, "--plot", "-"]);
    assert!(run.stdout == drawn && run.stderr.contains("slower by"), "{}", run.stderr);
    let advice = report["advice"].as_array().expect("advice");
    assert_eq!(advice.len(), 4);
    for advised in advice {
        // 1,024 pages, a 32nd more, and 64 pages of others.
        assert_eq!(advised["clear_bytes"], (1024 + 32 + 64) * 4096, "{advised}");
        assert_eq!(advised["page_ins"], 0);
    }
    let curve = report["curve"].as_array().expect("a curve");
    let (first, last) = (&curve[0], &curve[curve.len() - 1]);
    assert_eq!((&first["clear_bytes"], &first["page_ins"]), (&(2 << 20).into(), &2048.into()));
    assert_eq!(last["page_ins"], 0);
    // 2,048 page-ins of 18 µs over 3,072 instructions, two in a nanosecond.
    let slowdown = first["slowdown"].as_f64().expect("a number");
    assert!((slowdown / (2048.0 * 18_000.0 / 1536.0) - 1.0).abs() < 1e-9, "{slowdown}");
}

#[test]
fn what_cannot_be_advised_is_refused() {
    let (folder, file) = a_loop("refused");
    let loads = folder.arg("loads");
    fs::write(&loads, "LD 64\n".repeat(50)).expect("the folder is ours");
    for (arguments, code, words) in [
        (&["advise"][..], 125, "name a program after --, or a trace of it with --trace"),
        (&["advise", "--trace", &file, "--", "true"], 125, "cannot be used with"),
        (&["advise", "--trace", &file, "--plot", "a.gif"], 125, "must end with .svg, .png or .pdf"),
        (&["advise", "--trace", &file, "--plot", "-", "--json"], 125, "give --json=FILE"),
        (&["advise", "--trace", &file, "--page-in-ns", "0"], 125, "0 is not in"),
        (&["advise", "--trace", &file, "--instructions-per-ns", "0"], 125, "0.001 to 1000"),
        (&["advise", "--trace", &loads], 1, "none of its instructions stores"),
        (&["trace", "pages", &loads], 1, "none of its instructions stores"),
        (&["trace", "pages", &file, "--memory", "1/0"], 125, "write a part as 1/2 or 1/16"),
        (&["trace", "pages", &file, "--memory", "2/1"], 125, "write a part as 1/2 or 1/16"),
        (&["trace", "pages", &file, "--memory", "12Q"], 125, "12Q"),
        (&["trace", "pages", &file, "--costs", "1,2,3"], 125, "write four times"),
        (&["trace", "pages", "no-such-file"], 1, "no-such-file: the trace cannot be opened"),
    ] {
        let run = casemate(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}
