//! Which of the known names may have been meant by an unknown one.

/// The known name that is most like `name`; `None` if none is at all like it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = known.into_iter().map(|candidate| (distance(name, candidate), candidate)).min()?;
    // More than a third of the letters wrong is another word.
    let most = (name.chars().count().max(best.1.chars().count()) / 3).max(1);
    (best.0 <= most).then_some(best.1)
}

/// What follows an unknown name in a sentence: the known one that is most like it, if there is
/// one.
pub fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    suggestion(nearest(name, known))
}

/// What follows an unknown name in a sentence, for which this one may have been meant. In
/// parentheses, so that the sentence can go on.
pub fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean {name}?)"))
}

/// Letters to put in, take out, change, or exchange with their neighbour, to make one word of the
/// other (Damerau and Levenshtein, no letter touched twice).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            rows[i][j] = match (i, j) {
                (0, count) | (count, 0) => count,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                    changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
                }
            };
            let exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if exchanged {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[from.len()][to.len()]
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
        // One exchange, and one beside a change.
        assert_eq!(distance("lhahs", "lhash"), 1);
        assert_eq!(distance("ab", "bac"), 2);
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
