//! How many lines of Rust each crate has.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Count {
    code: usize,
    tests: usize,
    words: usize,
}

/// Prints a table: code, tests, comments.
pub fn print(root: &Path) -> Result<()> {
    println!("\n{:<16} {:>8} {:>8} {:>9}", "crate", "code", "tests", "comments");
    let mut all = Count::default();
    let mut crates = crates_in(root)?;
    crates.extend(crates_in(&root.join("tools"))?);
    crates.sort();
    for path in crates {
        let mut count = Count::default();
        walk(&path, false, &mut count)?;
        let name = path.strip_prefix(root)?.display().to_string();
        println!("{name:<16} {:>8} {:>8} {:>9}", count.code, count.tests, count.words);
        all.code += count.code;
        all.tests += count.tests;
        all.words += count.words;
    }
    println!("{:<16} {:>8} {:>8} {:>9}", "all", all.code, all.tests, all.words);
    Ok(())
}

/// The folders of crates directly below a folder.
fn crates_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{}: cannot be read", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    Ok(paths.into_iter().filter(|path| path.join("Cargo.toml").exists()).collect())
}

fn walk(directory: &Path, tests: bool, count: &mut Count) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        // The pager's simulator has the pager's sources by links.
        if entry.file_type()?.is_symlink() {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(
                    &path,
                    tests || matches!(name, "tests" | "benches" | "fuzz" | "vopr" | "toy"),
                    count,
                )?;
            }
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path)?;
            add(&text, tests, count);
        }
    }
    Ok(())
}

fn add(text: &str, tests: bool, count: &mut Count) {
    let mut tests = tests;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Test modules stand at the end of their files.
        tests |= line == "#[cfg(test)]";
        if line.starts_with("//") {
            count.words += 1;
        } else if tests {
            count.tests += 1;
        } else {
            count.code += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_tests_and_comments_are_told_apart() {
        let mut count = Count::default();
        add("//! Doc\n\nfn a() {}\n#[cfg(test)]\nmod tests {\n  // why\n}\n", false, &mut count);
        assert_eq!((count.code, count.tests, count.words), (1, 3, 2));
    }
}
