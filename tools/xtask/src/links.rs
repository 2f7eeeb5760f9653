//! Links and headings of a Markdown text.

/// The links of a text to files of the repository: a path (empty: this file), and a heading (empty:
/// the whole file).
pub fn links(text: &str) -> Vec<(&str, &str)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_local = |target: &&str| !target.contains("://") && !target.contains(char::is_whitespace);
    targets.filter(is_local).map(|target| target.split_once('#').unwrap_or((target, ""))).collect()
}
