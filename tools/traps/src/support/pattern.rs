//! The seeded pattern: every word of memory has one right value for its place and its generation.

use super::WORDS;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const WORD_STEP: u64 = 0xd134_2543_de82_ef95;

/// SplitMix64's finaliser.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A page's first value; the words follow from it at the cost of a multiplication each.
pub fn page_base(seed: u64, page: u64, generation: u64) -> u64 {
    mix(mix(seed ^ page.wrapping_mul(GOLDEN)) ^ generation.wrapping_mul(WORD_STEP)) | 1
}

/// The right value of word `index` (0..512) of a page with this base.
pub fn word_of(base: u64, index: usize) -> u64 {
    base.wrapping_add(WORD_STEP.wrapping_mul(index as u64))
}

/// The right value of word `index` of page `page` in generation `generation`.
pub fn word(seed: u64, page: u64, generation: u64, index: usize) -> u64 {
    word_of(page_base(seed, page, generation), index)
}

/// Says what a wrong word looks like: nothing, an earlier generation, another page.
pub fn explain(seed: u64, page: u64, generation: u64, index: usize, got: u64) -> &'static str {
    if got == 0 {
        return "zero";
    }
    for old in generation.saturating_sub(4096)..generation {
        if word(seed, page, old, index) == got {
            return "this place, an earlier generation (stale)";
        }
    }
    for other in 0..32_768 {
        for near in generation.saturating_sub(2)..generation + 2 {
            if other != page && word(seed, other, near, index) == got {
                return "another page's word";
            }
        }
    }
    for other in 0..WORDS {
        if word(seed, page, generation, other) == got {
            return "another word of this page";
        }
    }
    "neither zero, stale nor another page's"
}

/// SplitMix64. A copy: programs that try to break Casemate depend on nothing of it.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Rng(mix(seed ^ GOLDEN))
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
