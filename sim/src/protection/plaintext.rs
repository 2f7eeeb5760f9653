//! Pages that lie in memory as they are: shared libraries and a program's input (OTP/SNC, section
//! 4.3). No trace tells which pages are such, so a configuration names them.

use serde::{Deserialize, Serialize};

use crate::machine::backing::PAGE_BYTES;
use crate::trace::process::{in_process, process_of};

/// The most ranges of a list.
const MOST: usize = 8;
const NONE: &str = "none";

/// Virtual addresses from one up to another, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    last: u64,
}

/// Ranges of virtual addresses, of any process: `7f0000000000-7fffffffffff`, as in
/// `/proc/PID/maps`; several with a space between them, or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlaintextPages([Option<Range>; MOST]);

/// Why a text is no list of ranges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaintextPagesError {
    /// A part is no range.
    #[error(
        "plaintext_pages: {0:?} is no range; write FROM-TO in hexadecimal digits, for example \
         7f0000000000-7fffffffffff, or none"
    )]
    Range(String),
    /// There are too many.
    #[error("plaintext_pages: {0} ranges; {MOST} at most")]
    Many(usize),
}

impl PlaintextPages {
    /// No pages.
    pub const NONE: PlaintextPages = PlaintextPages([None; MOST]);

    /// Whether the page that an address is in has a byte of them.
    #[must_use]
    pub fn contains(&self, virtual_address: u64) -> bool {
        let address = in_process(virtual_address, process_of(virtual_address));
        let first = address & !(PAGE_BYTES - 1);
        let last = first | (PAGE_BYTES - 1);
        self.0.iter().flatten().any(|range| range.first <= last && first <= range.last)
    }
}

impl TryFrom<String> for PlaintextPages {
    type Error = PlaintextPagesError;

    fn try_from(text: String) -> Result<Self, PlaintextPagesError> {
        let mut pages = PlaintextPages::NONE;
        if text.trim() == NONE {
            return Ok(pages);
        }
        let parts: Vec<&str> = text.split_whitespace().collect();
        if parts.len() > MOST {
            return Err(PlaintextPagesError::Many(parts.len()));
        }
        for (part, place) in parts.iter().zip(&mut pages.0) {
            let range =
                range(part).ok_or_else(|| PlaintextPagesError::Range((*part).to_owned()))?;
            *place = Some(range);
        }
        Ok(pages)
    }
}

fn range(text: &str) -> Option<Range> {
    let (first, last) = text.split_once('-')?;
    let address = |digits: &str| {
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        u64::from_str_radix(digits, 16).ok()
    };
    let range = Range { first: address(first)?, last: address(last)? };
    (range.first <= range.last).then_some(range)
}

impl From<PlaintextPages> for String {
    fn from(pages: PlaintextPages) -> String {
        let ranges: Vec<String> = pages
            .0
            .iter()
            .flatten()
            .map(|range| format!("{:x}-{:x}", range.first, range.last))
            .collect();
        if ranges.is_empty() { NONE.to_owned() } else { ranges.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str) -> Result<PlaintextPages, PlaintextPagesError> {
        PlaintextPages::try_from(text.to_owned())
    }

    #[test]
    fn a_page_is_plain_if_a_byte_of_it_is_named_in_any_process() {
        let some = pages("401800-402fff 0x7f0000000000-7fffffffffff").expect("two ranges");
        for (address, is_plain) in [
            (0x400fff, false),
            (0x401000, true),
            (0x402fff, true),
            (0x403000, false),
            (0x7f12_3456_7890, true),
        ] {
            for process in [0, 1, 7] {
                assert_eq!(some.contains(in_process(address, process)), is_plain, "{address:x}");
            }
        }
        assert!(!pages("none").expect("none").contains(0x401000));
    }

    #[test]
    fn what_is_no_range_is_named_and_a_range_comes_back_as_it_is_written() {
        for wrong in ["", "5", "9-5", "x-y", "1-2-3", "1-2 nothing", "1-fffffffffffffffff"] {
            let found = pages(wrong);
            let is_empty = found == Ok(PlaintextPages::NONE) && wrong.is_empty();
            assert!(is_empty || matches!(found, Err(PlaintextPagesError::Range(_))), "{wrong:?}");
        }
        assert_eq!(pages(&"1-2 ".repeat(9)), Err(PlaintextPagesError::Many(9)));
        for text in ["none", "401000-402fff 7f0000000000-7fffffffffff"] {
            assert_eq!(String::from(pages(text).expect("right")), text);
        }
    }
}
