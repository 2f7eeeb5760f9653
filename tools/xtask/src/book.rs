//! The documents as a book of HTML: `docs/SUMMARY.md` lists its pages, `docs/book.toml` configures
//! mdBook. The pages keep the places that they have in the repository, so that their links hold.

use crate::links::links;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The version of mdBook that builds the book.
const MDBOOK: &str = "0.5.4";

/// Installs mdBook under `target/tools` if it is missing, builds the book into `target/book/html`,
/// and checks that every link between its pages has a target.
pub fn build() -> Result<()> {
    let target = crate::root().join("target");
    let mdbook = mdbook(&target.join("tools"))?;
    let book = target.join("book");
    if book.exists() {
        fs::remove_dir_all(&book).context("removing the last book")?;
    }
    let pages = collect(&book.join("src"))?;
    fs::copy(crate::root().join("docs/book.toml"), book.join("book.toml"))?;
    let status = Command::new(mdbook).arg("build").arg(&book).status().context("mdbook")?;
    ensure!(status.success(), "mdbook failed");
    let dead = dead_links(&book.join("html"))?;
    ensure!(dead.is_empty(), "dead links in the book:\n{}", dead.join("\n"));
    println!("{pages} pages in {}", book.join("html/index.html").display());
    Ok(())
}

fn mdbook(tools: &Path) -> Result<PathBuf> {
    let mdbook = tools.join("bin/mdbook");
    let is_there = Command::new(&mdbook)
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MDBOOK));
    if !is_there {
        // Without the server and the search index, which the book does not use.
        // Unoptimised: it is built more slowly than it is run.
        let words =
            ["install", "mdbook", "--locked", "--no-default-features", "--quiet", "--debug"];
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(words)
            .args(["--version", MDBOOK, "--root"])
            .arg(tools)
            .status()
            .context("cargo does not start")?;
        ensure!(status.success(), "cargo install mdbook failed");
    }
    Ok(mdbook)
}

/// Copies the pages of the summary, and the files other than pages that they link to, into `source`
/// at the paths that they have in the repository. Returns the number of pages.
fn collect(source: &Path) -> Result<usize> {
    let root = crate::root();
    let summary = whole_summary(&root)?;
    for (page, _) in links(&summary) {
        let text = copy(&root, source, Path::new(page))?;
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for (target, _) in links(&text) {
            let linked = folded(&folder.join(target))?;
            if !target.is_empty() && !target.ends_with(".md") && root.join(&linked).is_file() {
                copy(&root, source, &linked)?;
            } else if root.join(&linked).is_dir() {
                fs::create_dir_all(source.join(&linked))?;
            }
        }
    }
    fs::write(source.join("SUMMARY.md"), &summary)?;
    Ok(links(&summary).len())
}

/// Copies one file. Returns its text, or nothing if it is not text.
fn copy(root: &Path, source: &Path, path: &Path) -> Result<String> {
    let to = source.join(path);
    let bytes = fs::read(root.join(path)).with_context(|| path.display().to_string())?;
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    fs::write(&to, &bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// `docs/SUMMARY.md` with paths from the root of the repository, and below the index of decisions
/// each decision, in the order of the index.
fn whole_summary(root: &Path) -> Result<String> {
    let mut whole = String::new();
    for line in fs::read_to_string(root.join("docs/SUMMARY.md"))?.lines() {
        let Some((target, _)) = links(line).into_iter().next() else {
            whole.push_str(&format!("{line}\n"));
            continue;
        };
        let path = folded(&Path::new("docs").join(target))?;
        let path = path.to_str().context("a path in Unicode")?;
        whole
            .push_str(&format!("{}\n", line.replace(&format!("({target})"), &format!("({path})"))));
        if path == "DECISIONS.md" {
            let index = fs::read_to_string(root.join(path))?;
            let decisions = index.lines().filter(|line| line.starts_with("- ["));
            for line in decisions {
                let entry =
                    line.rsplit_once("),").map_or(line.to_owned(), |(l, _)| format!("{l})"));
                whole.push_str(&format!("  {entry}\n"));
            }
        }
    }
    Ok(whole)
}

/// A relative path without `.` and `..`.
fn folded(path: &Path) -> Result<PathBuf> {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if folded.pop() => {}
            Component::Normal(name) => folded.push(name),
            _ => bail!("{} leaves the repository", path.display()),
        }
    }
    Ok(folded)
}

/// The links of all HTML files below `folder` to files, or to headings, that do not exist.
fn dead_links(folder: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    html_files(folder, &mut pages)?;
    let mut dead = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page)?;
        let base = page.parent().context("a page lies in a folder")?;
        for target in attributes(&text, "href").chain(attributes(&text, "src")) {
            if target.contains(':') {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { base.join(path) };
            let is_there = match heading {
                "" => file.exists(),
                _ => fs::read_to_string(&file)
                    .is_ok_and(|text| attributes(&text, "id").any(|id| id == heading)),
            };
            if !is_there {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    Ok(dead)
}

fn html_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            html_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    Ok(())
}

/// The values of an attribute in a text of HTML.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    html.split('<').skip(1).filter_map(move |tag| {
        let tag = tag.split('>').next()?;
        tag.split_once(&start)?.1.split('"').next()
    })
}

#[cfg(test)]
mod tests {
    use super::{attributes, folded};
    use std::path::Path;

    #[test]
    fn paths_are_folded_within_the_repository() {
        assert_eq!(
            folded(Path::new("docs/./spec/../a.md")).expect("inside"),
            Path::new("docs/a.md")
        );
        assert!(folded(Path::new("docs/../../a.md")).is_err());
    }

    #[test]
    fn attributes_are_found_in_tags_only() {
        let html = r#"<a class="b" href="c.html#d">e href="f"</a><img src="g.svg">"#;
        assert_eq!(attributes(html, "href").collect::<Vec<_>>(), ["c.html#d"]);
        assert_eq!(attributes(html, "src").collect::<Vec<_>>(), ["g.svg"]);
    }
}
