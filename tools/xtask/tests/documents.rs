//! Links and paths of the documents lead to files and headings that exist, every page is in the
//! book, and quoted files are quoted as they are.

#[path = "../src/links.rs"]
mod links;
#[path = "../src/quotes.rs"]
mod quotes;

use links::links;
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

/// The headings of a text, as links name them.
fn headings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name = |line: &str| line.trim_start_matches('#').trim().to_lowercase();
    lines
        .map(|line| name(line).chars().filter(is_kept).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let text = "[a](b.md#c) [d](#e) [f](https://g.h) ![i](j/k.svg)";
    assert_eq!(links(text), [("b.md", "c"), ("", "e"), ("j/k.svg", "")]);
    assert_eq!(headings("# A `b`: c, d\ntext\n"), ["a-b-c-d"]);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    documents(&workspace, &mut found);
    assert!(found.iter().any(|file| file.ends_with("docs/README.md")));
    let mut dead = Vec::new();
    for file in found {
        let text = fs::read_to_string(&file).expect("a document");
        let folder = file.parent().expect("a folder");
        for (target, heading) in links(&text) {
            let target = if target.is_empty() { file.clone() } else { folder.join(target) };
            let is_there = match heading {
                "" => target.exists(),
                _ => fs::read_to_string(&target)
                    .is_ok_and(|text| headings(&text).iter().any(|other| other == heading)),
            };
            if !is_there {
                dead.push(format!("{}: {}#{heading}", file.display(), target.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

/// Paths in documents that are no files of the repository.
const NOT_HERE: [(&str, &str); 2] = [
    // The reader of docs/design/extending.md makes them.
    ("docs/design/extending.md", "schemes/src/counters/toy.rs"),
    ("docs/design/extending.md", "schemes/src/unit/integrity/mac_tree.rs"),
];

/// The paths of files in a text's backticks: with a slash, and the ending of a source or a
/// document.
fn paths(text: &str) -> Vec<&str> {
    let is_path = |word: &&str| {
        let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_one = !word.contains(char::is_whitespace) && !word.starts_with(['/', '-', '~']);
        is_one && word.contains('/') && matches!(ending, "rs" | "toml" | "sh" | "md" | "c")
    };
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_path).collect()
}

/// Whether a file is there; `*` stands for any name, `{a,b}` for both.
fn is_there(folder: &Path, path: &str) -> bool {
    if let Some((before, rest)) = path.split_once('{') {
        let (names, after) = rest.split_once('}').expect("a brace is closed");
        return names.split(',').all(|name| is_there(folder, &format!("{before}{name}{after}")));
    }
    match path.split_once("*/") {
        Some((before, after)) => fs::read_dir(folder.join(before))
            .is_ok_and(|entries| entries.flatten().any(|entry| entry.path().join(after).exists())),
        None => folder.join(path).exists(),
    }
}

#[test]
fn every_path_in_a_document_is_one_of_the_repository() {
    assert_eq!(
        paths("`a/b.rs` c/d.rs `e.rs`, `f/g.rs h`\n`i/j.md` `/k/l.c`"),
        ["a/b.rs", "i/j.md"]
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(is_there(&root, "tools/xtask/src/{links,quotes}.rs"));
    assert!(!is_there(&root, "tools/xtask/src/{links,nothing}.rs"));
    assert!(is_there(&root, "papers/*/config.toml") && !is_there(&root, "papers/*/nothing.toml"));
    let mut found = Vec::new();
    documents(&root, &mut found);
    let mut dead = Vec::new();
    for file in found {
        let name = file.strip_prefix(&root).expect("it lies there").to_str().expect("Unicode");
        // What a release said of files stays as it was; results are the program's words.
        if name == "CHANGELOG.md" || name.contains("/results/") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a document");
        let folder = file.parent().expect("a folder");
        let lacks = |path: &&str| !is_there(&root, path) && !is_there(folder, path);
        let known = |path: &&str| NOT_HERE.contains(&(name, path));
        dead.extend(
            paths(&text)
                .iter()
                .filter(|path| lacks(path) && !known(path))
                .map(|path| format!("{name}: {path}")),
        );
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn every_page_of_the_documents_is_in_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a root");
    let mut listed = Vec::new();
    for index in [root.join("docs/SUMMARY.md"), root.join("DECISIONS.md")] {
        let text = fs::read_to_string(&index).expect("an index");
        let folder = index.parent().expect("a folder");
        listed.extend(links(&text).iter().flat_map(|(page, _)| folder.join(page).canonicalize()));
        listed.push(index);
    }
    let mut pages = Vec::new();
    documents(&root.join("docs"), &mut pages);
    let missing: Vec<_> = pages.iter().filter(|page| !listed.contains(page)).collect();
    assert!(missing.is_empty(), "pages that docs/SUMMARY.md does not list: {missing:#?}");
}

#[test]
fn quoted_files_are_as_they_are() {
    let read = |path: &str| (path == "a.rs").then(|| "fn a() {}\n".to_owned());
    let old = "x\n<!-- FILE a.rs -->\nold\n<!-- /FILE -->\ny\n";
    let new = "x\n<!-- FILE a.rs -->\n\n```rust\nfn a() {}\n```\n\n<!-- /FILE -->\ny\n";
    assert_eq!(quotes::with_files(old, read).as_deref(), Some(new));
    let changes = quotes::with_files("<!-- FILE a.diff --><!-- /FILE -->", |_| Some("+a".into()));
    let quoted = "<!-- FILE a.diff -->\n\n```diff\n+a\n```\n\n<!-- /FILE -->";
    assert_eq!(changes.as_deref(), Some(quoted));
    assert_eq!(quotes::with_files("<!-- FILE b.rs -->\n<!-- /FILE -->", read), None);

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/design/extending.md");
    let text = fs::read_to_string(&page).expect("the page is there");
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let fresh = quotes::with_files(&text, read).expect("it quotes files of the repository");
    assert!(text.contains("<!-- FILE "), "the page quotes nothing");
    let stale = text.lines().zip(fresh.lines()).find(|(is, should)| is != should);
    assert_eq!(stale, None, "docs/design/extending.md is stale: run `cargo xtask tables`");
    assert_eq!(text, fresh, "docs/design/extending.md is stale: run `cargo xtask tables`");
}
