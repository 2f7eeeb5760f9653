//! Tells the simulator what code it is, so that a result is found again only by the code that computed it.

use std::fs;
use std::path::{Path, PathBuf};

/// What results depend on: the protocols and the machine around them.
const SOURCES: [&str; 2] = ["../engine/src", "src"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    // FNV-1a, 128 bits: against accidents, which is all that is to be feared here.
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for path in files {
        let name = path.to_string_lossy().into_owned();
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        for byte in name.bytes().chain([0]).chain(text) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
    println!("cargo::rustc-env=CASEMATE_SOURCES={hash:032x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}
