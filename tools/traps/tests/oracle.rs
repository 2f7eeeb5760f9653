//! The oracle, plain, under the pager, and under attack: it may be stopped, it may never read a
//! wrong byte.
//!
//! `CASEMATE_SOAK=1` makes 10⁸ accesses of each run instead of 10⁷, and 5000 seeds of 20.

mod common;

use common::keeper::{KINDS, assert_no_mismatch, attack, oracle, protected_oracle, steady_oracle};
use common::run::{Done, Running};
use common::{Scratch, VIOLATION, loud, skip};
use std::time::{Duration, Instant};

fn accesses() -> u64 {
    let soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    if soak { 100_000_000 } else { 10_000_000 }
}

/// A soak goes round with other seeds.
fn seed(number: u64) -> u64 {
    let round = std::env::var("CASEMATE_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    number + 100_000 * round.unwrap_or(1).saturating_sub(1)
}

fn limit() -> u64 {
    accesses() / 10_000_000 * 300
}

#[test]
fn plain() {
    oracle(accesses(), 1).finish().good("oracle");
}

#[test]
fn a_corrupted_byte_is_found() {
    let traps = common::traps();
    for seed in ["1", "2", "3"] {
        let words = ["oracle", "--canary", "--accesses", "200000", "--seed", seed];
        let words = words.map(std::ffi::OsStr::new);
        let run = common::Run::plain([traps.as_os_str()].into_iter().chain(words));
        let done = run.finish();
        done.ended_with(1, "oracle --canary");
        assert!(done.stderr.contains("mismatch at"), "{}", done.stderr);
    }
}

#[test]
fn a_corrupted_byte_is_found_under_the_pager() {
    let scratch = Scratch::new("canary");
    let traps = common::traps();
    // Without forks: in doubt about their order the run would be stopped before the byte is met.
    let words = ["oracle", "--canary", "--accesses", "1000000", "--mib", "48", "--without", "fork"];
    let run =
        common::Run::plain([traps.as_os_str()].into_iter().chain(words.map(std::ffi::OsStr::new)));
    let done = run.protected(&["--clear", "8M"], scratch.path()).finish();
    done.ended_with(1, "oracle --canary");
    assert!(done.stderr.contains("mismatch at"), "{}", done.stderr);
    done.really_paged("oracle --canary");
}

#[test]
fn protected() {
    let scratch = Scratch::new("oracle");
    for (seed, flags) in [(11, &["--node-cache", "16K"][..]), (12, &[])] {
        let seed = crate::seed(seed);
        let done = protected_oracle(accesses(), seed, flags, &scratch).seconds(limit()).finish();
        assert_no_mismatch(&done);
        done.good("oracle");
        done.really_paged("oracle");
        loud(done.stderr.trim());
    }
}

/// A write to it makes the kernel move memory together.
const COMPACT: &str = "/proc/sys/vm/compact_memory";

/// While the kernel moves memory about for reasons of its own, pages are in no mapping for moments.
/// None may get lost on its way out.
#[test]
fn while_the_kernel_compacts_memory() {
    if std::fs::write(COMPACT, "1").is_err() {
        return skip("the oracle while memory is compacted", "only root may compact memory");
    }
    let scratch = Scratch::new("compacted");
    let migrated = migrated_pages();
    let mut run = steady_oracle(accesses(), seed(21), &[], &scratch).seconds(limit()).start();
    while run.goes_on() {
        std::fs::write(COMPACT, "1").expect("it was written before");
    }
    let done = run.finish();
    assert_no_mismatch(&done);
    done.good("oracle");
    done.really_paged("oracle");
    let migrated = migrated_pages() - migrated;
    loud(&format!("the kernel moved {migrated} pages of this machine meanwhile"));
}

/// The same with many seeds, each for half a second: what is lost to a migration is lost in one of
/// hundreds.
#[test]
fn seeds_while_the_kernel_compacts_memory() {
    const FIRST: u64 = 1001;
    if std::fs::write(COMPACT, "1").is_err() {
        return skip("seeds while memory is compacted", "only root may compact memory");
    }
    let soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    let seeds = if soak { 5000 } else { 20 };
    let scratch = Scratch::new("seeds");
    let migrated = migrated_pages();
    let mut wrong = Vec::new();
    for number in 0..seeds {
        let seed = seed(FIRST + number);
        let run = oracle(1_500_000, seed).with_words(&["--without", "fork"]);
        let run = run.protected(&["--clear", "8M"], scratch.path()).without_ballast();
        let mut run = run.seconds(60).start();
        while run.goes_on() {
            std::fs::write(COMPACT, "1").expect("it was written before");
        }
        let done = run.finish();
        if done.code != 0 {
            loud(&format!("seed {seed}: exit code {}: {}", done.code, done.stderr.trim()));
            wrong.push(seed);
            continue;
        }
        done.really_paged("oracle");
        if number % 100 == 99 {
            loud(&format!("{} of {seeds} seeds while memory is compacted", number + 1));
        }
    }
    assert!(migrated_pages() > migrated, "the kernel moved nothing: the test tried nothing");
    assert!(wrong.is_empty(), "{} of {seeds} seeds went wrong: {wrong:?}", wrong.len());
}

fn migrated_pages() -> u64 {
    let counts = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counts.lines().find_map(|line| line.strip_prefix("pgmigrate_success "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// One run under attacks of one kind, the first at a moment that the seed chooses.
fn attacked(kind: &str, seed: u64, scratch: &Scratch) -> bool {
    // Long enough to be met by an attack; one that is detected ends it early.
    let run = steady_oracle(6 * accesses(), seed, &["--attackable"], scratch);
    let mut run = run.seconds(limit()).start();
    let keeper = run.busy_keeper(5 + seed % 20);
    let mut made = 0;
    let mut next = Instant::now();
    while run.goes_on() {
        if Instant::now() >= next {
            let (done, text) = attack(keeper, kind, seed * 1000 + made);
            // The run may end while it is being attacked.
            let too_early = text.contains("has put no ciphertext out yet");
            let nothing_changed = text.contains("nothing that was remembered changed");
            assert!(
                done || run.ended() || made > 0 || too_early || nothing_changed,
                "attack {kind}: {text}"
            );
            made += u64::from(done);
            next = Instant::now() + Duration::from_millis(20 + seed * 37 % 100);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let done = run.finish();
    assert_no_mismatch(&done);
    if made == 0 {
        loud(&format!("attack {kind}, seed {seed}: the run ended before an attack could be made"));
        return false;
    }
    match done.code {
        0 => {
            let statistics = done.statistics(kind);
            assert_eq!(
                statistics.number("violations"),
                0,
                "violations and yet 0: {}",
                statistics.0
            );
            false
        }
        VIOLATION => {
            assert!(done.statistics(kind).number("violations") > 0, "120 without a violation");
            assert!(done.stderr.contains("INTEGRITY VIOLATION"), "{}", done.stderr);
            true
        }
        code => {
            panic!("{kind}, seed {seed}: exit code {code} after {made} attacks: {}", done.stderr)
        }
    }
}

fn under_attack(kind: &str) {
    assert!(KINDS.contains(&kind));
    let scratch = Scratch::new(kind);
    let detected = (1..=4).filter(|number| attacked(kind, seed(*number), &scratch)).count();
    loud(&format!("attack {kind}: detected in {detected} of 4 runs, no wrong byte in any"));
    assert!(detected > 0, "{kind}: none of four runs met a changed page");
}

#[test]
fn under_flips() {
    under_attack("flip");
}

#[test]
fn under_replays() {
    under_attack("replay");
}

#[test]
fn under_splices() {
    under_attack("splice");
}

#[test]
fn under_rollbacks() {
    under_attack("rollback");
}

#[test]
fn under_metadata_attacks() {
    under_attack("metadata");
}

#[test]
fn a_run_that_is_not_attackable_cannot_be_attacked() {
    let scratch = Scratch::new("closed");
    let mut run = steady_oracle(30_000_000, 5, &[], &scratch).seconds(limit()).start();
    let keeper = run.busy_keeper(5);
    for pid in [keeper, run.pid] {
        let (done, text) = attack(pid, "flip", 1);
        assert!(!done, "an attack on {pid} was possible: {text}");
    }
    run.finish().good("oracle").really_paged("oracle");
}

#[test]
fn the_policy_sigbus_ends_the_reader() {
    let scratch = Scratch::new("sigbus");
    let flags = ["--attackable", "--on-violation", "sigbus"];
    let mut run = steady_oracle(6 * accesses(), 6, &flags, &scratch).seconds(limit()).start();
    let keeper = run.busy_keeper(10);
    flip_until_the_end(&mut run, keeper);
    let done = run.finish();
    assert_no_mismatch(&done);
    ended_by_a_violation(&done);
}

/// A page that is read ahead is violated before it is asked for. A thread that waits for the page
/// before it must get that one, and the violated one must end the program.
#[test]
fn a_violation_that_is_read_ahead_ends_the_reader() {
    let scratch = Scratch::new("ahead");
    let words = ["sweeper", "--mib", "32", "--accesses", "1000000000"].map(std::ffi::OsStr::new);
    let sweeper = common::Run::plain([common::traps().as_os_str()].into_iter().chain(words));
    let flags = ["--clear", "8M", "--attackable", "--on-violation", "sigbus"];
    for round in 0..10 {
        let mut run = sweeper.protected(&flags, scratch.path()).seconds(60).start();
        let keeper = run.busy_keeper(5 + round);
        flip_until_the_end(&mut run, keeper);
        let done = run.finish();
        assert!(!done.stderr.contains("wrong:"), "a wrong byte was read: {}", done.stderr);
        ended_by_a_violation(&done);
    }
}

fn flip_until_the_end(run: &mut Running, keeper: i32) {
    let mut seed = 0;
    while run.goes_on() {
        attack(keeper, "flip", seed);
        seed += 1;
    }
}

fn ended_by_a_violation(done: &Done) {
    assert!([VIOLATION, 128 + libc::SIGBUS].contains(&done.code), "{}: {}", done.code, done.stderr);
    assert!(done.statistics("sigbus").number("violations") > 0, "SIGBUS without a violation");
}
