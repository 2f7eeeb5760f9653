//! Links of the documents lead to files that are there.

use std::fs;
use std::path::{Path, PathBuf};

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let path = entry.path();
        let is_ours = |name: &std::ffi::OsStr| name != "target" && name != ".git";
        if path.is_dir() && path.file_name().is_some_and(is_ours) {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// What a text links to within the repository, without the place on the page.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_file = |target: &&str| !target.contains("://") && !target.contains(char::is_whitespace);
    let files = targets.filter(is_file).filter_map(|target| target.split('#').next());
    files.filter(|file| !file.is_empty()).collect()
}

#[test]
fn every_link_of_a_document_leads_to_a_file() {
    assert_eq!(links("[a](b.md#c) [d](#e) [f](https://g.h) ![i](j/k.svg)"), ["b.md", "j/k.svg"]);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    documents(&workspace, &mut found);
    assert!(found.iter().any(|file| file.ends_with("docs/README.md")));
    let mut dead = Vec::new();
    for file in found {
        let text = fs::read_to_string(&file).expect("a document");
        let folder = file.parent().expect("a folder");
        let missing = links(&text).into_iter().filter(|link| !folder.join(link).exists());
        dead.extend(missing.map(|link| format!("{}: {link}", file.display())));
    }
    assert!(dead.is_empty(), "{dead:#?}");
}
