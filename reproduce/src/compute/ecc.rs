//! The MAC in the ECC bits beside SEC-DED: Delta/ECC, Figure 3 and section 3.4.

use anyhow::{Context, Result};
use casemate_engine::attack::random::Random;
use casemate_engine::ecc::correction::EccMac;
use casemate_engine::ecc::coverage::{Spread, Tally, by_mac, by_standard};
use casemate_engine::ecc::flip_and_check::{Reach, Stop, flip_and_check};
use casemate_engine::ecc::syndrome::{SyndromeDecoder, SyndromeTable, Walk};
use casemate_engine::ecc::{BLOCK_BITS, Block, LinearMac, flip};
use casemate_engine::primitives::CarterWegman;

use super::{Values, numbers, point, series, shares};
use crate::data::Series;

/// Errors of each kind. Where there are few, as of one bit, each comes up many times.
const ERRORS: u32 = 20_000;

/// Kinds of errors: how many bits, where, and what that is called.
const KINDS: [(usize, Spread, &str); 16] = [
    (1, Spread::Data, "1 bit"),
    (1, Spread::Beside, "1 bit, beside"),
    (2, Spread::OneWord, "2 bits, same word"),
    (2, Spread::DistinctWords, "2 bits, two words"),
    (2, Spread::Beside, "2 bits, beside"),
    (3, Spread::OneWord, "3 bits, same word"),
    (3, Spread::DistinctWords, "3 bits, three words"),
    (3, Spread::Data, "3 bits, anywhere in the data"),
    (4, Spread::OneWord, "4 bits, same word"),
    (4, Spread::DistinctWords, "4 bits, four words"),
    (5, Spread::OneWord, "5 bits, same word"),
    (8, Spread::OneWord, "8 bits, same word"),
    (8, Spread::DistinctWords, "8 bits, eight words"),
    (8, Spread::Data, "8 bits, anywhere in the data"),
    (16, Spread::Data, "16 bits, anywhere in the data"),
    (16, Spread::Anywhere, "16 bits, anywhere"),
];

/// What becomes of random errors of each kind.
pub fn coverage() -> Result<Values> {
    let mut random = Random::new(1);
    let mac = mac(&mut random);
    let table = SyndromeTable::new(&mac).context("a key that does not tell errors apart")?;
    let ecc = EccMac::new(&mac, SyndromeDecoder::with(table, Walk::LookUp));
    let mut all: Vec<Series> = ["MAC-ECC", "SEC-DED"]
        .iter()
        .flat_map(|who| {
            ["right", "refused", "wrong"].map(|what| series(&format!("{who} {what}"), []))
        })
        .collect();
    for (flips, spread, name) in KINDS {
        let (mut ours, mut standard) = (Tally::default(), Tally::default());
        for _ in 0..ERRORS {
            let error = spread.draw(flips, || random.next());
            let error = error.with_context(|| format!("there is no error of {name}"))?;
            let block = block(&mut random);
            ours.add(by_mac(&ecc, &block, 1, &error));
            standard.add(by_standard(&block, &error));
        }
        let shares = |tally: Tally| [tally.right, tally.refused, tally.wrong];
        let counts = shares(ours).into_iter().chain(shares(standard));
        for (series, count) in all.iter_mut().zip(counts) {
            series.points.push(point(name, count as f64 / f64::from(ERRORS)));
        }
    }
    Ok(shares(all))
}

/// A MAC of 56 bits, as the paper's (section 3.2), with a random key.
fn mac(random: &mut Random) -> CarterWegman {
    let pad = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
    CarterWegman::polynomial(random.next(), 0, &pad.try_into().unwrap_or_default())
}

fn block(random: &mut Random) -> Block {
    std::array::from_fn(|_| random.next() as u8)
}

/// Most MACs that brute force computes until it finds an error of one or of two bits: of the last bits, which are
/// tried last.
pub fn trials() -> Values {
    let mac = mac(&mut Random::new(1));
    let most = |flipped: &[u16], reach: Reach| {
        let sealed: Block = [0x5a; 64];
        let mut bad = sealed;
        flipped.iter().for_each(|bit| flip(&mut bad, *bit));
        let hash = |block: &Block| LinearMac::hash(&mac, block);
        let (_, trials) = flip_and_check(&bad, hash(&sealed), hash, reach, Stop::AtFirst);
        (f64::from(trials.singles), f64::from(trials.doubles))
    };
    let (one, _) = most(&[BLOCK_BITS - 1], Reach::OneBit);
    let (_, two) = most(&[BLOCK_BITS - 2, BLOCK_BITS - 1], Reach::TwoBits);
    numbers(vec![series("most trials", [point("1 bit", one), point("2 bits", two)])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_each_kind_are_all_of_it() {
        let values = coverage().expect("the key is suitable");
        assert_eq!(values.series.len(), 6);
        for (at, (.., name)) in KINDS.iter().enumerate() {
            for who in [0..3, 3..6] {
                let sum: f64 = values.series[who].iter().filter_map(|s| s.points[at].value).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{name}: {sum}");
            }
        }
    }
}
