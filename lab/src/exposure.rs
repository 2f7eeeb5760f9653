//! Keys in memory that decays when its power is cut, and an attacker who reads it then (Halderman
//! et al., "Lest We Remember: Cold Boot Attacks on Encryption Keys", USENIX Security 2008).
//!
//! # The model
//!
//! Without refresh a cell loses its charge, and reads as what its region reads as without charge:
//! its ground state, 0 in some regions and 1 in others. The attacker knows the ground state of
//! every bit. A cell *leaks* with a probability, the same for all cells and independently: the
//! *decayed share*, which grows with time and falls with temperature. Half of all bits are as their
//! ground state from the beginning, since keys and what [`all_or_nothing`] makes of them are
//! random; so half as many bits read wrong.
//!
//! Two attackers search 2^k candidates, and recover a key if it is among these:
//!
//! - [`Attacker::Reads`] has what he reads. A bit that is not as its ground state is right. One
//!   that is may have been the other: with a share d, one in (1 + d) / d such bits was. He tries
//!   the likeliest candidates first: no bit changed, then every one, then every two.
//! - [`Attacker::KnowsCells`] also knows which cells have leaked by then, since he measured these
//!   very chips at this time and temperature. He knows nothing of what they held: with u of them he
//!   has 2^u candidates, all alike. No attacker does better without reading more.
//!
//! What is not in the model: cells that change away from their ground state, which are rare and
//! only make the search longer; neighbours that leak together.
//!
//! [`recovery()`] computes, [`trial`] does it: decay of the real transform, and a real search.
//!
//! [`all_or_nothing`]: casemate_pages::all_or_nothing

pub mod decay;
pub mod recovery;
#[cfg(test)]
mod tests;
pub mod trial;

pub use recovery::{Attacker, recovery};

/// The share up to which a key schedule of AES-256 is recovered in practice, by its redundancy
/// alone (Tsow, "An Improved Recovery Algorithm for Decayed AES Key Schedule Images", SAC 2009).
pub const SCHEDULE_SHARE: f64 = 0.65;
/// Bits of a key.
pub const KEY_BITS: u64 = 256;
/// The least decayed share of [`share_powers`], as a power of ten.
const LEAST_POWER: i32 = -8;
/// Shares for each power of ten.
const SHARES_A_POWER: i32 = 10;

/// What lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A key alone.
    Key,
    /// The round keys of AES-256, which were made of a key.
    Schedule,
    /// The transform over this many bytes.
    Spread(u64),
}

impl Target {
    /// With which probability it is recovered.
    pub fn recovery(self, decayed: f64, search_bits: u32, attacker: Attacker) -> f64 {
        match self {
            // Above the published share nothing is known but that it has a key in it.
            Target::Schedule if decayed <= SCHEDULE_SHARE => 1.0,
            Target::Key | Target::Schedule => recovery(KEY_BITS, decayed, search_bits, attacker),
            Target::Spread(bytes) => recovery(bytes * 8, decayed, search_bits, attacker),
        }
    }

    /// The decayed share at which half of all keys are recovered; 1 if more than half always are.
    pub fn half_recovered(self, search_bits: u32, attacker: Attacker) -> f64 {
        let is_more = |share| self.recovery(share, search_bits, attacker) > 0.5;
        let (mut less, mut more) = (1e-15_f64, 1.0_f64);
        if is_more(more) {
            return more;
        }
        // Halves the ratio of the bounds until it is closer than anyone reads it.
        while more / less > 1.000_001 {
            let between = (less * more).sqrt();
            if is_more(between) { less = between } else { more = between }
        }
        more
    }
}

/// Decayed shares from one in a hundred millions to all: their logarithms to the base of ten.
pub fn share_powers() -> impl Iterator<Item = f64> {
    (LEAST_POWER * SHARES_A_POWER..=0).map(|i| f64::from(i) / f64::from(SHARES_A_POWER))
}
