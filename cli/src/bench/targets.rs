//! Targets, beside what was measured.

use std::fmt::Write;

use serde::Serialize;

use super::DEFAULT_CLEAR;
use super::measure::System;
use super::results::Results;
use super::timer::Phase;
use crate::failure::Failure;

/// One target.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// In words.
    pub what: &'static str,
    /// What was measured.
    pub value: f64,
    /// Where it lies with 95 % confidence, if that is known.
    pub interval: Option<[f64; 2]>,
    /// The limit.
    pub limit: f64,
    /// Whether more is better.
    pub at_least: bool,
    /// Whether it was reached.
    pub verdict: Verdict,
    /// Whether the benchmark fails if it is missed.
    pub gated: bool,
}

/// Whether a target was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was.
    Reached,
    /// It was not.
    Missed,
    /// The limit lies within the interval.
    Undecided,
    /// It is of another size than what was measured.
    NotJudged,
}

/// A target, if what it is about was measured.
pub fn target(
    what: &'static str,
    value: Option<f64>,
    limit: f64,
    at_least: bool,
) -> Option<Target> {
    let value = value.filter(|value| value.is_finite())?;
    let verdict =
        if is_within(value, limit, at_least) { Verdict::Reached } else { Verdict::Missed };
    Some(Target { what, value, interval: None, limit, at_least, verdict, gated: false })
}

fn is_within(value: f64, limit: f64, at_least: bool) -> bool {
    if at_least { value >= limit } else { value <= limit }
}

impl Target {
    /// The same, and the benchmark fails if it is missed.
    fn gated(self) -> Self {
        Target { gated: true, ..self }
    }

    /// The same, which is said of the default size, but not of what was measured.
    fn not_judged(self) -> Self {
        Target { verdict: Verdict::NotJudged, ..self }
    }

    /// The same, judged by where the value lies with 95 % confidence.
    fn within(self, interval: [f64; 2]) -> Self {
        let [low, high] = interval.map(|end| is_within(end, self.limit, self.at_least));
        let verdict = match (low, high) {
            (true, true) => Verdict::Reached,
            (false, false) => Verdict::Missed,
            _ => Verdict::Undecided,
        };
        Target { interval: Some(interval), verdict, ..self }
    }
}

/// A line for each.
pub fn list(targets: &[Target]) -> String {
    let mut text = String::new();
    for target in targets {
        let sign = if target.at_least { ">=" } else { "<=" };
        let verdict = match target.verdict {
            Verdict::Reached => "reached",
            Verdict::Missed => "MISSED",
            Verdict::Undecided => "undecided",
            Verdict::NotJudged => "not judged: it is of the default size",
        };
        let interval = target
            .interval
            .map(|[low, high]| format!(" ({low:.3} to {high:.3} with 95 % confidence)"));
        let _ = writeln!(
            text,
            "  {:<32}{:>8.3}   {sign} {:<6} {verdict}{}",
            target.what,
            target.value,
            target.limit,
            interval.unwrap_or_default()
        );
    }
    text
}

/// The answer is no if a gated target was missed: one that this program reaches, and is to go on
/// reaching.
pub fn gate(targets: &[Target]) -> Result<(), Failure> {
    let is_missed = |target: &&Target| target.gated && target.verdict == Verdict::Missed;
    let Some(missed) = targets.iter().find(is_missed) else { return Ok(()) };
    let beyond = if missed.at_least { "less" } else { "more" };
    Err(Failure::no(format!(
        "{} came to {:.3}, {beyond} than {}: that target was reached before",
        missed.what, missed.value, missed.limit
    )))
}

