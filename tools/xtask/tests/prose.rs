//! Lines of prose have at most 100 characters, and decisions are named as they are titled.

use std::fs;
use std::path::{Path, PathBuf};

const MOST_COLUMNS: usize = 100;

/// Folders that hold nothing that people wrote: programs of ours or others made it.
const MADE: [&str; 3] = ["target", ".git", "results"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_symlink() || MADE.iter().any(|made| name == *made) {
            continue;
        }
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// The lines of prose of a file, with their numbers from 1: comments, sentences in strings of TOML,
/// and Markdown without tables, code and lines with a link, which can be too long for a line.
fn prose<'a>(extension: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let mut in_code = false;
    let is_prose = |line: &&str| {
        let trimmed = line.trim_start();
        match extension {
            "rs" | "c" => trimmed.starts_with("//") || trimmed.starts_with("/*"),
            "toml" => {
                let begins_sentence = |key: &&str| trimmed.starts_with(&format!("{key} = \""));
                let keys = ["finding", "why", "note", "what", "stands_for", "title", "machine"];
                trimmed.contains("# ") || keys.iter().any(begins_sentence)
            }
            "md" if trimmed.starts_with("```") => {
                in_code = !in_code;
                false
            }
            "md" => !in_code && !trimmed.starts_with('|') && !line.contains("]("),
            _ => false,
        }
    };
    let mut is_prose = is_prose;
    (1..).zip(text.lines()).filter(|(_, line)| is_prose(line)).collect()
}

#[test]
fn lines_of_prose_have_at_most_100_characters() {
    let markdown = "a\n```\nb\n```\n| c |\n[d](e)\nf";
    assert_eq!(prose("md", markdown), [(1, "a"), (7, "f")]);
    assert_eq!(prose("rs", "a // b\n    /// c\n"), [(2, "    /// c")]);
    assert_eq!(
        prose("toml", "a = 1 # b\nwhy = \"c\"\nset = \"d\""),
        [(1, "a = 1 # b"), (2, "why = \"c\"")]
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut found, mut lines, mut long) = (Vec::new(), 0, Vec::new());
    files(&root, &mut found);
    for file in found {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let Some(extension @ ("rs" | "c" | "toml" | "md")) = extension else { continue };
        let text = fs::read_to_string(&file).expect("a text of the workspace");
        let prose = prose(extension, &text);
        lines += prose.len();
        let too_long = prose.iter().filter(|(_, line)| line.chars().count() > MOST_COLUMNS);
        long.extend(too_long.map(|(number, _)| format!("{}:{number}", file.display())));
    }
    assert!(lines > 10_000, "only {lines} lines were looked at");
    assert!(long.is_empty(), "{long:#?}");
}

/// A title as the name of a file: small letters and digits, a dash for whatever is between them.
fn name(title: &str) -> String {
    let title = title.to_lowercase().replace(['\'', '`'], "");
    let words = title.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[test]
fn decisions_are_named_as_they_are_titled() {
    assert_eq!(name("`--clear 25%`, and AISE's seeds"), "clear-25-and-aises-seeds");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/decisions");
    let mut decisions = Vec::new();
    files(&folder, &mut decisions);
    assert!(!decisions.is_empty());
    for file in decisions {
        let text = fs::read_to_string(&file).expect("a decision");
        let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a title");
        let found = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let (number, rest) = found.split_at(4);
        assert!(number[..3].parse::<u16>().is_ok(), "{found} has no number");
        assert_eq!(rest, name(title), "{found}");
    }
}
