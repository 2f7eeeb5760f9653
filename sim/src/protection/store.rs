//! What lies in untrusted memory, as far as it decides what is touched next: counters, nodes,
//! sequence numbers.

use casemate_schemes::unit::place::{Place, Region};

const CHUNK_LINES: usize = 64;

/// Neighbours of one region.
type Chunk<const LINE: usize> = Box<[[u8; LINE]; CHUNK_LINES]>;

/// Lines of one region, in chunks that are made when they are written.
#[derive(Default)]
struct Lines<const LINE: usize>(Vec<Option<Chunk<LINE>>>);

/// The values of metadata. Of data, MACs and time stamps there are none: nothing depends on them.
pub(super) struct Store<const LINE: usize> {
    counters: Lines<LINE>,
    sequence_numbers: Lines<LINE>,
    nodes: Vec<Lines<LINE>>,
}

/// What data is in memory: anything but zeros, which some trees keep without fetching them.
pub(super) const fn ciphertext<const LINE: usize>() -> [u8; LINE] {
    [0x5a; LINE]
}

impl<const LINE: usize> Store<LINE> {
    pub(super) fn new() -> Store<LINE> {
        Store { counters: Lines::default(), sequence_numbers: Lines::default(), nodes: Vec::new() }
    }

    #[inline]
    pub(super) fn read(&self, place: Place) -> [u8; LINE] {
        match place.region {
            Region::Data => ciphertext(),
            Region::Counters => self.counters.read(place.index),
            Region::SequenceNumbers => self.sequence_numbers.read(place.index),
            Region::Nodes(level) => self
                .nodes
                .get(usize::from(level))
                .map_or([0; LINE], |nodes| nodes.read(place.index)),
            Region::Macs | Region::Ecc | Region::TimeStamps => [0; LINE],
        }
    }

    #[inline]
    pub(super) fn write(&mut self, place: Place, line: &[u8; LINE]) {
        match place.region {
            Region::Counters => self.counters.write(place.index, line),
            Region::SequenceNumbers => self.sequence_numbers.write(place.index, line),
            Region::Nodes(level) => {
                let level = usize::from(level);
                if self.nodes.len() <= level {
                    self.nodes.resize_with(level + 1, Lines::default);
                }
                self.nodes[level].write(place.index, line);
            }
            Region::Data | Region::Macs | Region::Ecc | Region::TimeStamps => {}
        }
    }
}

impl<const LINE: usize> Lines<LINE> {
    #[inline]
    fn read(&self, index: u64) -> [u8; LINE] {
        let (chunk, at) = (index as usize / CHUNK_LINES, index as usize % CHUNK_LINES);
        match self.0.get(chunk) {
            Some(Some(lines)) => lines[at],
            _ => [0; LINE],
        }
    }

    #[inline]
    fn write(&mut self, index: u64, line: &[u8; LINE]) {
        let (chunk, at) = (index as usize / CHUNK_LINES, index as usize % CHUNK_LINES);
        if let Some(Some(lines)) = self.0.get_mut(chunk) {
            lines[at] = *line;
        } else if *line != [0; LINE] {
            if self.0.len() <= chunk {
                self.0.resize_with(chunk + 1, || None);
            }
            self.0[chunk].get_or_insert_with(|| Box::new([[0; LINE]; CHUNK_LINES]))[at] = *line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_zeros_take_no_room() {
        let mut store = Store::<64>::new();
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
        assert_eq!(store.read(place(Region::Data, 7)), ciphertext());
    }
}
