//! Who may look at unverified values.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that open unverified values, each after a comparison or, in counts, where nothing is
/// untrusted.
const STEPS: [&str; 7] = [
    "pages/src/bytes.rs",
    "pages/src/counts.rs",
    "pages/src/logged_lines.rs",
    "schemes/src/unit/bytes.rs",
    "schemes/src/unit/bytes/counter_macs.rs",
    "schemes/src/unit/bytes/log.rs",
    "schemes/src/unit/time_stamps.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_verification_steps_open_unverified_values() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&workspace, &mut files);
    let mut opening: Vec<String> = files
        .into_iter()
        .filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("VerificationStep")))
        .filter_map(|file| Some(file.strip_prefix(&workspace).ok()?.display().to_string()))
        .filter(|file| !file.starts_with("core/"))
        .collect();
    opening.sort();
    assert_eq!(opening, STEPS);
}
