//! The MAC in the ECC bits beside SEC-DED: Delta/ECC, Figure 3 and section 3.4.

use anyhow::{Context, Result};
use casemate_core::random::Random;
use casemate_schemes::ecc::correction::EccMac;
use casemate_schemes::ecc::coverage::{Spread, Tally, by_mac, by_standard};
use casemate_schemes::ecc::flip_and_check::{Reach, Stop, flip_and_check};
use casemate_schemes::ecc::syndrome::{SyndromeDecoder, SyndromeTable, Walk};
use casemate_schemes::ecc::{BLOCK_BITS, Block, LinearMac, flip};
use casemate_schemes::primitives::CarterWegman;

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

/// Each error of one bit in the data, once: 512.
const EACH_BIT: &str = "1 bit, each there is";
/// Each error of two bits in the data, once: 130,816.
const EACH_PAIR: &str = "2 bits, each pair there is";

/// What becomes of random errors of each kind, and of all errors of one and of two bits.
pub fn coverage() -> Result<Values> {
    let (mut random, mut blocks) = (Random::new(1), Random::new(2));
    let mac = mac(&mut random);
    let table = SyndromeTable::new(&mac).context("a key that does not tell errors apart")?;
    let ecc = EccMac::new(&mac, SyndromeDecoder::with(table, Walk::LookUp));
    let mut all: Vec<Series> = ["MAC-ECC", "SEC-DED"]
        .iter()
        .flat_map(|who| {
            ["right", "refused", "wrong"].map(|what| series(&format!("{who} {what}"), []))
        })
        .collect();
    let mut add = |name: &str, errors: &mut dyn Iterator<Item = Vec<u16>>| {
        let (mut ours, mut standard) = (Tally::default(), Tally::default());
        for error in errors {
            let block = block(&mut blocks);
            ours.add(by_mac(&ecc, &block, 1, &error));
            standard.add(by_standard(&block, &error));
        }
        let total = ours.total() as f64;
        let counts = [ours, standard].map(|tally| [tally.right, tally.refused, tally.wrong]);
        for (series, count) in all.iter_mut().zip(counts.into_iter().flatten()) {
            series.points.push(point(name, count as f64 / total));
        }
    };
    for (flips, spread, name) in KINDS {
        let mut errors = Vec::new();
        for _ in 0..ERRORS {
            let error = spread.draw(flips, || random.next());
            errors.push(error.with_context(|| format!("there is no error of {name}"))?);
        }
        add(name, &mut errors.into_iter());
    }
    add(EACH_BIT, &mut (0..BLOCK_BITS).map(|bit| vec![bit]));
    let pairs = |first| (first + 1..BLOCK_BITS).map(move |second| vec![first, second]);
    add(EACH_PAIR, &mut (0..BLOCK_BITS).flat_map(pairs));
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

/// Most MACs that brute force computes until it finds an error of one or of two bits: of the last
/// bits, which are tried last.
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

    /// Delta/ECC, section 3.3: the MAC corrects all of them; SEC-DED those that hit no word twice,
    /// which 64 - 1 of the 512 - 1 other bits do, and of the others it knows.
    #[test]
    fn all_errors_of_one_and_two_bits_are_as_section_3_3_says() {
        let values = coverage().expect("the key is suitable");
        let share = |series: usize, name: &str| {
            let points = &values.series[series].points;
            points.iter().find(|point| point.place == name).and_then(|point| point.value)
        };
        for name in [EACH_BIT, EACH_PAIR] {
            assert_eq!(share(0, name), Some(1.0), "{name}");
        }
        assert_eq!(share(3, EACH_BIT), Some(1.0));
        assert_eq!(share(4, EACH_PAIR), Some(63.0 / 511.0));
        assert_eq!(share(5, EACH_PAIR), Some(0.0));
    }
}
