//! What lies in untrusted memory, as far as it decides what is touched next: counters, nodes,
//! sequence numbers.

use casemate_schemes::unit::Block;
use casemate_schemes::unit::place::{Place, Region};

const CHUNK_BLOCKS: usize = 64;

/// Blocks of one region, in chunks of neighbours that are made when they are written.
#[derive(Default)]
struct Blocks(Vec<Option<Box<[Block; CHUNK_BLOCKS]>>>);

/// The values of metadata. Of data, MACs and time stamps there are none: nothing depends on them.
pub(super) struct Store {
    counters: Blocks,
    sequence_numbers: Blocks,
    nodes: Vec<Blocks>,
}

/// What data is in memory: anything but zeros, which some trees keep without fetching them.
pub(super) const CIPHERTEXT: Block = [0x5a; 64];

impl Store {
    pub(super) fn new() -> Store {
        Store {
            counters: Blocks::default(),
            sequence_numbers: Blocks::default(),
            nodes: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn read(&self, place: Place) -> Block {
        match place.region {
            Region::Data => CIPHERTEXT,
            Region::Counters => self.counters.read(place.index),
            Region::SequenceNumbers => self.sequence_numbers.read(place.index),
            Region::Nodes(level) => {
                self.nodes.get(usize::from(level)).map_or([0; 64], |nodes| nodes.read(place.index))
            }
            Region::Macs | Region::Ecc | Region::TimeStamps => [0; 64],
        }
    }

    #[inline]
    pub(super) fn write(&mut self, place: Place, block: &Block) {
        match place.region {
            Region::Counters => self.counters.write(place.index, block),
            Region::SequenceNumbers => self.sequence_numbers.write(place.index, block),
            Region::Nodes(level) => {
                let level = usize::from(level);
                if self.nodes.len() <= level {
                    self.nodes.resize_with(level + 1, Blocks::default);
                }
                self.nodes[level].write(place.index, block);
            }
            Region::Data | Region::Macs | Region::Ecc | Region::TimeStamps => {}
        }
    }
}

impl Blocks {
    #[inline]
    fn read(&self, index: u64) -> Block {
        let (chunk, at) = (index as usize / CHUNK_BLOCKS, index as usize % CHUNK_BLOCKS);
        match self.0.get(chunk) {
            Some(Some(blocks)) => blocks[at],
            _ => [0; 64],
        }
    }

    #[inline]
    fn write(&mut self, index: u64, block: &Block) {
        let (chunk, at) = (index as usize / CHUNK_BLOCKS, index as usize % CHUNK_BLOCKS);
        if let Some(Some(blocks)) = self.0.get_mut(chunk) {
            blocks[at] = *block;
        } else if *block != [0; 64] {
            if self.0.len() <= chunk {
                self.0.resize_with(chunk + 1, || None);
            }
            self.0[chunk].get_or_insert_with(|| Box::new([[0; 64]; CHUNK_BLOCKS]))[at] = *block;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_zeros_take_no_room() {
        let mut store = Store::new();
        let place = |region, index| Place::new(region, index);
        store.write(place(Region::Counters, 1 << 20), &[0; 64]);
        assert!(store.counters.0.is_empty());
        for (number, region) in
            [Region::Counters, Region::SequenceNumbers, Region::Nodes(1), Region::Nodes(3)]
                .into_iter()
                .enumerate()
        {
            store.write(place(region, 1000), &[number as u8 + 1; 64]);
            assert_eq!(store.read(place(region, 1001)), [0; 64]);
        }
        assert_eq!(store.read(place(Region::Nodes(3), 1000)), [4; 64]);
        assert_eq!(store.read(place(Region::Nodes(1), 1000)), [3; 64]);
        store.write(place(Region::Nodes(1), 1000), &[0; 64]);
        assert_eq!(store.read(place(Region::Nodes(1), 1000)), [0; 64]);
        assert_eq!(store.read(place(Region::Data, 7)), CIPHERTEXT);
    }
}
