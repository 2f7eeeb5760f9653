//! Traces that are text, one record a line.

use std::io::{BufRead, Read};

use super::{Parse, broken};
use crate::trace::Source;
use crate::trace::error::{Position, TraceError};
use crate::trace::record::Instruction;

/// No line of any of these formats is nearly as long.
const MAX_LINE_BYTES: u64 = 1024;

/// Reads them.
pub struct Lines {
    input: Box<dyn BufRead>,
    parse: Parse,
    /// Lines and bytes read.
    line: u64,
    offset: u64,
    text: Vec<u8>,
}

impl Lines {
    /// Reads `input`, whose lines `parse` understands.
    #[must_use]
    pub(super) fn new(input: Box<dyn BufRead>, parse: Parse) -> Self {
        Lines { input, parse, line: 0, offset: 0, text: Vec::new() }
    }
}

impl Source for Lines {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        self.text.clear();
        let mut limited = self.input.by_ref().take(MAX_LINE_BYTES);
        let read = limited.read_until(b'\n', &mut self.text);
        if read.map_err(|error| broken(error, self.offset))? == 0 {
            return Ok(false);
        }
        self.line += 1;
        self.offset += self.text.len() as u64;
        let malformed = |what| TraceError::Malformed { position: Position::Line(self.line), what };
        if self.text.len() as u64 == MAX_LINE_BYTES && !self.text.ends_with(b"\n") {
            return Err(malformed("the line has more than 1024 bytes".to_owned()));
        }
        let line = std::str::from_utf8(&self.text);
        let line = line.map_err(|_| malformed("the line is no text".to_owned()))?;
        into.clear();
        (self.parse)(line, into).map_err(malformed)?;
        Ok(true)
    }
}

/// The words of a line; an error names what it should have been.
pub(super) fn words<'a>(
    line: &'a str,
    expected: &str,
) -> Result<(&'a str, &'a str, Option<&'a str>), String> {
    let mut words = line.split_ascii_whitespace();
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(first), Some(second), third, None) => Ok((first, second, third)),
        _ => Err(format!("found {:?}, expected {expected}", line.trim_end())),
    }
}

/// A number with the base that the format gives it.
pub(super) fn number(word: &str, digits: &str, base: u32) -> Result<u64, String> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| (byte as char).is_digit(base));
    let number = all_digits.then(|| u64::from_str_radix(digits, base).ok()).flatten();
    let kind = if base == 16 { "hexadecimal" } else { "decimal" };
    number.ok_or_else(|| format!("{word:?} is no {kind} number of at most 64 bits"))
}

/// A hexadecimal number, whether 0x is in front or not.
pub(super) fn hexadecimal(word: &str) -> Result<u64, String> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    number(word, digits.unwrap_or(word), 16)
}
