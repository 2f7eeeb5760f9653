//! The attack matrix as a test: each scheme against each attack comes out as the papers say,
//! under each residency of metadata.

mod canaries;
mod expected;
mod lines;

use casemate_lab::attack::governor::RESIDENCIES;
use casemate_lab::attack::matrix::{Effort, cell, schemes};
use casemate_lab::attack::promise::{Promise, promise};
use casemate_lab::attack::selection::Selection;
use casemate_lab::attack::strike::Attack;
use casemate_lab::attack::tally::Tally;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES, by_name};
use casemate_schemes::primitives::CipherKind;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, Residency};

/// Operations of traffic for each cell; `casemate attack` runs more, and so does a soak.
const OPERATIONS: u64 = 1_000;

/// Strikes of each cell under each residency.
const STRIKES: u64 = 4;

/// So many operations, or ten times as many in a soak (`CASEMATE_SOAK=1`).
fn size(operations: u64) -> u64 {
    let is_soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    if is_soak { 10 * operations } else { operations }
}

fn cell_of(residencies: &[Residency], scheme: &Scheme, attack: Attack, seed: u64) -> Tally {
    let tally = cell(residencies, scheme, attack, effort(), seed);
    tally.expect("the parts go together")
}

fn effort() -> Effort {
    Effort { operations: size(OPERATIONS), strikes: STRIKES }
}

/// Every cell of the matrix under one residency: what keeps no promise, or had too few strikes.
fn cells_of(residency: Residency) -> Vec<String> {
    let selection = Selection {
        schemes: &SCHEMES,
        attacks: &Attack::ALL,
        residencies: &[residency],
        effort: effort(),
        seed: 1,
    };
    let cells = selection.run(|_| ()).expect("the parts go together");
    let broken = cells.iter().filter(|cell| !cell.kept()).map(|cell| {
        let what = format!("{} {} {residency:?}", cell.named.name, cell.attack.name());
        format!("{what}: {:?}, but {:?}", cell.promise, cell.tally)
    });
    broken.collect()
}

/// Under each residency a cell has to keep its promise: what is found under one does not make up
/// for what is missed under the other.
#[test]
fn every_cell_comes_out_as_the_papers_say() {
    let wrong = RESIDENCIES.map(cells_of).concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The trees under test have nodes off chip: of Delta/ECC's 64 lines of counters, eight to a node.
#[test]
fn every_tree_has_nodes_to_attack() {
    let trees = SCHEMES.iter().filter(|named| {
        !matches!(
            named.scheme.integrity,
            IntegrityKind::None | IntegrityKind::AddressedMac | IntegrityKind::LogHash { .. }
        )
    });
    for named in trees {
        for attack in [Attack::FlipNode, Attack::ReplaySubtree] {
            let tally = cell_of(&RESIDENCIES, &named.scheme, attack, 4);
            assert!(tally.strikes() >= STRIKES, "{} {attack:?}: {tally:?}", named.name);
        }
    }
}

/// What `casemate attack` counts are epochs of both residencies.
#[test]
fn a_cell_has_epochs_of_both_residencies() {
    let named = SCHEMES.iter().find(|named| named.name == "sgx").expect("it is in the matrix");
    let (scheme, attack) = (&named.scheme, Attack::FlipCounter);
    let both = cell_of(&RESIDENCIES, scheme, attack, 1);
    for residency in RESIDENCIES {
        let alone = cell_of(&[residency], scheme, attack, 1);
        assert!(alone.detected > 0, "{residency:?}");
        assert_ne!(alone, both, "epochs of {residency:?} only");
    }
}

/// Every combination that is allowed has a name, and no attack on it achieves more than promised.
#[test]
fn combinations_keep_what_their_parts_promise() {
    for (encryption, _) in ENCRYPTIONS {
        for (integrity, _) in INTEGRITIES {
            assert!(by_name(&format!("{encryption}/{integrity}")).is_some(), "parts are named");
        }
    }
    let combinations = schemes().expect("parts go together, or it is known why not");
    let combinations = &combinations[SCHEMES.len()..];
    let mut wrong = Vec::new();
    for residency in RESIDENCIES {
        let selection = Selection {
            schemes: combinations,
            attacks: &Attack::ALL,
            residencies: &[residency],
            effort: Effort { operations: size(250), strikes: 1 },
            seed: 3,
        };
        for cell in selection.run(|_| ()).expect("the parts go together") {
            let wrong_ones = match cell.promise {
                Promise::NothingToAttack(_) => cell.tally.strikes(),
                Promise::Detected | Promise::Hidden => {
                    cell.tally.undetected + cell.tally.at_next_check
                }
                Promise::AtNextCheck(_) | Promise::Corrected(_) => cell.tally.undetected,
                Promise::Undetected(_) => 0,
            };
            if wrong_ones > 0 {
                let what = format!("{} {} {residency:?}", cell.named.name, cell.attack.name());
                wrong.push(format!("{what}: {:?}", cell.tally));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(combinations.len() > 90, "{}", combinations.len());
    assert!(by_name("aise").is_some() && by_name("aise/bnt").is_none() && by_name("/").is_none());
}

#[test]
fn every_kind_of_promise_is_there() {
    let promises: Vec<_> = SCHEMES
        .iter()
        .flat_map(|named| Attack::ALL.map(|attack| promise(&named.scheme, attack)))
        .collect();
    let any = |kind: fn(&Promise) -> bool| promises.iter().any(kind);
    assert!(any(|promise| matches!(promise, Promise::Detected)));
    assert!(any(|promise| matches!(promise, Promise::Undetected(_))));
    assert!(any(|promise| matches!(promise, Promise::Hidden)));
    assert!(any(|promise| matches!(promise, Promise::AtNextCheck(_))));
    assert!(any(|promise| matches!(promise, Promise::Corrected(_))));
    assert!(any(|promise| matches!(promise, Promise::NothingToAttack(_))));
    let delta_ecc = SCHEMES.iter().find(|named| named.name == "delta+ecc").expect("a row");
    let corrected = |attack| matches!(promise(&delta_ecc.scheme, attack), Promise::Corrected(_));
    assert!(corrected(Attack::FlipTwo) && !corrected(Attack::FlipMany));
}

/// Direct encryption shows repeated values, whatever the cipher; with the address mixed in only
/// those of one place (OTP/SNC, section 3.4).
#[test]
fn direct_encryption_shows_repeated_values() {
    let direct = SCHEMES.iter().find(|named| named.name == "direct").expect("a row").scheme;
    for cipher in CipherKind::ALL {
        for addressed in [false, true] {
            let scheme = Scheme {
                encryption: EncryptionKind::Direct { addressed },
                algorithms: Algorithms { cipher, ..direct.algorithms },
                ..direct
            };
            let seen = |attack| {
                let tally = cell_of(&RESIDENCIES, &scheme, attack, 2);
                (tally.undetected > 0, tally.harmless > 0)
            };
            // Seen always or never: a value is repeated, or it is not.
            assert_eq!(seen(Attack::SameValueTwoPlaces), (!addressed, addressed), "{cipher:?}");
            assert_eq!(seen(Attack::SameValueTwoTimes), (true, false), "{cipher:?}");
        }
    }
}
