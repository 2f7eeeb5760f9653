//! `casemate bench sim`: how many instructions the simulator gets through, stage by stage, and what
//! each scheme adds.
//!
//! Rates are of processor time, so that others on the machine count little. The programs are made
//! up ([`Mix`]): one heavy on memory, one friendly to caches.

mod measure;

use std::fmt::Write;

use anyhow::Result;
use casemate_schemes::catalogue::{NamedScheme, SCHEMES};
use casemate_schemes::choice::chosen;
use casemate_sim::trace::synthetic::Mix;
use serde::Serialize;

use super::args::SimBenchArgs;
use super::numbers::Spread;
use super::results::{Header, notes};
use super::targets::{Target, list, target};
use crate::failure::Failure;
use crate::output;
use crate::progress;

use measure::Below;

/// The scheme of the stages and targets.
const DEFAULT: &str = "aise+bmt";

/// Millions of instructions a second, at least.
const LEAST_HEAVY_FLAT: f64 = 8.0;
const LEAST_HEAVY_BANKS: f64 = 4.0;
const LEAST_LIGHT: f64 = 80.0;
const LEAST_CHAMPSIM: f64 = 40.0;
const LEAST_WARMED_HEAVY: f64 = 15.0;
const LEAST_WARMED_LIGHT: f64 = 40.0;

/// What is measured of each program, in the order of the flow.
const STAGES: [&str; 8] = [
    "made up",
    "decoded",
    "decoded, ChampSim's",
    "caches, flat",
    "caches, banks",
    "protected, flat",
    "protected, banks",
    "warmed, protected",
];
const CHAMPSIM: usize = 2;
const PROTECTED_FLAT: usize = 5;
const PROTECTED_BANKS: usize = 6;
const WARMED: usize = 7;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    header: Header,
    instructions: u64,
    scheme: &'static str,
    stages: Vec<Stage>,
    schemes: Vec<Row>,
    targets: Vec<Target>,
    notes: Vec<String>,
}

/// Millions of instructions a second.
#[derive(Serialize)]
struct Stage {
    stage: &'static str,
    heavy: Spread,
    light: Spread,
}

/// A scheme on the heavy program over the flat memory.
#[derive(Serialize)]
struct Row {
    scheme: String,
    millions_per_second: Spread,
    /// Times the simulation takes that long without protection, within a run.
    slowdown: Spread,
}

/// Rates of one run.
struct Sample {
    heavy: Vec<f64>,
    light: Vec<f64>,
    schemes: Vec<f64>,
}

/// Measures and prints.
pub fn sim(args: &SimBenchArgs) -> Result<u8> {
    let chosen = chosen(&args.only).map_err(Failure::from)?;
    let mut samples = Vec::new();
    for run in 0..args.runs {
        samples.push(sample(args, &chosen, &format!("run {} of {}", run + 1, args.runs))?);
    }
    let report = report(args, &chosen, &samples);
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&table(&report))?,
    }
    Ok(0)
}

fn sample(args: &SimBenchArgs, chosen: &[NamedScheme], what: &str) -> Result<Sample> {
    let instructions = args.instructions;
    let stages = |name: &str, mix: Mix| -> Result<Vec<f64>> {
        progress::stage(&format!("{what}: stages, {name}"));
        let scheme = default_scheme();
        Ok(vec![
            measure::made_up(mix, instructions)?,
            measure::decoded(mix, instructions)?,
            measure::decoded_champsim(mix, instructions)?,
            measure::unprotected(mix, instructions, Below::Flat)?,
            measure::unprotected(mix, instructions, Below::Banks)?,
            measure::protected(mix, instructions, Below::Flat, &scheme.scheme)?,
            measure::protected(mix, instructions, Below::Banks, &scheme.scheme)?,
            measure::warmed(mix, instructions, &scheme.scheme)?,
        ])
    };
    let (heavy, light) = (stages("heavy", Mix::HEAVY)?, stages("light", Mix::LIGHT)?);
    // The slow ones take many times as long as the default: a tenth will do for a ratio.
    let fewer = (instructions / 10).max(1);
    let mut schemes = vec![measure::unprotected(Mix::HEAVY_WITH_STORES, fewer, Below::Flat)?];
    for named in chosen {
        progress::stage(&format!("{what}: {}", named.name));
        let mix = Mix::HEAVY_WITH_STORES;
        schemes.push(measure::protected(mix, fewer, Below::Flat, &named.scheme)?);
    }
    Ok(Sample { heavy, light, schemes })
}

