//! What Valgrind's tool lackey says with `--trace-mem=yes`: `I  ADDRESS,SIZE` for an instruction,
//! then ` L`, ` S` and ` M` (load, store, both) for what it did. Addresses are hexadecimal, sizes
//! decimal.

use std::io::{BufRead, BufReader, Read};

use super::Stream;
use crate::trace::Source;
use crate::trace::error::TraceError;
use crate::trace::record::{Branch, Instruction, Reference};

/// Instructions from its lines.
pub struct Lackey<R: Read> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// The instruction whose references are being read.
    current: Option<Instruction>,
    skip: u64,
    ended: bool,
    complete: bool,
}

/// What a line of lackey's output holds.
enum Line {
    Instruction(u64, u8),
    Load(Reference),
    Store(Reference),
    Modify(Reference),
    /// Valgrind's own remarks.
    Remark,
}

impl<R: Read> Lackey<R> {
    /// Reads from `input`, without the first instructions.
    pub fn new(input: R, skip: u64) -> Self {
        let input = BufReader::with_capacity(1 << 18, input);
        Lackey { input, line: Vec::new(), current: None, skip, ended: false, complete: false }
    }

    fn next_line(&mut self) -> Result<Option<Line>, TraceError> {
        self.line.clear();
        // Its lines are short; another writer's on the same pipe may not be.
        self.input.by_ref().take(4096).read_until(b'\n', &mut self.line)?;
        if !self.line.ends_with(b"\n") {
            // Also a line that is cut off: its writer was killed.
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&self.line);
        // It ends with a remark.
        self.complete = text.starts_with("==");
        parse(&text).map(Some).ok_or_else(|| {
            let line = text.trim_end();
            TraceError::Recorder(format!("Valgrind said something that has no meaning: {line:?}"))
        })
    }

    /// The instruction that is complete once the next one begins at `next_pc`.
    fn complete(&mut self, next_pc: Option<u64>) -> Option<Instruction> {
        let mut done = self.current.take()?;
        let end = done.pc.wrapping_add(u64::from(done.length_bytes));
        // There is no code to look at: what goes elsewhere is a branch. One that falls through
        // is not seen.
        if next_pc.is_some_and(|next| next != end) {
            done.branch = Branch::Taken;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some(done)
    }

    /// Reads up to the next complete instruction.
    fn advance(&mut self) -> Result<Option<Instruction>, TraceError> {
        while !self.ended {
            let Some(line) = self.next_line()? else {
                self.ended = true;
                return Ok(self.complete(None));
            };
            let references = self.current.as_mut().map(|current| &mut current.references);
            match (line, references) {
                (Line::Instruction(pc, length_bytes), _) => {
                    let done = self.complete(Some(pc));
                    let begun = Instruction { pc, length_bytes, ..Instruction::default() };
                    self.current = Some(begun);
                    if done.is_some() {
                        return Ok(done);
                    }
                }
                (Line::Load(load), Some(references)) => references.push(load),
                (Line::Store(store), Some(references)) => references.push(store),
                (Line::Modify(load), Some(references)) => {
                    references.push(load);
                    references.push(Reference::store(load.address, load.size_bytes));
                }
                (Line::Remark | Line::Load(_) | Line::Store(_) | Line::Modify(_), _) => {}
            }
        }
        Ok(None)
    }
}

fn parse(line: &str) -> Option<Line> {
    if line.starts_with("==") || line.starts_with("--") || line.trim().is_empty() {
        return Some(Line::Remark);
    }
    let (kind, place) = line.split_at_checked(3)?;
    let (address, size) = place.trim_end().split_once(',')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let reference = |size: &str| Some(Reference::load(address, size.parse().ok()?));
    Some(match kind {
        "I  " => Line::Instruction(address, size.parse().ok()?),
        " L " => Line::Load(reference(size)?),
        " M " => Line::Modify(reference(size)?),
        " S " => Line::Store(Reference::store(address, size.parse().ok()?)),
        _ => return None,
    })
}

impl<R: Read> Source for Lackey<R> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        match self.advance()? {
            Some(done) => {
                *into = done;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

impl<R: Read> Stream for Lackey<R> {
    fn is_complete(&self) -> bool {
        self.complete
    }
}
