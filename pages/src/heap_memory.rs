//! Metadata lines on the heap.

use crate::directory_shape::{LEVELS, LINE_BYTES, Line};
use casemate_core::UntrustedMemory;
use casemate_core::geometry::LinePlace;

/// Lines of a chunk: 1 MiB of memory.
const CHUNK_LINES: u64 = (1 << 20) / LINE_BYTES as u64;

/// Untrusted memory on the heap, in 1 MiB chunks that are allocated when first written.
#[derive(Clone, Default)]
pub struct HeapMemory {
    levels: [Vec<Option<Box<[Line]>>>; LEVELS],
}

impl HeapMemory {
    /// Empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Address space taken; the operating system backs only what was touched. Executed by tests
    /// only.
    pub fn reserved_bytes(&self) -> u64 {
        let chunks = self.levels.iter().flatten().flatten().count() as u64;
        chunks * CHUNK_LINES * LINE_BYTES as u64
    }
}

impl UntrustedMemory<LinePlace, Line> for HeapMemory {
    fn read(&mut self, LinePlace { level, index }: LinePlace) -> Line {
        let chunks = self.levels.get(usize::from(level));
        let chunk = chunks.and_then(|chunks| chunks.get((index / CHUNK_LINES) as usize));
        match chunk {
            Some(Some(chunk)) => chunk[(index % CHUNK_LINES) as usize],
            _ => [0; LINE_BYTES],
        }
    }

    fn write(&mut self, LinePlace { level, index }: LinePlace, line: &Line) {
        let chunks = &mut self.levels[usize::from(level)];
        let chunk = (index / CHUNK_LINES) as usize;
        if chunks.len() <= chunk {
            chunks.resize_with(chunk + 1, || None);
        }
        let chunk = chunks[chunk]
            .get_or_insert_with(|| vec![[0; LINE_BYTES]; CHUNK_LINES as usize].into_boxed_slice());
        chunk[(index % CHUNK_LINES) as usize] = *line;
    }
}
