//! Which of the known names somebody may have meant.

/// The known name that is most like `name`; `None` if none is at all like it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = known.into_iter().map(|candidate| (distance(name, candidate), candidate)).min()?;
    // More than a third of the letters wrong is another word.
    let most = (name.chars().count().max(best.1.chars().count()) / 3).max(1);
    (best.0 <= most).then_some(best.1)
}

/// Letters to put in, take out or change to make one word of the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        // kitten -> sitten -> sittin -> sitting; and of nothing, all letters.
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("flaw", "lawn"), 2);
    }

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let known = ["l2.size_bytes", "l2.ways", "core.issue_width"];
        assert_eq!(nearest("l2.size_byte", known), Some("l2.size_bytes"));
        assert_eq!(nearest("core.isue_width", known), Some("core.issue_width"));
        assert_eq!(nearest("frobnicate", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
