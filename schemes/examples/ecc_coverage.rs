//! What the MAC in the ECC bits and standard SEC-DED make of flipped bits (Delta/ECC, Figure 3),
//! and how often a correction goes wrong, beside the formula.
//!
//! `cargo run --release -p casemate-schemes --example ecc_coverage`

use casemate_core::random::Random;
use casemate_schemes::ecc::correction::EccMac;
use casemate_schemes::ecc::coverage::{
    CANDIDATES, Outcome, Spread, Tally, by_mac, by_standard, by_syndrome, chances,
};
use casemate_schemes::ecc::polynomial_mac::{RandomBlocks, Tabulated, Truncated};
use casemate_schemes::ecc::syndrome::{SyndromeDecoder, SyndromeTable, Walk};

const ROUNDS: u32 = 20_000;
const KEYS: u64 = 200;
const ERRORS: u64 = 500;

fn print_cases() {
    let mut random = Random::new(1);
    let mac = Tabulated::new(random.mac());
    let table = SyndromeTable::new(&mac).expect("suitable");
    let ecc = EccMac::new(&mac, SyndromeDecoder::with(table, Walk::LookUp));
    println!(
        "{:<14} {:>5}   {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}",
        "flips in", "", "MAC: ok", "refused", "wrong", "SEC: ok", "refused", "wrong"
    );
    for spread in Spread::ALL {
        for flips in [1, 2, 3, 4, 5, 8, 16] {
            let (mut mac, mut standard) = (Tally::default(), Tally::default());
            for _ in 0..ROUNDS {
                let Some(error) = spread.draw(flips, || random.next()) else { break };
                let block = random.block();
                mac.add(by_mac(&ecc, &block, 1, &error));
                standard.add(by_standard(&block, &error));
            }
            if mac.total() == 0 {
                continue;
            }
            let share = |count| 100.0 * f64::from(count as u32) / f64::from(ROUNDS);
            println!(
                "{:<14} {flips:>5}   {:>7.2}% {:>7.2}% {:>7.2}%   {:>7.2}% {:>7.2}% {:>7.2}%",
                format!("{spread:?}"),
                share(mac.right),
                share(mac.refused),
                share(mac.wrong),
                share(standard.right),
                share(standard.refused),
                share(standard.wrong)
            );
        }
    }
}

fn print_wrong_corrections() {
    println!("\nwrong data let through, of {} errors under {KEYS} keys", KEYS * ERRORS);
    println!(
        "{:>8} {:>5} {:>12} {:>12} {:>7}",
        "MAC bits", "flips", "measured", "formula", "ratio"
    );
    for mac_bits in [16, 20, 24] {
        for flips in [1, 2, 3, 4, 5, 8, 32] {
            let mut random = Random::new(u64::from(flips * 100 + mac_bits));
            let mut wrong = 0u64;
            for _ in 0..KEYS {
                let mac = Tabulated::new(Truncated::new(random.mac(), mac_bits));
                let table = SyndromeTable::unchecked(&mac);
                for _ in 0..ERRORS {
                    let outcome = by_syndrome(&mac, &table, &random.error(flips));
                    wrong += u64::from(outcome == Outcome::Wrong);
                }
            }
            let measured = wrong as f64 / (KEYS * ERRORS) as f64;
            let expected = chances(flips, mac_bits).wrong;
            println!(
                "{mac_bits:>8} {flips:>5} {measured:>12.3e} {expected:>12.3e} {:>7.3}",
                measured / expected
            );
        }
    }
    println!("56 bits, three flips and more: 2^{:.2}", chances(3, 56).wrong.log2());
    println!("({CANDIDATES} blocks within two bits of one that fits)");
}

fn main() {
    print_cases();
    print_wrong_corrections();
}
