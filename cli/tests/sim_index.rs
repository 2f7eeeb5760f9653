//! The index of a folder of results has every run in it, whichever commands made them and whenever.

mod common;

use common::{Folder, Run, run as casemate};
use std::collections::BTreeSet;
use std::fs;

/// A folder with a trace of a thousand loads.
fn folder_with_trace(name: &str) -> Folder {
    let folder = Folder::new(name);
    let lines: String = (0..1000).map(|i| format!("3 {}\n", 0x10000 + i * 4096)).collect();
    fs::write(folder.path("a.ramulator-o3"), lines).expect("the folder is ours");
    folder
}

fn sim(folder: &Folder, more: &[&str]) -> Run {
    let (trace, out) = (folder.arg("a.ramulator-o3"), folder.arg("out"));
    let run = casemate(&[&["sim", "--trace", &trace, "-o", &out], more].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

/// Rows of a table without quotes in it, each with its column's name.
fn rows(folder: &Folder, file: &str) -> Vec<Vec<(String, String)>> {
    let text = fs::read_to_string(folder.path("out").join(file)).expect("there is an index");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().expect("a header").collect();
    lines.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

fn column<'a>(rows: &'a [Vec<(String, String)>], name: &str) -> Vec<&'a str> {
    let cell = |row: &'a Vec<(String, String)>| row.iter().find(|(column, _)| column == name);
    rows.iter().filter_map(cell).map(|(_, value)| value.as_str()).collect()
}

#[test]
fn a_second_command_adds_its_runs() {
    let folder = folder_with_trace("index-second");
    sim(&folder, &["--scheme", "none"]);
    sim(&folder, &["--scheme", "aise+bmt", "--set", "l2.size_bytes=64K"]);
    sim(&folder, &["--scheme", "aise+bmt"]);
    let rows = rows(&folder, "runs.csv");
    assert_eq!(column(&rows, "scheme"), ["aise+bmt", "aise+bmt", "none"]);
    // Of the three only one has the unprotected run of the same machine to be compared with.
    let overheads = column(&rows, "overhead");
    assert_eq!(overheads.iter().filter(|overhead| !overhead.is_empty()).count(), 1);
    let sizes: BTreeSet<&str> = column(&rows, "config.l2.size_bytes").into_iter().collect();
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    for name in column(&rows, "folder") {
        assert!(folder.path("out").join(name).join("result.json").is_file(), "{name}");
    }
}

#[test]
fn commands_at_the_same_time_lose_no_row() {
    let folder = folder_with_trace("index-parallel");
    let sizes = ["64K", "128K", "256K", "512K", "1M", "2M"];
    std::thread::scope(|threads| {
        for size in sizes {
            let key = format!("l2.size_bytes={size}");
            let folder = &folder;
            threads.spawn(move || sim(folder, &["--scheme", "none", "--set", &key]));
        }
    });
    assert_eq!(rows(&folder, "runs.csv").len(), sizes.len());
    let all = fs::read_to_string(folder.path("out").join("runs-all.csv")).expect("it is there");
    assert_eq!(all.lines().count(), 1 + sizes.len());
}

#[test]
fn what_cannot_be_read_is_named_and_left_out() {
    let folder = folder_with_trace("index-foreign");
    let foreign = folder.path("out").join("foreign");
    fs::create_dir_all(&foreign).expect("the folder is ours");
    fs::write(foreign.join("result.json"), "{}").expect("the folder is ours");
    let run = sim(&folder, &["--scheme", "none"]);
    assert!(run.stderr.contains("foreign/result.json"), "{}", run.stderr);
    assert!(run.stderr.contains("runs.csv is without it"), "{}", run.stderr);
    assert_eq!(rows(&folder, "runs.csv").len(), 1);
}
