//! The toys of `docs/design/extending.md`, run and attacked like the schemes of the catalogue: the
//! walks of `schemes/tests/traffic` and the attack matrix of `lab` are compiled here a second time,
//! over the crate that has the toys.

// What the sources below call `casemate_schemes` is the crate with the toys.
extern crate casemate_toy as casemate_schemes;

#[allow(dead_code)]
#[path = "../../../../lab/src/attack/mod.rs"]
mod attack;
#[path = "../../../tests/traffic/mod.rs"]
mod traffic;
#[allow(dead_code, unused_imports)]
#[path = "../../../../lab/src/virtual_memory/mod.rs"]
mod virtual_memory;

use attack::epoch::run_broken;
use attack::governor::RESIDENCIES;
use attack::matrix::{Effort, cell};
use attack::promise::{Promise, promise};
use attack::strike::Attack;
use attack::verdict::Verdict;
use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::random::Random;
use casemate_schemes::catalogue::by_name;
use casemate_schemes::counters::{Increment, Organisation};
use casemate_schemes::primitives::MacKind;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::{Algorithms, UnitError};
use casemate_schemes::unit::scheme::{Residency, SchemeError};

/// The toys together, and each with parts of the papers: the tree without counters and over
/// sequence numbers, the counters below a tree that covers nothing else.
const SCHEMES: [&str; 5] =
    ["toy/mac-tree", "aise/mac-tree", "direct/mac-tree", "otp-tags/mac-tree", "toy/bmt"];

fn scheme(name: &str) -> Scheme {
    by_name(name).unwrap_or_else(|| panic!("{name}: the catalogue has both parts")).scheme
}

#[test]
fn the_toys_read_what_was_written_last() {
    for name in SCHEMES {
        let scheme = scheme(name);
        for cache in [0, 64 << 10] {
            traffic::run(&mut traffic::unit(&scheme, cache), &mut Random::new(1), 3_000);
        }
        let mut governed = traffic::governed(&scheme);
        traffic::run_throwing_out(&mut governed, &mut Random::new(1), 1_500, 6);
    }
}

#[test]
fn the_toys_detect_every_attack_of_the_matrix() {
    for name in SCHEMES {
        let scheme = scheme(name);
        let mut detected = 0;
        for attack in Attack::ALL {
            let effort = Effort { operations: 500, strikes: 2 };
            let tally = cell(&RESIDENCIES, &scheme, attack, effort, 1);
            let (tally, promise) =
                (tally.expect("the parts go together"), promise(&scheme, attack));
            let kept = tally.keeps(promise, effort.strikes);
            assert!(kept, "{name}, {}: {promise:?}, but {tally:?}", attack.name());
            detected += usize::from(promise == Promise::Detected);
        }
        assert!(detected >= 11, "{name}: only {detected} attacks had something to strike at");
    }
}

/// The test above can fail: without the comparisons of leaves or nodes, old MACs are believed.
#[test]
fn canary_a_toy_tree_without_its_comparisons_is_noticed() {
    // Without counters, whose lines have other nodes above them than the MACs.
    let scheme = scheme("direct/mac-tree");
    let (leaf, node) = (Attack::ReplayDataAndMac, Attack::ReplaySubtree);
    let leaves = undetected::<broken::LeavesUnverified>(&scheme, leaf);
    let nodes = undetected::<broken::NodesUnverified>(&scheme, node);
    assert!(leaves > 0 && nodes > 0, "{leaves} with old leaves, {nodes} with old nodes");
    assert_eq!(undetected::<AllChecks>(&scheme, leaf) + undetected::<AllChecks>(&scheme, node), 0);
}

/// How many of 20 strikes such a unit believes.
fn undetected<C: Checks>(scheme: &Scheme, attack: Attack) -> usize {
    let verdict = |seed| run_broken::<C>(scheme, Residency::OwnReplacement, attack, seed);
    let verdicts = (0..20).map(|seed| verdict(seed).expect("the parts go together").0);
    verdicts.filter(|verdict| *verdict == Verdict::Undetected).count()
}

/// The toy tree's MACs bind no counter, so nothing makes a nonce fresh.
#[test]
fn the_toy_tree_takes_no_mac_that_needs_a_nonce() {
    let scheme = Scheme { algorithms: Algorithms::GMAC, ..scheme("toy/mac-tree") };
    let expected = UnitError::NeedsNonce(MacKind::Gmac256 { bits: 128 });
    assert_eq!(scheme.check(), Err(SchemeError::Unit(expected)));
}

#[test]
fn the_toy_counters_never_decrease_and_never_repeat() {
    const TOY: Organisation = Organisation::TOY;
    let mut line = TOY.initial(&mut || None).expect("zeros");
    let mut last = [0; 32];
    let mut overflows = 0;
    for step in 0..2_000 {
        let slot = step * step % 32;
        let increment = TOY.increment(&mut line, slot, &mut || None).expect("there is more");
        overflows += usize::from(increment == Increment::Overflow(0..32));
        for (other, before) in last.iter_mut().enumerate() {
            let now = TOY.counter(&line, other);
            let must_grow = other == slot || increment == Increment::Overflow(0..32);
            assert!(if must_grow { now > *before } else { now == *before }, "slot {other}");
            *before = now;
        }
    }
    assert!(overflows > 0);
    line.fill(0xff);
    assert!(TOY.increment(&mut line, 3, &mut || None).is_err());
}
