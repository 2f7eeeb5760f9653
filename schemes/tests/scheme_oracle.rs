//! Every scheme that has a name, against a plain map: half of the operations with no metadata cache
//! beyond what the protocol needs, half with an ordinary one. A hundred thousand operations each;
//! `CASEMATE_SOAK=1` makes them a million (`cargo xtask soak`).
//!
//! `unit_oracle` has all combinations, for fewer operations each.

mod traffic;

use casemate_core::random::{Random, SeedOnFailure, seed};
use casemate_schemes::catalogue::SCHEMES;
use traffic::{run, unit};

const OPERATIONS: u64 = 100_000;
const SOAK_OPERATIONS: u64 = 1_000_000;
const CACHES_BYTES: [usize; 2] = [0, 64 << 10];
/// Tests that share the schemes, so that they run side by side.
const SHARES: usize = 4;

fn operations() -> u64 {
    let soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    if soak { SOAK_OPERATIONS } else { OPERATIONS }
}

fn share(number: usize) {
    let operations = operations();
    let seed = seed(0x1_000_000);
    let _print = SeedOnFailure(seed);
    for named in SCHEMES.iter().skip(number).step_by(SHARES) {
        for cache_bytes in CACHES_BYTES {
            let mut unit = unit(&named.scheme, cache_bytes);
            let mut random = Random::new(seed ^ cache_bytes as u64);
            run(&mut unit, &mut random, operations / CACHES_BYTES.len() as u64);
        }
        println!("{}: {operations} operations", named.name);
    }
}

#[test]
fn all_that_is_read_was_written_last_in_the_first_share() {
    share(0);
}

#[test]
fn all_that_is_read_was_written_last_in_the_second_share() {
    share(1);
}

#[test]
fn all_that_is_read_was_written_last_in_the_third_share() {
    share(2);
}

#[test]
fn all_that_is_read_was_written_last_in_the_fourth_share() {
    share(3);
}

/// The comparison can fail: to a fresh map, what another run has left is wrong.
#[test]
#[should_panic(expected = "`left == right` failed")]
fn a_block_that_is_not_in_the_map_is_noticed() {
    let mut unit = unit(&SCHEMES[0].scheme, 0);
    run(&mut unit, &mut Random::new(1), 1_000);
    run(&mut unit, &mut Random::new(2), 1_000);
}
