//! Which slots of the swap file are free, and which parts of it have disk blocks.

/// Slots of a chunk: 1 MiB of the file, the unit in which disk blocks are asked for and returned.
pub(super) const CHUNK_SLOTS: u32 = 256;
/// A chunk with fewer free slots is used only when the file cannot grow: it would tear a batch.
const WORTHWHILE: u32 = 64;
/// Empty chunks that keep their blocks, beside a sixteenth of all.
const KEEP_EMPTY: usize = 4;

#[derive(Clone, Copy, Default)]
struct Chunk {
    taken: [u64; 4],
    backed: bool,
}

impl Chunk {
    fn free(&self) -> u32 {
        self.taken.iter().map(|w| w.count_zeros()).sum()
    }
}

/// The swap file's slots.
#[derive(Default)]
pub(super) struct ChunkMap {
    chunks: Vec<Chunk>,
    cursor: usize,
    used: u32,
    used_peak: u32,
    /// Chunks that have blocks.
    backed: usize,
    /// Of those, chunks without a page.
    empty: usize,
}

impl ChunkMap {
    /// Slots that hold a page.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Slots that hold none, of chunks that have blocks.
    pub(super) fn free(&self) -> u64 {
        u64::from(CHUNK_SLOTS) * self.backed as u64 - u64::from(self.used)
    }

    /// The most that ever held one.
    pub(super) fn used_peak(&self) -> u32 {
        self.used_peak
    }

    /// Chunks that the file has had.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }

    /// Bytes of this map.
    pub(super) fn bytes(&self) -> u64 {
        (self.chunks.capacity() * size_of::<Chunk>()) as u64
    }

    /// Takes up to `wanted` slots in ascending runs. `back` obtains disk blocks for a chunk; if it
    /// fails and no slot is left, its error is returned.
    pub(super) fn take<E>(
        &mut self,
        wanted: usize,
        mut back: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<Vec<u32>, E> {
        let mut taken = Vec::with_capacity(wanted);
        self.sweep(wanted, WORTHWHILE, &mut taken);
        while taken.len() < wanted {
            if self.free() > u64::from(self.used) / 8 + 4 * u64::from(CHUNK_SLOTS) {
                // Much room, but torn: use it rather than let the file grow.
                self.sweep(wanted, 1, &mut taken);
                continue;
            }
            let chunk = self.chunks.iter().position(|c| !c.backed).unwrap_or(self.chunks.len());
            if let Err(e) = back(chunk as u32) {
                self.sweep(wanted, 1, &mut taken);
                return if taken.is_empty() { Err(e) } else { Ok(taken) };
            }
            if chunk == self.chunks.len() {
                self.chunks.push(Chunk::default());
            }
            self.chunks[chunk].backed = true;
            self.backed += 1;
            self.empty += 1;
            self.take_from(chunk, wanted, &mut taken);
        }
        Ok(taken)
    }

    /// Takes slots from backed chunks with at least `least` free ones.
    fn sweep(&mut self, wanted: usize, least: u32, taken: &mut Vec<u32>) {
        for _ in 0..self.chunks.len() {
            if taken.len() >= wanted {
                return;
            }
            let chunk = self.cursor % self.chunks.len();
            if self.chunks[chunk].backed && self.chunks[chunk].free() >= least {
                self.take_from(chunk, wanted, taken);
            }
            if taken.len() < wanted {
                self.cursor = chunk + 1;
            }
        }
    }

    fn take_from(&mut self, chunk: usize, wanted: usize, taken: &mut Vec<u32>) {
        let it = &mut self.chunks[chunk];
        let first = chunk as u32 * CHUNK_SLOTS;
        let before = taken.len();
        if it.free() == CHUNK_SLOTS && wanted > before {
            self.empty -= 1;
        }
        for (word, first) in it.taken.iter_mut().zip((first..).step_by(64)) {
            while *word != u64::MAX && taken.len() < wanted {
                let bit = word.trailing_ones();
                *word |= 1 << bit;
                taken.push(first + bit);
            }
        }
        self.used += (taken.len() - before) as u32;
        self.used_peak = self.used_peak.max(self.used);
    }

    /// Frees a slot. Returns the chunk whose blocks should be returned, if that is due; the caller
    /// does it while it holds this map, and calls [`unback`](Self::unback) if it succeeded.
    pub(super) fn give(&mut self, slot: u32) -> Option<u32> {
        let number = slot / CHUNK_SLOTS;
        let chunk = self.chunks.get_mut(number as usize)?;
        let word = &mut chunk.taken[(slot % CHUNK_SLOTS / 64) as usize];
        let bit = 1 << (slot % 64);
        if *word & bit == 0 {
            return None;
        }
        *word &= !bit;
        self.used -= 1;
        if chunk.free() < CHUNK_SLOTS {
            return None;
        }
        self.empty += 1;
        (self.empty > KEEP_EMPTY + self.backed / 16).then_some(number)
    }

    /// An empty chunk has no disk blocks any more.
    pub(super) fn unback(&mut self, chunk: u32) {
        if let Some(chunk) = self.chunks.get_mut(chunk as usize)
            && chunk.backed
            && chunk.free() == CHUNK_SLOTS
        {
            chunk.backed = false;
            self.backed -= 1;
            self.empty -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn always(_: u32) -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn batches_are_adjacent() {
        let mut map = ChunkMap::default();
        assert_eq!(map.take(256, always), Ok((0..256).collect()));
        assert_eq!(map.take(64, always), Ok((256..320).collect()));
        assert_eq!(map.used(), 320);
    }

    #[test]
    fn a_full_disk_gives_what_is_left_and_then_the_error() {
        let mut map = ChunkMap::default();
        let mut blocks = 2;
        let mut back = |_| {
            blocks -= 1;
            if blocks < 0 { Err("full") } else { Ok(()) }
        };
        assert_eq!(map.take(400, &mut back).map(|t| t.len()), Ok(400));
        assert_eq!(map.take(200, &mut back).map(|t| t.len()), Ok(112));
        assert_eq!(map.take(1, &mut back), Err("full"));
        map.give(7);
        assert_eq!(map.take(5, &mut back), Ok(vec![7]));
    }

    #[test]
    fn no_slot_is_given_twice_and_empty_chunks_are_returned() {
        let mut map = ChunkMap::default();
        let (mut held, mut slots) = (HashSet::new(), Vec::new());
        let mut seed = 1u64;
        let mut returned = 0;
        for round in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let count = (seed >> 40) as usize % 64;
            if round % 4000 < 1000 {
                for slot in map.take(count, always).expect("always") {
                    assert!(held.insert(slot));
                    slots.push(slot);
                }
            } else {
                for _ in 0..count.min(slots.len()) {
                    let slot = slots.swap_remove((seed >> 20) as usize % slots.len());
                    held.remove(&slot);
                    if let Some(chunk) = map.give(slot) {
                        map.unback(chunk);
                        returned += 1;
                    }
                    assert_eq!(map.give(slot), None, "a second time frees nothing");
                }
            }
            assert_eq!(map.used() as usize, held.len());
        }
        assert!(returned > 0);
    }
}
