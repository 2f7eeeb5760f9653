//! Correction by syndrome and by trial are the same function: exhaustively, for one and two bits.
//!
//! Trial compares MAC(block ^ e ^ q) with MAC(block), where e are the flipped bits and q is what is
//! tried. All 131,329 sets of at most two bits may be either. That is 2^34 pairs a key, so:
//!
//! - for every e, real MACs of the damaged block, and the decoder must name e, by both walks;
//! - for every q likewise the MACs of block ^ q are all different, so by linearity, MAC(block ^ e ^
//!   q) = MAC(block) only where q = e: trial names e too, and nothing else fits;
//! - trial itself runs for all singles, and for many doubles;
//! - `every_double_by_trial` runs it for all doubles, in some minutes (ignored by default);
//! - with MACs so short that answers are often ambiguous, both are compared on random errors.

use casemate_core::random::Random;
use casemate_schemes::ecc::flip_and_check::{FlipAndCheck, MOST_DOUBLE_TRIALS, MOST_SINGLE_TRIALS};
use casemate_schemes::ecc::polynomial_mac::{
    PolynomialMac, RandomBlocks, Tabulated, Truncated, sum,
};
use casemate_schemes::ecc::syndrome::{SyndromeDecoder, SyndromeTable, Walk};
use casemate_schemes::ecc::{
    BLOCK_BITS, Block, Flips, LinearMac, Locate, Located, MAC_BITS, Trials,
};

const NONCE: u128 = 0x00f0_0d00_0000_0000_0000_0000_0000_0042;
const KEYS: u64 = 4;

/// Every set of at most two bits.
fn all_flips() -> impl Iterator<Item = Flips> {
    let singles = (0..BLOCK_BITS).map(Flips::One);
    let doubles = (0..BLOCK_BITS)
        .flat_map(|low| (low + 1..BLOCK_BITS).map(move |high| Flips::Two(low, high)));
    std::iter::once(Flips::None).chain(singles).chain(doubles)
}

fn damaged(block: &Block, flips: Flips) -> Block {
    let mut bad = *block;
    flips.apply(&mut bad);
    bad
}

/// How `locate` answers for a damaged block. The MACs are those of the block, pad and all.
fn answer(
    locate: &impl Locate,
    mac: &impl LinearMac,
    stored: u64,
    bad: &Block,
) -> (Located, Trials) {
    let pad = mac.pad(NONCE);
    let tag = |block: &Block| mac.hash(block) ^ pad;
    locate.locate(bad, stored, tag(bad), tag)
}

/// Holds a way of correcting to: every error of at most two bits is named.
fn names_every_error(
    locate: &impl Locate,
    mac: &impl LinearMac,
    block: &Block,
    errors: impl Iterator<Item = Flips>,
) -> Result<(), String> {
    let stored = mac.tag(block, NONCE);
    for flips in errors {
        let (located, trials) = answer(locate, mac, stored, &damaged(block, flips));
        if located != Located::At(flips) {
            return Err(format!("{flips:?} is taken for {located:?}"));
        }
        if trials.singles > MOST_SINGLE_TRIALS || trials.doubles > MOST_DOUBLE_TRIALS {
            return Err(format!("{flips:?}: {trials:?}"));
        }
    }
    Ok(())
}

struct Setting {
    mac: Tabulated<PolynomialMac>,
    block: Block,
}

/// One for each key, all random.
fn settings() -> impl Iterator<Item = Setting> {
    (0..KEYS).map(|seed| {
        let mut random = Random::new(1_000 + seed);
        Setting { mac: Tabulated::new(random.mac()), block: random.block() }
    })
}

fn decoder(mac: &impl LinearMac, walk: Walk) -> SyndromeDecoder {
    SyndromeDecoder::with(SyndromeTable::new(mac).expect("suitable"), walk)
}

