//! Files that a document quotes: what stands between `<!-- FILE path -->` and `<!-- /FILE -->` is
//! that file of the repository, as a block of code.

const BEGIN: &str = "<!-- FILE ";
const END: &str = "<!-- /FILE -->";

/// The document with the files as `read` has them in place of what it quoted. `None` if a quotation
/// does not end, or quotes a file that there is not.
pub fn with_files(document: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut parts = document.split(BEGIN);
    let mut fresh = parts.next()?.to_owned();
    for part in parts {
        let (path, rest) = part.split_once(" -->")?;
        let (_, after) = rest.split_once(END)?;
        let (file, language) = (read(path)?, language(path));
        let code = file.trim_end();
        fresh += &format!("{BEGIN}{path} -->\n\n```{language}\n{code}\n```\n\n{END}{after}");
    }
    Some(fresh)
}

/// By which name a block of code is highlighted.
fn language(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((_, "rs")) => "rust",
        Some((_, ending)) => ending,
        None => "text",
    }
}
