//! `casemate reproduce` from outside. Whole papers are run by hand: this takes one figure of each
//! kind.

mod common;

use common::{Folder, Run, run as casemate};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn reproduce(folder: &Folder, arguments: &[&str]) -> Run {
    let (out, runs) = (folder.arg("out"), folder.arg("runs"));
    let places = ["--out", &out, "--runs", &runs];
    casemate(&[&["reproduce"], arguments, &places].concat())
}

/// Of the paper that is measured.
fn measured(folder: &Folder, arguments: &[&str]) -> Run {
    let out = folder.arg("out");
    casemate(&[&["reproduce", "cryptkeeper", "--out", &out], arguments].concat())
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
    // Claims of other figures are not listed.
    assert_eq!(line("aise-bmt-average"), "", "{}", run.stdout);
    assert!(!run.stdout.contains("not measured  "), "{}", run.stdout);
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

/// Cryptkeeper's: nothing is measured here, and nothing beside its own folder is written.
#[test]
fn what_was_measured_is_judged_again() {
    const MEASURED: &str = include_str!("../../papers/cryptkeeper/results/measurements.json");
    const CLAIMS: &str = include_str!("../../papers/cryptkeeper/results/claims.csv");
    let folder = Folder::new("reproduce-measured");
    let none = measured(&folder, &["--redraw"]);
    assert_eq!(none.code, 125, "{}", none.stderr);
    assert!(none.stderr.contains("--out DIR says where results are"), "{}", none.stderr);
    let results = folder.path("out/cryptkeeper/results");
    fs::create_dir_all(&results).expect("a folder");
    fs::write(results.join("measurements.json"), MEASURED).expect("measurements");
    let run = measured(&folder, &["--redraw"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let line = |id: &str| run.stdout.lines().find(|line| line.contains(id)).unwrap_or_default();
    assert!(line("firefox-real").ends_with("not measured"), "{}", run.stdout);
    assert!(line("reads-crypt").contains("61.2x"), "{}", run.stdout);
    assert_eq!(fs::read_to_string(results.join("claims.csv")).expect("claims"), CLAIMS);
    for file in ["figure-4.png", "figure-4.svg", "figure-clear-size.csv", "report.html"] {
        assert!(results.join(file).exists(), "{file}");
    }
    assert!(!folder.path("out/report.html").exists() && !folder.path("out/claims.csv").exists());
    let wrong = measured(&folder, &["--redraw", "--figure", "clearsize"]);
    assert_eq!(wrong.code, 125, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("did you mean clear-size?"), "{}", wrong.stderr);
}

#[test]
fn figures_are_drawn_again_from_their_tables() {
    const TABLE: &str = include_str!("../../papers/delta-ecc/results/figure-8-gain.csv");
    let folder = Folder::new("reproduce-redrawn");
    let none = reproduce(&folder, &["delta-ecc", "--redraw"]);
    assert_eq!(none.code, 125, "{}", none.stderr);
    assert!(none.stderr.contains("has no table of a figure"), "{}", none.stderr);
    let results = folder.path("out/delta-ecc/results");
    fs::create_dir_all(&results).expect("a folder");
    fs::write(results.join("figure-8-gain.csv"), TABLE).expect("a table");
    let run = reproduce(&folder, &["delta-ecc", "--redraw"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("1 figure drawn again in "), "{}", run.stdout);
    let svg = fs::read_to_string(results.join("figure-8-gain.svg")).expect("a drawing");
    assert!(svg.contains(">zstd-threads</text>") && svg.contains(">Delta, MAC in ECC</text>"));
    let png = fs::read(results.join("figure-8-gain.png")).expect("a picture");
    assert!(png.starts_with(b"\x89PNG\r\n"));
    // The table is what it was, and nothing was simulated.
    assert_eq!(fs::read_to_string(results.join("figure-8-gain.csv")).ok().as_deref(), Some(TABLE));
    assert!(!folder.path("runs").exists());
    // A table is not drawn.
    let table = reproduce(&folder, &["delta-ecc", "--redraw", "--figure", "sensitivity"]);
    assert_eq!(table.code, 125, "{}", table.stderr);
}

#[test]
fn a_figure_is_simulated_and_the_second_time_found() {
    let qemu = Command::new("qemu-x86_64").arg("--version").output();
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
    assert!(claims.iter().all(|claim| claim["id"] != "space-mac"), "it is of another figure");
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

/// As a terminal's Ctrl-C: the program that is being recorded gets it, too.
#[test]
fn a_recording_that_is_stopped_says_how_to_go_on() {
    let qemu = Command::new("qemu-x86_64").arg("--version").output();
    if qemu.is_err() && std::env::var_os("CASEMATE_INSTALLED").is_none() {
        return eprintln!("SKIPPED a_recording_that_is_stopped: qemu-user is not installed");
    }
    let folder = Folder::new("reproduce-stopped");
    let [traces, out, runs] = ["traces", "out", "runs"].map(|name| folder.arg(name));
    let child = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args(["reproduce", "aise-bmt", "--figure", "9", "--traces", &traces])
        .args(["--out", &out, "--runs", &runs])
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("casemate starts");
    let end = Instant::now() + Duration::from_secs(60);
    while !fs::read_dir(&traces).is_ok_and(|mut files| files.next().is_some()) {
        assert!(Instant::now() < end, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(10));
    }
    let group = Pid::from_raw(child.id() as i32).expect("a pid");
    kill_process_group(group, Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the same command goes on from there"), "{said}");
    // Of twelve: what was under way may have come to its end.
    let recorded = fs::read_dir(&traces).expect("it is there").count();
    assert!(recorded < 6, "it went on and recorded: {recorded} files");
    assert!(!folder.path("out").exists(), "it has nothing to report");
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
    let run = reproduce(&folder, &["cryptkeeper", "--redraw"]);
    assert_eq!(run.code, 125, "{}", run.stderr);
    assert!(run.stderr.contains("is about simulations"), "{}", run.stderr);
    assert!(!folder.path("out").exists());
}
