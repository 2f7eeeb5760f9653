//! The probability that a search finds a key in decayed memory.

/// What an attacker knows besides what he reads and the ground states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attacker {
    /// Nothing.
    Reads,
    /// Which cells have leaked.
    KnowsCells,
}

/// The probability that a key is recovered by 2^`search_bits` candidates, if it takes all of `bits`
/// random bits, and cells leak with the probability `decayed`.
pub fn recovery(bits: u64, decayed: f64, search_bits: u32, attacker: Attacker) -> f64 {
    match attacker {
        Attacker::Reads => {
            let (reads_ground, changed) = as_read(decayed);
            let budget = 2.0_f64.powf(f64::from(search_bits));
            mean(bits, reads_ground, |uncertain| by_likelihood(uncertain, changed, budget))
        }
        Attacker::KnowsCells => among_leaked(bits, decayed, search_bits),
    }
}

/// The probability that a bit reads as its ground state, and that one that does was the other.
///
/// It is the ground state from the beginning with 1/2, and comes to it with d/2.
pub(super) fn as_read(decayed: f64) -> (f64, f64) {
    (0.5 + decayed / 2.0, decayed / (1.0 + decayed))
}

/// Who tries the likeliest first: of `uncertain` bits each was changed with the probability
/// `changed`, 1/2 at most. So candidates with fewer changes come first; those with j changes are a
/// class of C(uncertain, j), all equally likely. The last class is searched in part.
pub(super) fn by_likelihood(uncertain: u64, changed: f64, budget: f64) -> f64 {
    let odds = (changed / (1.0 - changed)).ln();
    let (mut candidates, mut left) = (1.0_f64, budget);
    // The logarithm of the probability that there are j changes.
    let mut share = uncertain as f64 * (-changed).ln_1p();
    let mut found = 0.0;
    for changes in 0..=uncertain {
        let searched = (left / candidates).min(1.0);
        found += share.exp() * searched;
        if searched < 1.0 {
            break;
        }
        left -= candidates;
        let ratio = (uncertain - changes) as f64 / (changes + 1) as f64;
        candidates *= ratio;
        share += ratio.ln() + odds;
    }
    found.min(1.0)
}

/// Who knows the leaked cells: of u he has 2^u candidates, all equally likely.
fn among_leaked(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    let searched = |leaked: u64| 2.0_f64.powf(f64::from(search_bits) - leaked as f64).min(1.0);
    if decayed >= 1.0 {
        return searched(bits);
    }
    let odds = (decayed / (1.0 - decayed)).ln();
    let mut share = bits as f64 * (-decayed).ln_1p();
    let mut found = 0.0;
    // Beyond, less than 2^-64 of the candidates are searched.
    for leaked in 0..=bits.min(u64::from(search_bits) + 64) {
        found += share.exp() * searched(leaked);
        share += ((bits - leaked) as f64 / (leaked + 1) as f64).ln() + odds;
    }
    found.min(1.0)
}

/// The mean of `f` over how often in `times` something happens that has the probability `chance`,
/// 1/2 at least.
///
/// It looks eight standard deviations far, at every number of times if these are few and at some
/// hundred otherwise: `f` changes little between them.
pub(super) fn mean(times: u64, chance: f64, f: impl Fn(u64) -> f64) -> f64 {
    if chance >= 1.0 {
        return f(times);
    }
    let likeliest = (((times + 1) as f64 * chance) as u64).min(times);
    let deviation = (times as f64 * chance * (1.0 - chance)).sqrt();
    let width = (8.0 * deviation).ceil() as u64 + 1;
    let stride = (width / 64).max(1);
    let odds = chance / (1.0 - chance);
    let (mut sum, mut total) = (f(likeliest), 1.0);
    let mut weight = 1.0;
    for n in likeliest + 1..=(likeliest + width).min(times) {
        weight *= (times - n + 1) as f64 / n as f64 * odds;
        if (n - likeliest).is_multiple_of(stride) {
            (sum, total) = (sum + weight * f(n), total + weight);
        }
    }
    weight = 1.0;
    for n in (likeliest.saturating_sub(width)..likeliest).rev() {
        weight *= (n + 1) as f64 / (times - n) as f64 / odds;
        if (likeliest - n).is_multiple_of(stride) {
            (sum, total) = (sum + weight * f(n), total + weight);
        }
    }
    sum / total
}
