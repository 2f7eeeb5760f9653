//! What the tests of `casemate sim` share.

use serde_json::Value;
use std::fs;

use super::{Folder, Run, run as casemate};

/// A folder with two traces of 20,000 loads and stores, one of them converted to our format.
pub fn traces(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (file, stride) in [("near", 8), ("far", 4096)] {
        let line = |i: u64| {
            let address = 0x10000 + i * stride % (1 << 22);
            format!(
                "3 {address} {}\n",
                if i.is_multiple_of(3) { format!("{}", address + 64) } else { String::new() }
            )
        };
        let lines: String = (0..20_000).map(line).map(|line| line.replace(" \n", "\n")).collect();
        fs::write(folder.path(&format!("{file}.ramulator-o3")), lines).expect("the folder is ours");
        let (from, own) =
            (folder.arg(&format!("{file}.ramulator-o3")), folder.arg(&format!("{file}.casetrace")));
        let run = casemate(&["trace", "convert", "--from", "ramulator-o3", &from, "-o", &own]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    folder
}

pub fn sim(arguments: &[&str]) -> Run {
    casemate(&[&["sim"], arguments].concat())
}

pub fn json(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

/// Every file below a folder, with its bytes.
pub fn files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("it is there") {
            let path = entry.expect("it is read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below").display().to_string();
                all.push((name, fs::read(&path).expect("it is read")));
            }
        }
    }
    all.sort();
    all
}
