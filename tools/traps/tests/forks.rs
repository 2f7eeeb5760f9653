//! What forks share counts once, also while a child is ending: a program that fits the Clear does
//! not lose its pages by forking.

mod common;

use common::{Run, Scratch, traps};

const CLEAR_MIB: u64 = 36;
/// What the program has, and what its children and short threads may have beside it at a time.
const HAS_MIB: u64 = 24;
const BESIDE_MIB: u64 = 8;

/// 150 children one after another, each of which ends at once. Counted for child and parent, the
/// program's pages alone would not fit the Clear.
#[test]
fn children_that_end_at_once_leave_their_parent_its_pages() {
    const WHAT: &str = "children-end-at-once";
    let scratch = Scratch::new("forks");
    let (traps, mib) = (traps(), HAS_MIB.to_string());
    let words = [traps.as_os_str(), WHAT.as_ref(), "--mib".as_ref(), mib.as_ref()];
    let clear = format!("{CLEAR_MIB}M");
    let run = Run::plain(words).protected(&["--clear", &clear], scratch.path());
    let done = run.without_ballast().finish();
    let statistics = done.good(WHAT).statistics(WHAT);
    let number = |name| statistics.number(name);
    println!("{} KiB at most, {} pages out", number("clear_bytes_peak") >> 10, number("pages_out"));
    assert!(number("processes_armed") > 100, "vacuous: its children had no agents");
    let peak = number("clear_bytes_peak");
    assert!(peak > HAS_MIB << 20, "vacuous: {peak} bytes in the Clear");
    assert!(peak < (HAS_MIB + BESIDE_MIB) << 20, "{} KiB in the Clear", peak >> 10);
}
