//! Targets, beside what was measured.

use std::fmt::Write;

use serde::Serialize;

use super::measure::System;
use super::results::Results;
use super::timer::Phase;

/// One target.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// In words.
    pub what: &'static str,
    /// What was measured.
    pub value: f64,
    /// The limit.
    pub limit: f64,
    /// Whether more is better.
    pub at_least: bool,
    /// Whether it was reached.
    pub reached: bool,
}

/// A target, if what it is about was measured.
pub fn target(
    what: &'static str,
    value: Option<f64>,
    limit: f64,
    at_least: bool,
) -> Option<Target> {
    let value = value.filter(|value| value.is_finite())?;
    let reached = if at_least { value >= limit } else { value <= limit };
    Some(Target { what, value, limit, at_least, reached })
}

/// A line for each.
pub fn list(targets: &[Target]) -> String {
    let mut text = String::new();
    for target in targets {
        let sign = if target.at_least { ">=" } else { "<=" };
        let verdict = if target.reached { "reached" } else { "MISSED" };
        let _ = writeln!(
            text,
            "  {:<32}{:>8.3}   {sign} {:<6} {verdict}",
            target.what, target.value, target.limit
        );
    }
    text
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
    let fits = results.fits.as_ref().map(|fits| 1.0 + fits.command_overhead);
    let most = |what, value, limit| target(what, value, limit, false);
    [
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
        most("program that fits / plain", fits, 1.005),
        most("seal / library", seal, 1.3),
        most("open / library", open, 1.1),
        most("cold record, microseconds", crypto.map(|c| c.cold_lookup_us.median), 0.5),
        most("metadata / protected", results.metadata_share, 0.015),
    ]
    .into_iter()
    .flatten()
    .collect()
}
