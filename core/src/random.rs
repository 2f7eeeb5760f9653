//! Seeded random numbers: an attack that was seen once can be seen again. Nothing secret depends on
//! them.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)] // it never ends
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// One of `count` places, of which there must be one. (Another number than [`Random::below`]
    /// gives: faster.)
    pub fn index(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            None
        } else {
            from.get(self.below(from.len() as u64) as usize).cloned()
        }
    }

    /// One of several, of which there must be one.
    pub fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// The seed of a test: `CASEMATE_SEED` to repeat one run, otherwise `default`.
#[cfg(any(test, feature = "adversary"))]
pub fn seed(default: u64) -> u64 {
    std::env::var("CASEMATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(default)
}

/// Prints the seed if the test fails.
#[cfg(any(test, feature = "adversary"))]
pub struct SeedOnFailure(pub u64);

#[cfg(any(test, feature = "adversary"))]
impl Drop for SeedOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat: CASEMATE_SEED={}", self.0);
        }
    }
}
