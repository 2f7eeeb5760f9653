//! What a kernel prints: 64 bits that depend on all of its results and their order.

/// Adds results up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Takes one result in. (FNV-1a's step, with whole words.)
    pub fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }

    /// The bits of floating-point results.
    pub fn add_all(&mut self, numbers: &[f64]) {
        numbers.iter().for_each(|number| self.add(number.to_bits()));
    }

    /// The sum.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(words: &[u64]) -> u64 {
        let mut sum = Checksum::default();
        words.iter().for_each(|word| sum.add(*word));
        sum.value()
    }

    #[test]
    fn order_and_every_bit_count() {
        assert_ne!(sum(&[1, 2]), sum(&[2, 1]));
        assert_ne!(sum(&[0]), sum(&[]));
        for bit in 0..64 {
            assert_ne!(sum(&[7, 9]), sum(&[7 ^ 1 << bit, 9]), "bit {bit}");
        }
    }
}
