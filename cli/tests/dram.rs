//! `casemate dram` and `casemate bench accuracy`.

mod common;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use common::{Folder, casemate, code, stderr, stdout};
use serde_json::Value;

fn refused(args: &[&str], exit: i32, words: &[&str]) {
    let output = casemate(args);
    let text = stderr(&output);
    assert_eq!(code(&output), exit, "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?}: {word} is missing in {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn what_cannot_be_replayed_is_refused_by_name() {
    let folder = Folder::new("dram-refusals");
    let file = |name: &str, text: &[u8]| {
        fs::write(folder.path(name), text).unwrap();
        folder.path(name).display().to_string()
    };
    refused(&["dram", "/no/such/stream"], 1, &["/no/such/stream", "cannot be opened"]);
    refused(&["dram", &file("empty", b"")], 1, &["empty: byte 0", "the file is empty"]);
    refused(&["dram", &file("odd", b"0x0 READ 0\n0x0 FETCH 1\n")], 1, &["odd", "line 2", "FETCH"]);
    refused(&["dram", &file("binary", &[0xff; 99])], 1, &["binary"]);
    refused(&["dram"], 125, &["STREAM"]);
    let requests = file("requests", b"0x0 READ 0\n");
    refused(&["dram", "--count", "5", &requests], 125, &["--count", "cannot be used with"]);
    let generate = ["dram", "--generate"];
    refused(&[&generate[..], &["random-lite"]].concat(), 125, &["did you mean random-light?"]);
    let with = |more: &[&'static str]| [&["dram", "--generate", "random-light"], more].concat();
    refused(&with(&["--preset", "ddr4-2401"]), 125, &["did you mean ddr4-2400?"]);
    refused(&with(&["--set", "t_rc=3"]), 125, &["--set t_rc=3", "did you mean t_rcd?"]);
    refused(&with(&["--set", "cl"]), 125, &["--set cl", "KEY=VALUE"]);
    refused(&with(&["--set", "cl=0"]), 125, &["CL"]);
    let twice = with(&["--set", "cl=12", "--set", "cl=13"]);
    refused(&twice, 125, &["--set cl=13 says again what --set cl=12 says"]);
    refused(&with(&["--set", "cl=12Q"]), 125, &["12Q"]);
    refused(&with(&["--count", "0"]), 125, &["--count"]);
}

#[test]
fn a_stream_is_replayed_from_a_file_and_from_standard_input() {
    let folder = Folder::new("dram-stream");
    let stream = "0x0 READ 0\n0x40 READ 100\n0x80 WRITE 200\n";
    fs::write(folder.path("stream"), stream).unwrap();
    let path = folder.path("stream").display().to_string();
    let args = ["dram", &path, "--preset", "ddr3-1600", "--set", "t_rcd=20", "--json"];
    let from_file = casemate(&args);
    let report: Value = serde_json::from_str(&stdout(&from_file)).unwrap();
    // 20 and 11 clocks and a burst of 4 for the first read; the row is open for the second.
    assert_eq!(report["read_latency_mean_clocks"], 25.0);
    assert_eq!(report["read_latency_p99_clocks"], 35);
    assert_eq!([&report["reads"], &report["writes"], &report["activates"]], [2, 1, 1]);
    assert_eq!(report["read_row_hits"], 1);

    let mut child = Command::new(env!("CARGO_BIN_EXE_casemate"))
        .args([&["dram", "-"], &args[2..]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    let from_input = child.wait_with_output().unwrap();
    assert_eq!(from_input.stdout, from_file.stdout);
}

#[test]
fn accuracy_is_printed_for_every_stream_of_the_reference() {
    let output = casemate(&["bench", "accuracy", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rows = report["dram"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    let table = stdout(&casemate(&["bench", "accuracy"]));
    let documented = include_str!("../../docs/accuracy.md");
    for row in rows {
        let stream = row["stream"].as_str().unwrap();
        assert!(table.contains(stream), "{stream}");
    }
    // The page has the tables as they are printed.
    for line in table.lines() {
        assert!(documented.contains(line), "docs/accuracy.md is stale: {line}");
    }
}
