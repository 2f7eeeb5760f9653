//! `--heal` and `--scrub`: flipped bits of stored pages are put right where few have flipped, are a
//! violation where more have, and are found though no thread asks for the page.

mod common;

use common::keeper::attack_with;
use common::run::Running;
use common::{Done, Run, Scratch, VIOLATION, casemate, poll, processes, sampler, traps};
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// What the program fills: 12,288 pages.
const FILLED_MIB: &str = "48";
/// What may be left of it in plaintext.
const LEFT: u64 = 2 * MIB;
/// A busy machine has all this time for what takes two seconds.
const LIMIT: Duration = Duration::from_secs(120);
const SEED: u64 = 15;

/// A program that has filled its memory and sleeps, with all of it encrypted, until its input ends;
/// then it checks every byte.
fn asleep(flags: &[&str], scratch: &Scratch) -> Running {
    let words = ["marker", "--marker", "00112233445566778899aabbccddeeff", "--mib", FILLED_MIB];
    let words = words.into_iter().chain(["--mode", "plain", "--seconds", "300"]);
    let run = Run::plain([traps().to_str().expect("a path of ours")].into_iter().chain(words));
    let flags: Vec<&str> =
        ["--clear", "1G", "--idle", "1s", "--attackable"].iter().chain(flags).copied().collect();
    let mut run = run.with_input().protected(&flags, scratch.path()).without_ballast().start();
    run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
    let plaintext_bytes = || sampler::now(run.pid, &casemate());
    poll("its pages leave", LIMIT, || (plaintext_bytes() < LEFT).then_some(()));
    run
}

/// Flips so many bits of random pages.
fn flip(run: &Running, bits: u64) {
    let keeper = processes::keeper(run.pid, &casemate()).expect("there is a keeper");
    let (done, text) = attack_with(keeper, "flip", SEED, &["--flips", &bits.to_string()]);
    assert!(done, "{text}");
}

fn awake(mut run: Running) -> Done {
    run.input = None;
    run.finish()
}

#[test]
fn one_or_two_bits_of_a_page_are_put_right() {
    const BITS: u64 = 100;
    let scratch = Scratch::new("heal");
    let run = asleep(&["--heal"], &scratch);
    flip(&run, BITS);
    let done = awake(run);
    let statistics = done.good("healed").statistics("healed");
    // Of the pages of the Crypt a few are free, or are not read at the end.
    let healed = statistics.number("healed_bits");
    assert!((BITS * 9 / 10..=BITS).contains(&healed), "{healed} of {BITS} bits");
    assert_eq!(statistics.number("violations"), 0);
}

#[test]
fn without_heal_a_flipped_bit_is_a_violation() {
    let scratch = Scratch::new("no heal");
    let run = asleep(&[], &scratch);
    flip(&run, 100);
    awake(run).ended_with(VIOLATION, "a flipped bit");
}

/// Eight a page, so that hardly any has fewer than three.
#[test]
fn more_bits_of_a_page_are_a_violation() {
    let scratch = Scratch::new("many");
    let run = asleep(&["--heal"], &scratch);
    flip(&run, 8 * 12_288);
    awake(run).ended_with(VIOLATION, "many flipped bits");
}

/// The program sleeps on: no thread asks for any of its pages.
#[test]
fn the_scrubber_finds_what_no_thread_asks_for() {
    let scratch = Scratch::new("scrub");
    let mut run = asleep(&["--scrub", "1s"], &scratch);
    flip(&run, 1000);
    poll("the scrubber finds it", LIMIT, || run.ended().then_some(()));
    run.finish().ended_with(VIOLATION, "a scrubbed page");
}
