//! How much memory a trace touches: lines of 64 bytes.

use std::collections::HashMap;

const LINE_BITS: u32 = 6;
/// Lines of a chunk: the bits of a word.
const CHUNK_BITS: u32 = 6;

/// A set of lines: a bit for each line, a word for each chunk of 4 KiB.
#[derive(Clone, Debug, Default)]
struct Lines {
    chunks: HashMap<u64, u64>,
    lines: u64,
    /// The line that was touched last: most are touched again at once.
    last: Option<u64>,
}

impl Lines {
    fn touch(&mut self, address: u64, size_bytes: u64) {
        let end = address.saturating_add(size_bytes.saturating_sub(1));
        for line in address >> LINE_BITS..=end >> LINE_BITS {
            if self.last.replace(line) == Some(line) {
                continue;
            }
            let bits = self.chunks.entry(line >> CHUNK_BITS).or_default();
            let bit = 1 << (line & ((1 << CHUNK_BITS) - 1));
            self.lines += u64::from(*bits & bit == 0);
            *bits |= bit;
        }
    }

    fn size_bytes(&self) -> u64 {
        self.lines << LINE_BITS
    }
}

/// What was touched.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    instructions: Lines,
    data: Lines,
}

impl Footprint {
    pub(super) fn instruction(&mut self, pc: u64, length_bytes: u64) {
        self.instructions.touch(pc, length_bytes);
    }

    pub(super) fn data(&mut self, address: u64, size_bytes: u64) {
        self.data.touch(address, size_bytes);
    }

    /// Lines that instructions were fetched from.
    #[must_use]
    pub fn instruction_bytes(&self) -> u64 {
        self.instructions.size_bytes()
    }

    /// Lines that were loaded from or stored to.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.data.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60..68 is the end of line 0 and the start of line 1; 4096 is the first line of the second
    /// chunk.
    #[test]
    fn a_line_counts_once_and_a_crossing_twice() {
        let mut lines = Lines::default();
        for (address, size) in [(0, 8), (60, 8), (0, 64), (4096, 1), (4095, 2)] {
            lines.touch(address, size);
        }
        assert_eq!(lines.lines, 4);
        lines.touch(u64::MAX, 16);
        assert_eq!(lines.size_bytes(), 5 * 64);
    }
}