#[test]
fn every_single_and_double_is_named_by_its_syndrome() {
    assert_eq!(all_flips().count(), 1 + 512 + 130_816);
    for Setting { mac, block } in settings() {
        let look_up = decoder(&mac, Walk::LookUp);
        assert_eq!(names_every_error(&look_up, &mac, &block, all_flips()), Ok(()));
    }
    // Scanning takes longer: one key, and both walks are compared in unit tests.
    for Setting { mac, block } in settings().take(1) {
        let scan = decoder(&mac, Walk::Scan);
        assert_eq!(names_every_error(&scan, &mac, &block, all_flips()), Ok(()));
    }
}

#[test]
fn no_two_candidates_of_a_block_share_a_mac_so_trial_has_one_answer() {
    for Setting { mac, block } in settings() {
        let mut tags: Vec<u64> =
            all_flips().map(|flips| mac.tag(&damaged(&block, flips), NONCE)).collect();
        tags.sort_unstable();
        assert!(tags.windows(2).all(|pair| pair[0] != pair[1]));
        // And the step from there to MAC(block ^ e ^ q): the hash is linear.
        let mut random = Random::new(3);
        for _ in 0..1_000 {
            let (a, b) = (random.block(), random.block());
            assert_eq!(mac.hash(&sum(&a, &b)), mac.hash(&a) ^ mac.hash(&b));
        }
    }
}

#[test]
fn trial_names_every_single_and_many_doubles() {
    let corners = [(0, 1), (0, 511), (1, 511), (63, 64), (0, 64), (255, 256), (510, 511)];
    for Setting { mac, block } in settings() {
        let singles = || (0..BLOCK_BITS).map(Flips::One);
        assert_eq!(names_every_error(&FlipAndCheck::CAREFUL, &mac, &block, singles()), Ok(()));
        assert_eq!(names_every_error(&FlipAndCheck::FIRST_FIT, &mac, &block, singles()), Ok(()));
        let mut random = Random::new(block[0].into());
        let doubles: Vec<_> = (0..30).map(|_| two_bits(&mut random)).collect();
        let doubles =
            || corners.map(|(low, high)| Flips::Two(low, high)).into_iter().chain(doubles.clone());
        assert_eq!(names_every_error(&FlipAndCheck::CAREFUL, &mac, &block, doubles()), Ok(()));
        assert_eq!(names_every_error(&FlipAndCheck::FIRST_FIT, &mac, &block, doubles()), Ok(()));
    }
}

fn two_bits(random: &mut Random) -> Flips {
    let (a, b) = (random.below(512) as u16, random.below(511) as u16);
    let b = if b >= a { b + 1 } else { b };
    Flips::Two(a.min(b), a.max(b))
}

#[test]
#[ignore = "2^33 MACs: some minutes"]
fn every_double_by_trial() {
    for Setting { mac, block } in settings().take(1) {
        let first_fit = FlipAndCheck::FIRST_FIT;
        assert_eq!(names_every_error(&first_fit, &mac, &block, all_flips()), Ok(()));
    }
}

/// Both ways on errors of 0 to 6 bits, under MACs so short that nothing is certain.
fn agrees_with_trial<L: Locate>(
    make: impl Fn(&Tabulated<Truncated<PolynomialMac>>) -> L,
) -> Result<(), String> {
    let mut kinds = [0; 5];
    for bits in [10, 14, 15, 16, 17, 18, 22] {
        let mut random = Random::new(bits.into());
        for _ in 0..3 {
            let mac = Tabulated::new(Truncated::new(random.mac(), bits));
            let locate = make(&mac);
            for round in 0..42 {
                let block = random.block();
                let stored = mac.tag(&block, NONCE);
                let bad = sum(&block, &random.error(round % 7));
                let (by_trial, _) = answer(&FlipAndCheck::CAREFUL, &mac, stored, &bad);
                let (located, _) = answer(&locate, &mac, stored, &bad);
                if located != by_trial {
                    return Err(format!("{bits} bits: {located:?}, by trial {by_trial:?}"));
                }
                kinds[match located {
                    Located::Nowhere => 0,
                    Located::Ambiguous => 1,
                    Located::At(flips) => 2 + flips.count() as usize,
                }] += 1;
            }
        }
    }
    if kinds.iter().any(|&kind| kind < 20) {
        return Err(format!("too few of a kind: {kinds:?}"));
    }
    Ok(())
}

