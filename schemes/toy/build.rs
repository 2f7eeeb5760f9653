//! Copies the sources of `casemate-schemes` and adds the two toys of `docs/design/extending.md`:
//! their files, and the changes of `toy.diff`. What the document quotes is what is compiled.
//!
//! `toy.diff` has a part `--- FILE` for each file, with hunks `@@ START`. Each hunk is searched for
//! below the one before it: first the line that begins with START, then the lines that the hunk
//! keeps (` `) or takes out (`-`), which lie together; lines that begin with `+` are new.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The toys' files, and where they lie in the copy.
const TOYS: [(&str, &str); 2] =
    [("toy.rs", "counters/toy.rs"), ("mac_tree.rs", "unit/integrity/mac_tree.rs")];
const DIFF: &str = "toy.diff";
const SOURCES: &str = "../src";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCES}");
    println!("cargo::rerun-if-changed={DIFF}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let copy = out.join("schemes");
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("the last copy can be removed");
    }
    copy_folder(Path::new(SOURCES), &copy);
    for (toy, place) in TOYS {
        println!("cargo::rerun-if-changed={toy}");
        fs::copy(toy, copy.join(place)).unwrap_or_else(|error| panic!("{toy}: {error}"));
    }
    apply(&read(Path::new(DIFF)), &copy);
    // `include!` takes no attributes of the crate.
    let library = copy.join("lib.rs");
    let text = read(&library);
    let items: Vec<_> = text.lines().filter(|line| !line.starts_with("//!")).collect();
    write(&library, &items.join("\n"));
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder for the copy");
    for entry in fs::read_dir(from).expect("the sources of casemate-schemes").flatten() {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// Makes the changes of a diff in the copy.
fn apply(diff: &str, copy: &Path) {
    for part in diff.split("--- ").skip(1) {
        let (name, hunks) = part.split_once('\n').expect("a file's name and its hunks");
        let inside = name.strip_prefix("schemes/src/").expect("a source of casemate-schemes");
        let path = copy.join(inside);
        let text = read(&path);
        let mut lines: Vec<&str> = text.lines().collect();
        let mut from = 0;
        for hunk in hunks.split("@@ ").skip(1) {
            from = change(&mut lines, from, hunk).unwrap_or_else(|| {
                panic!("{DIFF} is stale, {name} has no longer the lines of this hunk:\n@@ {hunk}")
            });
        }
        write(&path, &lines.join("\n"));
    }
}

/// Makes the change of one hunk below line `from`. The line behind it; `None` if the old lines are
/// not there.
fn change<'a>(lines: &mut Vec<&'a str>, from: usize, hunk: &'a str) -> Option<usize> {
    let (start, body) = hunk.split_once('\n')?;
    let side = |other: char| {
        body.lines().filter(move |line| !line.starts_with(other)).map(|line| &line[1..])
    };
    let (old, new): (Vec<_>, Vec<_>) = (side('+').collect(), side('-').collect());
    let begins = lines[from..].iter().position(|line| line.starts_with(start))? + from;
    // A hunk that only adds does so behind the line that it starts from.
    let at = match old.is_empty() {
        true => begins + 1,
        false => begins + lines[begins..].windows(old.len()).position(|there| there == old)?,
    };
    let behind = at + new.len();
    lines.splice(at..at + old.len(), new);
    Some(behind)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
