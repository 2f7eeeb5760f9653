//! Runs seeds: `casemate-vopr MODE FIRST COUNT [STEPS] [trace]`.

use casemate_vopr::{Mode, Plan, run};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| words.get(i).and_then(|w| w.parse().ok()).unwrap_or(usual);
    let named = |mode: &Mode| {
        words.first().is_none_or(|name| format!("{mode:?}").eq_ignore_ascii_case(name))
    };
    let (first, count, steps) = (number(1, 1), number(2, 100), number(3, 20_000));
    let trace = words.last().is_some_and(|word| word == "trace");
    for mode in Mode::ALL.into_iter().filter(named) {
        let started = Instant::now();
        let (mut all, mut failures) = ([0_u64; 11], 0);
        let (mut violations, mut doubts, mut full) = (0, 0, 0);
        for seed in first..first + count {
            let report = run(&Plan { steps, trace, ..Plan::new(mode, seed) });
            if let Some(failure) = &report.failure {
                failures += 1;
                println!("{mode:?}, seed {seed}: {failure}");
            }
            violations += u64::from(report.violation);
            doubts += u64::from(report.doubt);
            full += u64::from(report.full);
            let r = &report;
            let numbers = [
                r.steps,
                r.switches,
                r.loads,
                r.stores,
                r.calls,
                r.forks,
                r.uncounted,
                r.sealed,
                r.healed,
                r.rotations,
                r.checks,
            ];
            all.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
        }
        let [
            steps,
            switches,
            loads,
            stores,
            calls,
            forks,
            uncounted,
            sealed,
            healed,
            rotations,
            checks,
        ] = all;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{mode:?}: {count} seeds from {first}, {failures} failed, {violations} with a violation, \
             {doubts} stopped in doubt, {full} ended by a full store, \
             {seconds:.1} s, {steps} steps ({:.0} a second), {switches} switches, {loads} loads, \
             {stores} stores, {calls} calls, {forks} forks, {sealed} sealed, {healed} healed, {rotations} rotations, {checks} checks, {uncounted} uncounted",
            steps as f64 / seconds
        );
    }
}