#[test]
fn ambiguous_and_hopeless_errors_get_the_same_answer() {
    for walk in [Walk::LookUp, Walk::Scan] {
        let make = |mac: &_| SyndromeDecoder::with(SyndromeTable::unchecked(mac), walk);
        assert_eq!(agrees_with_trial(make), Ok(()));
    }
}

/// A decoder with something wrong, for canaries.
struct Broken<L, F>(L, F);

impl<L: Locate, F: Fn(Located) -> Located> Locate for Broken<L, F> {
    fn locate<G: Fn(&Block) -> u64>(
        &self,
        block: &Block,
        stored: u64,
        computed: u64,
        mac: G,
    ) -> (Located, Trials) {
        let (located, trials) = self.0.locate(block, stored, computed, mac);
        (self.1(located), trials)
    }
}

#[test]
fn canary_broken_decoders_are_noticed() {
    let Setting { mac, block } = settings().next().expect("one");
    let fails = |change: fn(Located) -> Located| {
        let broken = Broken(decoder(&mac, Walk::LookUp), change);
        names_every_error(&broken, &mac, &block, all_flips()).is_err()
    };
    assert!(!fails(|located| located));
    // The last bit forgotten; one pair of 130,816 forgotten; singles only; bits confused.
    assert!(fails(|located| match located {
        Located::At(Flips::One(511)) => Located::Nowhere,
        other => other,
    }));
    assert!(fails(|located| match located {
        Located::At(Flips::Two(200, 201)) => Located::Nowhere,
        other => other,
    }));
    assert!(fails(|located| match located {
        Located::At(Flips::Two(..)) => Located::Nowhere,
        other => other,
    }));
    assert!(fails(|located| match located {
        Located::At(Flips::One(bit)) => Located::At(Flips::One(bit ^ 7)),
        other => other,
    }));
}

#[test]
fn canary_the_table_of_another_hash_is_noticed() {
    /// The hash with two words of the block exchanged.
    struct Exchanged<'a>(&'a Tabulated<PolynomialMac>);
    impl LinearMac for Exchanged<'_> {
        fn hash(&self, block: &Block) -> u64 {
            let mut words = *block;
            words.as_chunks_mut::<8>().0.swap(2, 3);
            self.0.hash(&words)
        }
        fn pad(&self, nonce: u128) -> u64 {
            self.0.pad(nonce)
        }
    }
    let Setting { mac, block } = settings().next().expect("one");
    let other = decoder(&Exchanged(&mac), Walk::LookUp);
    assert!(names_every_error(&other, &mac, &block, all_flips()).is_err());
}

#[test]
fn canary_trial_that_takes_the_first_fit_is_noticed() {
    assert!(agrees_with_trial(|_| FlipAndCheck::FIRST_FIT).is_err());
    let guess = |located| match located {
        Located::Ambiguous => Located::Nowhere,
        other => other,
    };
    let make =
        |mac: &_| Broken(SyndromeDecoder::with(SyndromeTable::unchecked(mac), Walk::LookUp), guess);
    assert!(agrees_with_trial(make).is_err());
}

#[test]
fn random_keys_separate_all_errors() {
    let mut random = Random::new(9);
    for _ in 0..20 {
        assert!(SyndromeTable::new(&random.mac()).is_ok());
    }
}

/// The bound in the module's text: a difference of at most four bits vanishes for at most 8 x 2^8
/// points of 2^64.
#[test]
fn the_bound_on_unsuitable_keys_is_as_stated() {
    let choose = |n: u64, k: u64| (0..k).fold(1, |product, i| product * (n - i) / (i + 1));
    let differences: u64 = (1..=4).map(|bits| choose(512, bits)).sum();
    assert!((differences as f64).log2() < 31.5);
    let points = f64::from(8 << (64 - MAC_BITS));
    assert!((differences as f64 * points).log2() - 64.0 < -21.0);
}