fn default_scheme() -> NamedScheme {
    let found = SCHEMES.iter().find(|named| named.name == DEFAULT);
    found.expect("the default scheme has a name").clone()
}

fn report(args: &SimBenchArgs, chosen: &[NamedScheme], samples: &[Sample]) -> Report {
    let spread = |pick: &dyn Fn(&Sample) -> f64| {
        let numbers: Vec<f64> = samples.iter().map(pick).collect();
        Spread::of(&numbers)
    };
    let stages: Vec<Stage> = STAGES
        .into_iter()
        .enumerate()
        .map(|(i, stage)| Stage {
            stage,
            heavy: spread(&|sample| sample.heavy[i]),
            light: spread(&|sample| sample.light[i]),
        })
        .collect();
    let schemes = chosen.iter().enumerate().map(|(i, named)| Row {
        scheme: named.name.to_string(),
        millions_per_second: spread(&|sample| sample.schemes[i + 1]),
        slowdown: spread(&|sample| sample.schemes[0] / sample.schemes[i + 1]),
    });
    let at_least = |what, measured: f64, least| target(what, Some(measured), least, true);
    let targets = [
        at_least(
            "heavy, protected, flat, M/s",
            stages[PROTECTED_FLAT].heavy.median,
            LEAST_HEAVY_FLAT,
        ),
        at_least(
            "heavy, protected, banks, M/s",
            stages[PROTECTED_BANKS].heavy.median,
            LEAST_HEAVY_BANKS,
        ),
        at_least("light, protected, flat, M/s", stages[PROTECTED_FLAT].light.median, LEAST_LIGHT),
        at_least("ChampSim's records, M/s", stages[CHAMPSIM].heavy.median, LEAST_CHAMPSIM),
        at_least("heavy, warmed, M/s", stages[WARMED].heavy.median, LEAST_WARMED_HEAVY),
        at_least("light, warmed, M/s", stages[WARMED].light.median, LEAST_WARMED_LIGHT),
    ];
    Report {
        header: Header::new(args.runs),
        instructions: args.instructions,
        scheme: DEFAULT,
        schemes: schemes.collect(),
        targets: targets.into_iter().flatten().collect(),
        stages,
        notes: notes(),
    }
}

fn table(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "The simulator, one thread, {} runs of {} instructions. {}.\n\
         Millions of simulated instructions a second of processor time: median (least-greatest).\n\n\
         {:<20}{:>22}{:>22}",
        report.header.runs, report.instructions, report.header.machine, "stage", "heavy", "light"
    );
    for Stage { stage, heavy, light } in &report.stages {
        let _ = writeln!(text, "{stage:<20}{:>22}{:>22}", show(*heavy), show(*light));
    }
    let _ = writeln!(
        text,
        "\nEach stage has those before it but the two of decoding in it; warmed has no time in it; protected: {}. heavy: each instruction loads, 8 bytes\n\
         further than the last, every 40th from a random place in 64 MiB. light: every third refers to 16 KiB.\n\n\
         {:<20}{:>22}{:>22}",
        report.scheme, "scheme", "heavy with stores", "times unprotected"
    );
    for row in &report.schemes {
        let _ = writeln!(
            text,
            "{:<20}{:>22}{:>22}",
            row.scheme,
            show(row.millions_per_second),
            row.slowdown.show()
        );
    }
    text.push_str("\nTargets\n");
    text.push_str(&list(&report.targets));
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

/// `41.2 (39.9-42.0)`.
fn show(spread: Spread) -> String {
    format!("{:.1} ({:.1}-{:.1})", spread.median, spread.min, spread.max)
}
