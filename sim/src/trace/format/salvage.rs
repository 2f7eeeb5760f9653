//! Finds what is whole in a damaged trace.

use std::io::{self, Read, Seek, SeekFrom};

use super::frame::{BLOCK_SYNC, INDEX_SYNC};

/// A part of a trace that salvage passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    pub offset: u64,
    /// What is wrong with it.
    pub what: String,
    /// Where reading went on; `None` if nothing whole came after it.
    pub resumed: Option<u64>,
    /// How many instructions are missing; `None` where that cannot be known.
    pub lost_instructions: Option<u64>,
}

/// Where the next block or index may begin, from `from` on: where its first bytes are.
pub fn next_frame(input: &mut (impl Read + Seek), from: u64) -> io::Result<Option<u64>> {
    input.seek(SeekFrom::Start(from))?;
    let mut window = Vec::new();
    // The offset of the window's first byte.
    let mut start = from;
    loop {
        let read = input.by_ref().take(1 << 16).read_to_end(&mut window)?;
        let is_sync = |bytes: &[u8]| bytes == BLOCK_SYNC || bytes == INDEX_SYNC;
        if let Some(at) = window.windows(BLOCK_SYNC.len()).position(is_sync) {
            return Ok(Some(start + at as u64));
        }
        if read == 0 {
            return Ok(None);
        }
        // A mark may lie across two reads.
        let done = window.len().saturating_sub(BLOCK_SYNC.len() - 1);
        window.drain(..done);
        start += done as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_mark_is_found_wherever_it_lies() {
        for at in [0, 1, 7, 8, 65_530, 65_535, 65_536, 131_070] {
            let mut bytes = vec![0xb1; at];
            bytes.extend(BLOCK_SYNC);
            bytes.extend([0xb1; 9]);
            let found = next_frame(&mut Cursor::new(&bytes), 0).expect("memory can be read");
            assert_eq!(found, Some(at as u64));
            let again = next_frame(&mut Cursor::new(&bytes), at as u64 + 1).expect("likewise");
            assert_eq!(again, None);
        }
    }
}
