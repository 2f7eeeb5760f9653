//! `casemate reproduce` from outside. Whole papers are run by hand: this takes one figure of each kind.

mod common;

use common::{Folder, Run, run as casemate};
use serde_json::Value;
use std::fs;

fn reproduce(folder: &Folder, arguments: &[&str]) -> Run {
    let (out, runs) = (folder.arg("out"), folder.arg("runs"));
    let places = ["--out", &out, "--runs", &runs];
    casemate(&[&["reproduce"], arguments, &places].concat())
}

#[test]
fn what_is_counted_needs_no_trace_and_gives_verdicts() {
    let folder = Folder::new("reproduce-counted");
    let traces = folder.arg("traces");
    let words = ["aise-bmt", "--figure", "table-2", "--traces", &traces];
    let run = reproduce(&folder, &words);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let line = |id: &str| run.stdout.lines().find(|line| line.contains(id)).unwrap_or_default();
    assert!(line("storage-aise-bmt").ends_with("holds"), "{}", run.stdout);
    assert!(line("aise-bmt-average").ends_with("not measured"), "{}", run.stdout);
    let table = fs::read_to_string(folder.path("out/aise-bmt/results/figure-table-2.csv"));
    // AISE/BMT, Table 2: 21.55 % of memory with MACs of 128 bits.
    let row = table.as_deref().unwrap_or_default().lines().find(|line| line.starts_with("128-bit"));
    assert!(row.is_some_and(|row| row.contains("0.2154") || row.contains("0.2155")), "{table:?}");
    for file in [
        "report.html",
        "claims.csv",
        "aise-bmt/results/report.md",
        "aise-bmt/results/provenance.json",
    ] {
        assert!(folder.path(&format!("out/{file}")).exists(), "{file}");
    }
    assert!(!folder.path("traces").exists(), "nothing was to be recorded");
}

#[test]
fn a_figure_is_simulated_and_the_second_time_found() {
    let qemu = std::process::Command::new("qemu-x86_64").arg("--version").output();
    if qemu.is_err() && std::env::var_os("CASEMATE_INSTALLED").is_none() {
        return eprintln!("SKIPPED a_figure_is_simulated: qemu-user is not installed");
    }
    let folder = Folder::new("reproduce-simulated");
    let traces = folder.arg("traces");
    let words = ["lhash", "--quick", "--figure", "9", "--json", "--traces", &traces];
    let first = reproduce(&folder, &words);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let report: Value = serde_json::from_str(&first.stdout).expect("one JSON object");
    let claims = report["papers"][0]["claims"].as_array().expect("claims");
    let claim = |id: &str| claims.iter().find(|claim| claim["id"] == id).expect("it is there");
    // A MAC of 16 bytes for each block of 64, on every program.
    assert_eq!(claim("traffic-mac")["verdict"], "holds", "{claims:?}");
    assert!(claim("space-mac")["measured"].is_null());
    let svg = fs::read_to_string(folder.path("out/lhash/results/figure-9.svg")).expect("a plot");
    assert!(svg.contains("CHTree"));
    let page = fs::read_to_string(folder.path("out/report.html")).expect("a page");
    assert!(page.contains("traffic-mac") && page.contains("<svg"));
    // Runs that are there are not done again: without their traces' contents nothing could be.
    let runs = || fs::read_dir(folder.path("runs")).expect("runs were kept").count();
    let done = runs();
    assert!(done > 0);
    let second = reproduce(&folder, &words);
    assert_eq!((second.stdout, runs()), (first.stdout, done));
}

#[test]
fn what_there_is_not_is_refused_by_name() {
    let folder = Folder::new("reproduce-refused");
    let run = reproduce(&folder, &["nobody", "--quick"]);
    assert_eq!(run.code, 125, "{}", run.stderr);
    assert!(run.stderr.contains("no paper nobody") && run.stderr.contains("aise-bmt"));
    let run = reproduce(&folder, &["aise-bmt", "--figure", "99"]);
    assert_eq!(run.code, 125, "{}", run.stderr);
    assert!(run.stderr.contains("no figure 99") && run.stderr.contains("table-2"));
    assert!(!folder.path("out").exists());
}
