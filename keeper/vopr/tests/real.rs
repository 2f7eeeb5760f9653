//! The simulated kernel beside the real one.

use casemate_vopr::compare;
use std::io::ErrorKind;

/// A fork must find no other thread in a library's lock, so there is one test in this file.
#[test]
fn the_simulated_kernel_answers_as_the_real_one_does() {
    let first = std::env::var("CASEMATE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    for seed in first..first + 60 {
        match compare(seed, 400) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                eprintln!("skipped: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    println!("60 scripts of 400 steps from seed {first}");
}
