//! Any way: one draw for each victim from SplitMix64, the high half of the product with the ways.

use super::Policy;

#[derive(Clone, Debug)]
pub(crate) struct Random {
    ways: usize,
    state: u64,
}

impl Random {
    pub(super) fn new(ways: usize, seed: u64) -> Self {
        Random { ways, state: seed }
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Policy for Random {
    fn filled(&mut self, _set: usize, _way: usize) {}

    fn hit(&mut self, _set: usize, _way: usize) {}

    fn emptied(&mut self, _set: usize, _way: usize) {}

    fn victim(&mut self, _set: usize) -> usize {
        ((u128::from(self.draw()) * self.ways as u128) >> 64) as usize
    }
}
