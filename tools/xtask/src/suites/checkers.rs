//! valgrind's tools and gcc's sanitizers: programs without mistakes pass, and each mistake is
//! found.

use super::{Compared, Places, Program, is_there};
use anyhow::Result;

/// What the tools say when they have found something, or nothing.
const SIGNS: &[&str] =
    &["ERROR SUMMARY", "ERROR: ", "WARNING: ", "runtime error", "definitely lost", "words wrong"];

/// A sanitizer, and the mistakes that it must find.
const SANITIZERS: &[(&str, &[&str])] = &[
    ("address", &["none", "overflow", "after-free", "leak"]),
    ("thread", &["none", "race"]),
    ("leak", &["none", "leak"]),
    ("undefined", &["none", "undefined"]),
];

/// A tool of valgrind's, its flags, and the mistakes that it must find.
const TOOLS: &[(&str, &[&str], &[&str])] = &[
    (
        "memcheck",
        &["--leak-check=full"],
        &["none", "overflow", "after-free", "leak", "uninitialised"],
    ),
    ("helgrind", &[], &["none", "race"]),
    ("drd", &[], &["none"]),
    ("massif", &["--massif-out-file=/dev/null"], &["none"]),
];

/// Every tool with every mistake that it knows.
pub fn programs(places: &Places) -> Result<Vec<Program>> {
    let mut all = Vec::new();
    for (sanitizer, mistakes) in SANITIZERS {
        let flags = [&format!("-fsanitize={sanitizer}")[..], "-fno-sanitize-recover=undefined"];
        let built = places.compile("checked.c", &format!("checked-{sanitizer}"), &flags);
        let missing = built.as_ref().err().map(|error| format!("{error:#}"));
        let program = built.map(|path| path.display().to_string()).unwrap_or_default();
        all.extend(mistakes.iter().map(|mistake| {
            one(sanitizer, mistake, vec![program.clone(), (*mistake).to_owned()], missing.clone())
        }));
    }
    let program = places.compile("checked.c", "checked", &[])?.display().to_string();
    let missing = (!is_there("valgrind")).then(|| "valgrind is not installed".to_owned());
    for (tool, flags, mistakes) in TOOLS {
        let tool_flag = format!("--tool={tool}");
        let begin = ["valgrind", &tool_flag, "--error-exitcode=9"];
        all.extend(mistakes.iter().map(|mistake| {
            let words = begin.iter().chain(*flags).copied().chain([program.as_str(), mistake]);
            one(tool, mistake, words.map(str::to_owned).collect(), missing.clone())
        }));
    }
    Ok(all)
}

fn one(tool: &str, mistake: &str, words: Vec<String>, missing: Option<String>) -> Program {
    let is_short = matches!(
        (tool, mistake),
        ("address", "none" | "after-free") | ("thread", "none") | ("memcheck", "uninitialised")
    );
    Program {
        name: format!("{tool}-{mistake}"),
        words,
        compared: Compared::Lines(SIGNS),
        // TSan looks at its mappings first of all, and an agent has come by then if the Clear is
        // small (SPEC.md, section 12).
        clear: (tool == "thread").then_some("40M"),
        is_short,
        refused: None,
        missing,
    }
}
