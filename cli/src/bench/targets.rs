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

/// Those of the project's issue 2 that could be measured.
pub fn targets(results: &Results) -> Vec<Target> {
    let miss = |system| Some(results.row(system, 1, Phase::RandomRead)?.us_per_miss?.median);
    let sequential =
        |system| Some(results.row(system, 1, Phase::SequentialRead)?.us_per_access.median);
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    [
        target("random miss / zram", ratio(miss(System::Casemate), miss(System::Zram)), 0.9, false),
        target(
            "random miss / floor",
            ratio(miss(System::Casemate), miss(System::Floor)),
            2.2,
            false,
        ),
        target(
            "sequential read / zram",
            ratio(sequential(System::Casemate), sequential(System::Zram)),
            0.5,
            false,
        ),
        target(
            "program that fits / plain",
            results.fits.as_ref().map(|fits| 1.0 + fits.command_overhead),
            1.01,
            false,
        ),
        target(
            "page crypto: engine / library",
            results.crypto.as_ref().map(|crypto| crypto.ratio),
            0.7,
            true,
        ),
        target("metadata / protected", results.metadata_share, 0.015, false),
    ]
    .into_iter()
    .flatten()
    .collect()
}
