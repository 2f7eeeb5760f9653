//! Points that are computed by hand, laws, the real search beside the formulas, and wrong formulas
//! that each of these finds.

use super::decay::{Cell, decay};
use super::recovery::{as_read, by_likelihood, mean};
use super::trial::{Trial, search};
use super::*;
use casemate_core::random::{Random, SeedOnFailure, seed};

/// Recovery from so many bits at a decayed share by 2^k candidates.
type Formula = fn(u64, f64, u32) -> f64;

fn reads(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    recovery(bits, decayed, search_bits, Attacker::Reads)
}

fn knows_cells(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    recovery(bits, decayed, search_bits, Attacker::KnowsCells)
}

/// Takes the decayed share for the probability that a bit which reads as its ground state decayed.
fn wrong_chance(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    let budget = 2.0_f64.powf(f64::from(search_bits));
    mean(bits, as_read(decayed).0, |m| by_likelihood(m, decayed.min(0.5), budget))
}

/// Forgets that decayed bits read as their ground state too.
fn wrong_number(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    let budget = 2.0_f64.powf(f64::from(search_bits));
    mean(bits, 0.5, |m| by_likelihood(m, as_read(decayed).1, budget))
}

/// Does not know that a bit which is not as its ground state is right.
fn no_ground_states(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    by_likelihood(bits, decayed / 2.0, 2.0_f64.powf(f64::from(search_bits)))
}

/// Searches twice as much.
fn wrong_budget(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    knows_cells(bits, decayed, search_bits + 1)
}

/// Finds nothing where it searches a part.
fn all_or_none(bits: u64, decayed: f64, search_bits: u32) -> f64 {
    knows_cells(bits, decayed, search_bits).floor()
}

/// Points that both attackers share, by hand: bits, decayed share, k, and what comes of it.
const BY_HAND: [(u64, f64, u32, f64); 8] = [
    // Nothing decayed.
    (1, 0.0, 0, 1.0),
    (8 << 20, 0.0, 60, 1.0),
    // Everything decayed: each of 2^10 candidates is as likely, and half of them are tried.
    (10, 1.0, 9, 0.5),
    (10, 1.0, 10, 1.0),
    (256, 1.0, 60, 0.0),
    // One candidate: right if every bit reads right, which it does with 1 - d/2.
    (1, 0.5, 0, 0.75),
    (2, 0.5, 0, 0.5625),
    (1 << 15, 1e-4, 0, 0.194_282_7),
];

fn agrees_by_hand(formula: Formula) -> bool {
    BY_HAND
        .iter()
        .all(|(bits, decayed, k, by_hand)| (formula(*bits, *decayed, *k) - by_hand).abs() < 1e-6)
}

#[test]
fn points_computed_by_hand() {
    for (bits, decayed, k, by_hand) in BY_HAND {
        for formula in [reads, knows_cells] {
            let computed = formula(bits, decayed, k);
            assert!((computed - by_hand).abs() < 1e-6, "{bits} {decayed} {k}: {computed}");
        }
    }
    // Two bits, two candidates, half decayed. Both read as ground with 9/16: then nothing changed
    // with 4/9, one with 4/9, and one of the two that may be it is tried. One does with 6/16.
    let both = 9.0 / 16.0 * (4.0 / 9.0 + 4.0 / 9.0 / 2.0) + 6.0 / 16.0 + 1.0 / 16.0;
    assert!((reads(2, 0.5, 1) - both).abs() < 1e-12);
    // Both leaked with 1/4: two candidates of four.
    assert!((knows_cells(2, 0.5, 1) - (0.75 + 0.25 / 2.0)).abs() < 1e-12);
    for wrong in [wrong_chance, wrong_number, wrong_budget, all_or_none] {
        assert!(!agrees_by_hand(wrong));
    }
}

/// The first law that a formula breaks: recovery falls with the share and the size, grows with the
/// search, and is a probability.
fn broken_law(formula: Formula) -> Option<&'static str> {
    let sizes = [1_u64, 10, 256, 1 << 11, 1 << 15, 1 << 23];
    let least = 1e-9;
    for (bits, k) in sizes.iter().flat_map(|bits| [0, 9, 40, 60].map(|k| (*bits, k))) {
        let mut before = 1.0;
        for share in (-32..=0).map(|power| 10_f64.powf(f64::from(power) / 4.0)) {
            let now = formula(bits, share, k);
            let of = |bits, k| formula(bits, share, k);
            match now {
                _ if !(0.0..=1.0).contains(&now) => return Some("is no probability"),
                _ if now > before + least => return Some("grows with the share"),
                _ if of(bits * 2, k) > now + least => return Some("grows with the size"),
                _ if of(bits, k + 1) < now - least => return Some("falls with the search"),
                _ => before = now,
            }
        }
    }
    None
}

#[test]
fn recovery_falls_with_share_and_size_and_grows_with_the_search() {
    assert_eq!(broken_law(reads), None);
    assert_eq!(broken_law(knows_cells), None);
    assert_eq!(broken_law(|_, share, _| 2.0 - share), Some("is no probability"));
    assert_eq!(broken_law(|_, share, _| share), Some("grows with the share"));
    assert_eq!(
        broken_law(|n, share, k| reads((1 << 24) / n, share, k)),
        Some("grows with the size")
    );
    assert_eq!(broken_law(|n, share, k| reads(n, share, 64 - k)), Some("falls with the search"));
}

