//! What lay outside the protection, in words.

use casemate_keeper::{Statistics, UnprotectedKind, UnprotectedMemory};

use crate::size::format as size;

/// The most characters of a name that are shown: its end tells most.
const NAME_CHARS: usize = 60;
/// What is less is not worth a line of the summary.
const LEAST_BYTES: u64 = 1 << 20;
/// The most that a sentence names.
const MOST_ITEMS: usize = 3;
/// The most characters of a line of the summary, without its label.
const LINE_CHARS: usize = 87;

/// The largest first, without what is less than 1 MiB beside a larger one: `128 MiB /dev/zero
/// (shared anonymous)`.
pub fn items(statistics: &Statistics) -> Vec<String> {
    let found = statistics.unprotected_largest.iter().enumerate();
    let worth = found.filter(|(rank, memory)| *rank == 0 || memory.bytes >= LEAST_BYTES);
    worth.take(MOST_ITEMS).map(|(_, memory)| item(memory)).collect()
}

/// The same, in lines, without what is less than 1 MiB.
pub fn lines(statistics: &Statistics) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for memory in statistics.unprotected_largest.iter().filter(|m| m.bytes >= LEAST_BYTES) {
        let item = item(memory);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + item.chars().count() <= LINE_CHARS => {
                line.push_str(", ");
                line.push_str(&item);
            }
            _ => lines.push(item),
        }
    }
    lines
}

fn item(memory: &UnprotectedMemory) -> String {
    let kind = match memory.kind {
        UnprotectedKind::SharedFile => "file, shared",
        UnprotectedKind::PrivateFile => "file, private",
        UnprotectedKind::SharedAnonymous => "shared anonymous",
        UnprotectedKind::Memfd => "memfd",
        UnprotectedKind::SystemV => "System V",
        UnprotectedKind::Anonymous => "private anonymous",
    };
    let name = shortened(&memory.name);
    let space = if name.is_empty() { "" } else { " " };
    format!("{}{space}{name} ({kind})", size(memory.bytes))
}

fn shortened(name: &str) -> String {
    let chars = name.chars().count();
    if chars <= NAME_CHARS {
        return name.to_owned();
    }
    let end: String = name.chars().skip(chars - (NAME_CHARS - 1)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Statistics {
        let memory = |name: &&str| UnprotectedMemory {
            name: (*name).to_owned(),
            kind: UnprotectedKind::SharedFile,
            bytes: 64 << 20,
        };
        Statistics {
            unprotected_largest: names.iter().map(memory).collect(),
            ..Statistics::default()
        }
    }

    #[test]
    fn a_sentence_names_three_at_most_and_nothing_small_beside_them() {
        let names = ["a", "b", "c", "d"];
        let mut statistics = of(&names);
        assert_eq!(items(&statistics).len(), 3);
        statistics.unprotected_largest[1].bytes = (1 << 20) - 1;
        statistics.unprotected_largest[2].bytes = 1 << 20;
        statistics.unprotected_largest.truncate(3);
        assert_eq!(items(&statistics), ["64 MiB a (file, shared)", "1 MiB c (file, shared)"]);
        statistics.unprotected_largest[0].bytes = 4096;
        statistics.unprotected_largest.truncate(1);
        assert_eq!(items(&statistics), ["4 KiB a (file, shared)"]);
    }

    #[test]
    fn a_line_has_as_many_as_fit() {
        assert_eq!(
            lines(&of(&["/tmp/x", "", "/tmp/a/rather/long/name/of/a/file/in/a/folder"])),
            [
                "64 MiB /tmp/x (file, shared), 64 MiB (file, shared)",
                "64 MiB /tmp/a/rather/long/name/of/a/file/in/a/folder (file, shared)"
            ]
        );
        assert!(lines(&of(&[])).is_empty());
        let mut small = of(&["/tmp/x"]);
        small.unprotected_largest[0].bytes = LEAST_BYTES - 4096;
        assert!(lines(&small).is_empty() && items(&small).len() == 1);
    }

    #[test]
    fn a_long_name_is_cut_at_its_beginning() {
        let name = format!("/{}/end", "d".repeat(4000));
        let line = &lines(&of(&[&name]))[0];
        assert!(line.chars().count() <= LINE_CHARS, "{line}");
        assert!(
            line.starts_with("64 MiB …ddd") && line.ends_with("d/end (file, shared)"),
            "{line}"
        );
    }
}
