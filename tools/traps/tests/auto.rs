//! `--clear auto`: the Clear follows the working set, within its bounds, until it is set.

mod common;

use common::door::set;
use common::{Done, Run, Scratch, traps};

const MIB: u64 = 1 << 20;

/// A program whose working set is 6 MiB, 48 MiB, and 6 MiB again.
fn phases(flags: &[&str], scratch: &Scratch) -> Run {
    let traps = traps();
    let words = ["phases", "--mib", "48", "--seconds", "2"];
    let words = [traps.to_str().expect("a path of ours")].into_iter().chain(words);
    Run::plain(words).protected(flags, scratch.path()).without_ballast()
}

/// Least, greatest and last size in bytes, and the changes.
fn sizes(done: &Done, what: &str) -> [u64; 4] {
    done.good(what);
    done.kept_its_bound(what);
    let keys = ["clear_bytes_limit_least", "clear_bytes_limit", "clear_bytes_limit_last"];
    let statistics = done.statistics(what);
    let [least, greatest, last] = keys.map(|key| statistics.number(key));
    println!("{what}: {} {} {} MiB", least / MIB, greatest / MIB, last / MIB);
    [least, greatest, last, statistics.number("clear_size_changes")]
}

/// It is five times as large when it is needed, and that again when it is not.
#[test]
fn the_clear_follows_the_working_set() {
    let scratch = Scratch::new("auto");
    let done = phases(&["--clear", "auto:8M..128M", "--idle", "2s"], &scratch).finish();
    let [least, greatest, last, changes] = sizes(&done, "phases");
    assert_eq!(least, 8 * MIB);
    assert!((40 * MIB..=128 * MIB).contains(&greatest), "{greatest}");
    assert!(last <= 16 * MIB, "{last}");
    // Nine times a quarter makes 8 MiB 48; few more, or it swings.
    assert!((9..=40).contains(&changes), "{changes}");
}

#[test]
fn the_clear_stays_within_its_bounds() {
    let scratch = Scratch::new("auto-most");
    let done = phases(&["--clear", "auto:8M..12M", "--idle", "2s"], &scratch).finish();
    let [least, greatest, ..] = sizes(&done, "bounds");
    assert_eq!([least, greatest], [8 * MIB, 12 * MIB]);
}

/// A program that fits the smallest Clear has no cost.
#[test]
fn a_program_that_fits_is_not_under_the_pager() {
    let scratch = Scratch::new("auto-fits");
    let done = phases(&["--clear", "auto:128M..1G"], &scratch).finish();
    let sizes = sizes(&done, "fits");
    assert_eq!(sizes, [128 * MIB, 128 * MIB, 128 * MIB, 0]);
    assert_eq!(done.statistics("fits").number("processes_armed"), 0);
}

/// What a user sets stays.
#[test]
fn a_size_that_is_set_does_not_follow() {
    let scratch = Scratch::new("auto-set");
    let mut run = phases(&["--clear", "auto:8M..128M"], &scratch).start();
    run.wait_until("it begins", |run| run.stdout().contains("phase").then_some(()));
    assert_eq!(set(run.pid, "16M").code, 0);
    let [.., last, changes] = sizes(&run.finish(), "set");
    assert_eq!(last, 16 * MIB);
    // It may have grown before.
    assert!((1..=4).contains(&changes), "{changes}");
}