/// What the pager is to reach, of what was measured.
pub fn targets(results: &Results) -> Vec<Target> {
    use System::{Casemate, Floor, Zram};
    let miss =
        |system, threads, phase| Some(results.row(system, threads, phase)?.us_per_miss?.median);
    let access =
        |system, threads, phase| Some(results.row(system, threads, phase)?.us_per_access.median);
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    let (read, modify) = (Phase::RandomRead, Phase::RandomModify);
    let sequential = Phase::SequentialRead;
    let own = |threads, phase| miss(Casemate, threads, phase);
    // Each of two threads waits for its own misses.
    let scaling = ratio(own(1, read).map(|us| 2.0 * us), own(2, read));
    let crypto = results.crypto.as_ref();
    let [seal, open] = [
        crypto.map(|c| c.engine_seal_us.median / c.plain_seal_us.median),
        crypto.map(|c| c.engine_open_us.median / c.plain_open_us.median),
    ];
    let fits = results.fits.as_ref().map(|fits| fits.work_ratio);
    let most = |what, value, limit| target(what, value, limit, false);
    let is_default = results.clear_bytes == DEFAULT_CLEAR;
    let of_the_size = |target: Target| if is_default { target } else { target.not_judged() };
    let of_the_pager = [
        most("random miss / floor", ratio(own(1, read), miss(Floor, 1, read)), 1.5),
        most("random miss / zram", ratio(own(1, read), miss(Zram, 1, read)), 0.8),
        most("load + store miss / zram", ratio(own(1, modify), miss(Zram, 1, modify)), 0.8),
        most(
            "sequential read / zram",
            ratio(access(Casemate, 1, sequential), access(Zram, 1, sequential)),
            0.3,
        ),
        most(
            "two threads' read / zram",
            ratio(access(Casemate, 2, read), access(Zram, 2, read)),
            1.0,
        ),
        target("two threads' misses / one's", scaling, 1.7, true),
        most("program that fits / plain", fits.map(|ratio| ratio.median), 1.005)
            .zip(fits)
            .map(|(target, ratio)| target.within([ratio.low, ratio.high])),
    ];
    let of_the_engine = [
        most("seal / library", seal, 1.3),
        most("open / library", open, 1.1),
        most("cold record, microseconds", crypto.map(|c| c.cold_lookup_us.median), 0.5),
    ];
    let metadata = most("metadata / protected", results.metadata_share, 0.015).map(Target::gated);
    let of_the_pager = of_the_pager.into_iter().flatten().map(of_the_size);
    let of_the_engine = of_the_engine.into_iter().flatten();
    of_the_pager.chain(of_the_engine).chain(metadata.map(of_the_size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::bench::args::BenchWhat;
    use crate::exit_codes;
    use clap::Parser;

    #[test]
    fn an_interval_about_the_limit_decides_nothing_and_a_gated_target_that_is_missed_fails() {
        let target = || target("t", Some(1.001), 1.005, false).expect("it was measured").gated();
        let verdict = |low, high| target().within([low, high]).verdict;
        assert_eq!(verdict(0.999, 1.004), Verdict::Reached);
        assert_eq!(verdict(0.999, 1.006), Verdict::Undecided);
        assert_eq!(verdict(1.006, 1.007), Verdict::Missed);
        assert!(gate(&[target(), target().within([0.999, 1.006])]).is_ok());
        let error = gate(&[target(), target().within([1.006, 1.007])]).expect_err("it was missed");
        assert!(error.to_string().contains("t came to 1.001, more than 1.005"), "{error}");
        assert_eq!(error.code, exit_codes::NO);
    }

    #[test]
    fn targets_of_the_default_size_are_not_judged_at_another() {
        let judged = |words: &[&str]| {
            let cli = Cli::try_parse_from([&["casemate", "bench", "pager"][..], words].concat());
            let Command::Bench(bench) = cli.expect("it is right").command else { unreachable!() };
            let BenchWhat::Pager(args) = bench.what else { unreachable!() };
            let mut results = Results::new(&args);
            results.metadata_share = Some(0.019);
            targets(&results)
        };
        let (default, other) = (judged(&[]), judged(&["--clear", "4M"]));
        assert_eq!((default[0].verdict, other[0].verdict), (Verdict::Missed, Verdict::NotJudged));
        assert!(gate(&default).is_err() && gate(&other).is_ok());
        assert!(list(&other).contains("0.019") && !list(&other).contains("MISSED"));
    }
}
