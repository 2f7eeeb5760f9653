//! Off-chip memory: lines that an attacker may read and change.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Block;
use super::place::{Place, Region};
use casemate_core::UntrustedMemory;
use casemate_core::port::FixedBytes;

/// Untrusted memory of lines, by place.
pub trait OffChip<L = Block>: UntrustedMemory<Place, L>
where
    L: FixedBytes,
{
}
impl<L: FixedBytes, M: UntrustedMemory<Place, L>> OffChip<L> for M {}

/// Lines that are allocated together.
const CHUNK_LINES: u64 = 64;

/// Untrusted memory on the heap; takes room for what was written, in chunks of neighbours.
#[derive(Clone)]
pub struct SparseMemory<L = Block> {
    chunks: HashMap<u64, Box<Chunk<L>>, BuildHasherDefault<PlaceHasher>>,
}

/// Neighbours in one region.
#[derive(Clone)]
struct Chunk<L> {
    first: Place,
    lines: [L; CHUNK_LINES as usize],
    /// A bit for each line that was ever written.
    written: u64,
}

impl<L> Default for SparseMemory<L> {
    fn default() -> Self {
        SparseMemory { chunks: HashMap::default() }
    }
}

/// The key of the chunk that a line lies in, and the line's number there. Indices stay below 2^56.
#[inline]
fn chunk_of(place: Place) -> (u64, usize) {
    let region = match place.region {
        Region::Data => 0,
        Region::Counters => 1,
        Region::Macs => 2,
        Region::Ecc => 3,
        Region::TimeStamps => 4,
        Region::SequenceNumbers => 5,
        Region::Nodes(level) => 8 + u64::from(level),
    };
    let chunk = place.index / CHUNK_LINES;
    ((region << 56) | chunk, (place.index % CHUNK_LINES) as usize)
}

/// Spreads keys over a table by one multiplication. The default hasher withstands chosen keys, at
/// the price of half a block's cryptography; here the unit chooses the keys, which are places.
#[derive(Clone, Copy, Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        // 2^64 over the golden ratio: an odd number whose bits look random.
        let product = u128::from(key) * 0x9e37_79b9_7f4a_7c15;
        // Both halves, since a table looks at the lowest bits and at the highest.
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words");
    }
}

impl<L: FixedBytes> SparseMemory<L> {
    /// The lines that were ever written, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &L)> {
        self.chunks.values().flat_map(|chunk| {
            let Place { region, index } = chunk.first;
            let lines = (0..).zip(&chunk.lines);
            lines
                .filter(|(number, _)| chunk.written >> number & 1 == 1)
                .map(move |(number, line)| (Place::new(region, index + number), line))
        })
    }

    /// A line that is about to be written.
    fn line_mut(&mut self, place: Place) -> &mut L {
        let (key, number) = chunk_of(place);
        let chunk = self.chunks.entry(key).or_insert_with(|| {
            let first = Place::new(place.region, place.index - number as u64);
            let lines = [L::ZERO; CHUNK_LINES as usize];
            Box::new(Chunk { first, lines, written: 0 })
        });
        chunk.written |= 1 << number;
        &mut chunk.lines[number]
    }
}

impl<L: FixedBytes> UntrustedMemory<Place, L> for SparseMemory<L> {
    fn read(&mut self, place: Place) -> L {
        let (key, number) = chunk_of(place);
        self.chunks.get(&key).map_or(L::ZERO, |chunk| chunk.lines[number])
    }

    fn write(&mut self, place: Place, line: &L) {
        *self.line_mut(place) = *line;
    }

    fn write_part(&mut self, place: Place, at: usize, bytes: &[u8]) {
        self.line_mut(place).as_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::BLOCK_BYTES;
    use super::*;
    use casemate_core::random::Random;

    #[test]
    fn agrees_with_a_map() {
        let mut random = Random::new(5);
        let (mut memory, mut map) = (SparseMemory::<Block>::default(), BTreeMap::new());
        let regions = [Region::Data, Region::Macs, Region::Nodes(1), Region::Nodes(2)];
        for step in 0..20_000_u64 {
            let base = if random.one_in(2) { 1 << 48 } else { 0 };
            let region = random.pick(&regions).expect("there are some");
            let place = Place::new(region, base + random.below(200));
            if random.one_in(3) {
                let block = [step as u8; BLOCK_BYTES];
                memory.write(place, &block);
                map.insert(place, block);
            } else if random.one_in(2) {
                let at = random.below(57) as usize;
                memory.write_part(place, at, &step.to_le_bytes());
                map.entry(place).or_insert([0; BLOCK_BYTES])[at..at + 8]
                    .copy_from_slice(&step.to_le_bytes());
            } else {
                let expected = map.get(&place).copied().unwrap_or([0; BLOCK_BYTES]);
                assert_eq!(memory.read(place), expected, "{place:?}");
            }
        }
        let written: BTreeMap<_, _> = memory.iter().map(|(place, block)| (place, *block)).collect();
        assert_eq!(written, map);
    }
}
