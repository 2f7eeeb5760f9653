//! Pages that a program reads in order come in before it asks for them, whichever way it goes, and
//! are what it wrote.

mod common;

use common::{Run, Scratch, traps};

const PAGES: u64 = 24 * 256;
/// How often it reads all.
const ROUNDS: u64 = 3;

/// Faults, and pages that came in, while three times what fits is read in this order.
fn read(mode: &str) -> (u64, u64) {
    let scratch = Scratch::new("read-ahead");
    let accesses = (ROUNDS * PAGES).to_string();
    let words = ["sweeper", "--mib", "24", "--accesses", &accesses, "--mode", mode];
    let traps = traps();
    let run = Run::plain([traps.to_str().expect("a path of ours")].into_iter().chain(words));
    let run = run.protected(&["--clear", "8M"], scratch.path()).without_ballast();
    let done = run.finish();
    let statistics = done.good(mode).really_paged(mode).statistics(mode);
    let [faults, pages_in] = ["faults", "pages_in"].map(|key| statistics.number(key));
    println!("{mode}: {faults} faults, {pages_in} pages came in");
    (faults, pages_in)
}

/// A fault brings in up to 64 pages of a run, and up to 16 that are apart; fewer where the Clear
/// has no room for more at that moment, as on a busy machine. Without read-ahead it brings in one.
#[test]
fn one_fault_brings_in_many_pages_upwards_downwards_and_in_columns() {
    for (mode, pages_a_fault) in [("plain", 8), ("down", 8), ("columns", 4)] {
        let (faults, pages_in) = read(mode);
        assert!(pages_in > ROUNDS * PAGES / 2, "{mode}: vacuous, {pages_in} pages came in");
        assert!(pages_in < ROUNDS * PAGES * 5 / 4, "{mode}: {pages_in} for {PAGES} thrice");
        assert!(faults < pages_in / pages_a_fault, "{mode}: {faults} faults for {pages_in} pages");
    }
}
