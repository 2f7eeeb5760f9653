//! Decay of the real transform, and a real search. For memories of some hundred bytes.

use casemate_core::random::Random;
use casemate_pages::all_or_nothing::{SpreadError, gather, spread};

use super::decay::{Cell, decay};
use super::recovery::Attacker;

/// Bytes of the secret that is spread.
const SECRET_BYTES: usize = 64;

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Bytes over which the secret is spread.
    pub bytes: usize,
    /// The probability that a cell leaks.
    pub decayed: f64,
    /// 2^this many candidates are searched.
    pub search_bits: u32,
    /// Who searches.
    pub attacker: Attacker,
}

impl Trial {
    /// How many of so many secrets are recovered.
    ///
    /// # Errors
    /// If a secret does not fit.
    pub fn recovered(&self, times: u32, seed: u64) -> Result<u32, SpreadError> {
        let mut random = Random::new(seed);
        (0..times).try_fold(0, |sum, _| Ok(sum + u32::from(self.once(&mut random)?)))
    }

    fn once(&self, random: &mut Random) -> Result<bool, SpreadError> {
        let mut secret = [0; SECRET_BYTES];
        let mut memory = vec![0; self.bytes];
        random.fill(&mut secret);
        random.fill(&mut memory);
        spread(&secret, &mut memory)?;
        let leaked = decay(&mut memory, self.decayed, random);
        let uncertain = match self.attacker {
            Attacker::Reads => {
                Cell::all(memory.len()).filter(|cell| cell.is_ground(&memory)).collect()
            }
            Attacker::KnowsCells => leaked,
        };
        let mut found = [0; SECRET_BYTES];
        let is_right = |memory: &[u8]| gather(memory, &mut found).is_ok();
        Ok(search(&mut memory, &uncertain, 1 << self.search_bits, is_right) && found == secret)
    }
}

/// Tries candidates until one is right: memory as it is, then with every one of the uncertain cells
/// changed, then with every two.
pub fn search(
    memory: &mut [u8],
    uncertain: &[Cell],
    candidates: u64,
    mut is_right: impl FnMut(&[u8]) -> bool,
) -> bool {
    let mut left = candidates;
    for changes in 0..=uncertain.len() {
        let mut chosen: Vec<usize> = (0..changes).collect();
        loop {
            if left == 0 {
                return false;
            }
            left -= 1;
            chosen.iter().for_each(|cell| uncertain[*cell].flip(memory));
            let right = is_right(memory);
            chosen.iter().for_each(|cell| uncertain[*cell].flip(memory));
            if right {
                return true;
            }
            if !advance(&mut chosen, uncertain.len()) {
                break;
            }
        }
    }
    false
}

/// The next choice of as many of `all`, in order; false after the last.
fn advance(chosen: &mut [usize], all: usize) -> bool {
    let size = chosen.len();
    let Some(at) = (0..size).rev().find(|at| chosen[*at] < all - size + at) else { return false };
    let next = chosen[at] + 1;
    for (place, value) in chosen[at..].iter_mut().zip(next..) {
        *place = value;
    }
    true
}