/// Who knows more finds more.
#[test]
fn knowing_the_cells_never_harms() {
    for share in share_powers().map(|power| 10_f64.powf(power)) {
        for bits in [256, 1 << 15, 1 << 20] {
            assert!(
                knows_cells(bits, share, 60) >= reads(bits, share, 60) - 1e-9,
                "{bits} {share}"
            );
        }
    }
}

/// 128 bytes, 2^9 candidates, at shares where some of the searches succeed; 500 secrets each.
fn tried(attacker: Attacker, random: &mut Random) -> Vec<(f64, f64)> {
    let shares = match attacker {
        Attacker::Reads => [0.001, 0.0025, 0.004],
        Attacker::KnowsCells => [0.006, 0.009, 0.012],
    };
    let rate = |decayed| {
        let trial = Trial { bytes: 128, decayed, search_bits: 9, attacker };
        let found = trial.recovered(500, random.next()).expect("it has room");
        (decayed, f64::from(found) / 500.0)
    };
    shares.map(rate).to_vec()
}

/// Within four standard deviations everywhere.
fn agrees(tried: &[(f64, f64)], formula: Formula) -> bool {
    tried.iter().all(|(decayed, rate)| {
        let p = formula(1024, *decayed, 9);
        (rate - p).abs() < 4.0 * (p * (1.0 - p) / 500.0).sqrt() + 1e-9
    })
}

#[test]
fn the_real_search_finds_as_many_as_the_formulas_say() {
    let seed = seed(7);
    let _told = SeedOnFailure(seed);
    let mut random = Random::new(seed);
    let by_reading = tried(Attacker::Reads, &mut random);
    assert!(agrees(&by_reading, reads), "{by_reading:?}");
    assert!(!agrees(&by_reading, no_ground_states), "{by_reading:?}");
    assert!(!agrees(&by_reading, knows_cells), "{by_reading:?}");
    let by_cells = tried(Attacker::KnowsCells, &mut random);
    assert!(agrees(&by_cells, knows_cells), "{by_cells:?}");
    assert!(!agrees(&by_cells, wrong_budget), "{by_cells:?}");
    assert!(!agrees(&by_cells, reads), "{by_cells:?}");
}

/// A key of 20 bits alone, decayed so far that [`wrong_number`] would be seen.
#[test]
fn a_key_alone_is_found_as_often_as_the_formula_says() {
    let mut random = Random::new(11);
    let (times, decayed, k) = (4000, 0.6, 7);
    let found = (0..times).filter(|_| {
        let mut key = [0; 2];
        random.fill(&mut key);
        let mut memory = key;
        decay(&mut memory, decayed, &mut random);
        let uncertain: Vec<Cell> = Cell::all(2).filter(|cell| cell.is_ground(&memory)).collect();
        search(&mut memory, &uncertain, 1 << k, |memory| memory == key)
    });
    let rate = found.count() as f64 / f64::from(times);
    let near = |p: f64| (rate - p).abs() < 4.0 * (p * (1.0 - p) / f64::from(times)).sqrt();
    assert!(near(reads(16, decayed, k)), "{rate} and {}", reads(16, decayed, k));
    assert!(!near(wrong_number(16, decayed, k)) && !near(wrong_chance(16, decayed, k)), "{rate}");
}

#[test]
fn memory_decays_to_its_ground_state_and_no_further() {
    let mut random = Random::new(3);
    let mut memory = vec![0; 4096];
    random.fill(&mut memory);
    let before = memory.clone();
    let leaked = decay(&mut memory, 0.1, &mut random).len();
    // 3277 of 32768, with a standard deviation of 54; half of them were charged.
    assert!(leaked.abs_diff(3277) < 250, "{leaked}");
    let differ = before.iter().zip(&memory).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    assert!(differ.abs_diff(1638) < 160, "{differ}");
    let lost_charge = |cell: &Cell| !cell.is_ground(&before) && cell.is_ground(&memory);
    assert_eq!(Cell::all(4096).filter(lost_charge).count(), differ as usize);
    decay(&mut memory, 1.0, &mut random);
    assert!(memory.chunks(64).all(|two| two[..32] == [0; 32] && two[32..] == [255; 32]));
}

#[test]
fn half_of_the_keys_are_recovered_where_it_says() {
    for target in [Target::Key, Target::Spread(4096), Target::Spread(1 << 20)] {
        for attacker in [Attacker::Reads, Attacker::KnowsCells] {
            let share = target.half_recovered(60, attacker);
            let there = target.recovery(share, 60, attacker);
            assert!((there - 0.5).abs() < 1e-3, "{target:?} {attacker:?}: {there} at {share}");
        }
    }
    assert!((Target::Schedule.half_recovered(60, Attacker::Reads) - SCHEDULE_SHARE).abs() < 1e-4);
    assert!((Target::Key.half_recovered(300, Attacker::Reads) - 1.0).abs() < 1e-9);
}
