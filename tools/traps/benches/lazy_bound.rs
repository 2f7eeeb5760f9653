//! How far programs pass a Clear under `--bound lazy`: a race between the keeper and programs that
//! grow, so a figure and no verdict. `cargo bench -p casemate-traps --bench lazy_bound [-- RUNS]`.
//!
//! Beside it `--bound strict`, which holds at any speed; `tests/clear_bound.rs` asserts that.

#[path = "../tests/common/mod.rs"]
mod common;

use common::sampler::Sampler;
use common::{Run, Scratch, casemate, traps};

const CLEAR_MIB: u64 = 40;
const USUAL_RUNS: usize = 5;
/// Programs, and what they grow to, in MiB.
const PROGRAMS: &[(&str, &str)] = &[
    ("children-grow-together", "240"),
    ("grows-beside-many", "200"),
    ("children-grow-without-leader", "160"),
];

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let runs = words.next().map_or(USUAL_RUNS, |word| word.parse().expect("a number of runs"));
    println!("plaintext in RAM at most, in MiB, for a Clear of {CLEAR_MIB}; {runs} runs each");
    println!(
        "{:<28} {:<8} {:>6} {:>6} {:>6}  no look for, in ms",
        "", "", "least", "median", "most"
    );
    for (program, mib) in PROGRAMS {
        for bound in ["lazy", "strict"] {
            let mut seen: Vec<(f64, u64)> = (0..runs).map(|_| one(program, mib, bound)).collect();
            seen.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (least, median, most) = (seen[0].0, seen[runs / 2].0, seen[runs - 1].0);
            let late_ms = seen.iter().map(|&(_, late_us)| late_us / 1000).max().unwrap_or(0);
            println!("{program:<28} {bound:<8} {least:>6.1} {median:>6.1} {most:>6.1}  {late_ms}");
        }
    }
}

/// The most that was seen, in MiB, and how long the watcher did not look, in microseconds.
fn one(program: &str, mib: &str, bound: &str) -> (f64, u64) {
    let scratch = Scratch::new(program);
    let traps = traps();
    let fixed = [traps.as_os_str(), program.as_ref(), "--mib".as_ref(), mib.as_ref()];
    let run = Run::plain(fixed).directory(scratch.path());
    let size = format!("{CLEAR_MIB}M");
    let flags = ["--clear", &size, "--bound", bound];
    let running = run.protected(&flags, scratch.path()).without_ballast().start();
    let sampler = Sampler::start_sparing(CLEAR_MIB << 20, running.pid, &casemate());
    let done = running.finish();
    let seen = sampler.finish();
    done.good(program);
    let late_us = done.statistics(program).number("look_late_us_peak");
    (seen.most_bytes as f64 / f64::from(1 << 20), late_us)
}
