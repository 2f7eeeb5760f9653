//! `casemate bench schemes`: what a 64-byte block costs under each scheme of the engine, on real
//! bytes.
//!
//! A *hit* finds all counters and nodes that it needs in the unit's node cache; a *miss* works with
//! the smallest cache over memory that is many times as large, so that it fetches and verifies most
//! of its path. The default scheme is measured beside the bare cryptography of a block, in turns.

mod bare;
mod measure;

use std::fmt::Write;

use anyhow::Result;
use casemate_core::PAGE_BYTES;
use casemate_schemes::catalogue::NamedScheme;
use casemate_schemes::choice::chosen;
use serde::Serialize;

use super::args::SchemesArgs;
use super::numbers::Spread;
use super::results::{Header, notes};
use super::targets::{Target, list, target};
use crate::failure::Failure;
use crate::output;
use crate::progress;

use measure::{Access, Sample};

/// The scheme that the target is about: what one would build today.
const DEFAULT: &str = "aise+bmt-gmac";
/// A hit of the default scheme may cost so many times its bare cryptography.
const MOST_TIMES_BARE: f64 = 2.0;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    header: Header,
    hit_bytes: u64,
    miss_bytes: u64,
    schemes: Vec<Row>,
    /// Of the default scheme, on hits.
    bare: Option<Bare>,
    targets: Vec<Target>,
    notes: Vec<String>,
}

/// A scheme, in nanoseconds for a block.
#[derive(Serialize)]
struct Row {
    scheme: String,
    source: &'static str,
    read_hit_ns: Spread,
    write_hit_ns: Spread,
    /// None where nothing is kept in a node cache: every access is then like a hit.
    read_miss_ns: Option<Spread>,
    write_miss_ns: Option<Spread>,
    /// Lines of counters and nodes that a read fetches when it hits: none, or it was no hit.
    lines_per_read_hit: f64,
    /// The same when it misses, on average.
    lines_per_read_miss: Option<f64>,
}

/// The cryptography of a block alone, and how many times that the unit takes.
#[derive(Serialize)]
struct Bare {
    scheme: String,
    open_ns: Spread,
    seal_ns: Spread,
    read_times_bare: Spread,
    write_times_bare: Spread,
}

/// Measures and prints.
pub fn schemes(args: &SchemesArgs) -> Result<u8> {
    let chosen = chosen(&args.only).map_err(Failure::from)?;
    let mut samples: Vec<Vec<Sample>> = chosen.iter().map(|_| Vec::new()).collect();
    for run in 0..args.runs {
        for (named, samples) in chosen.iter().zip(&mut samples) {
            progress::stage(&format!("run {} of {}: {}", run + 1, args.runs, named.name));
            samples.push(measure::run(&named.scheme, named.name == DEFAULT)?);
        }
    }
    let report = report(args, &chosen, &samples);
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&table(&report))?,
    }
    Ok(0)
}

fn report(args: &SchemesArgs, chosen: &[NamedScheme], samples: &[Vec<Sample>]) -> Report {
    let schemes = chosen.iter().zip(samples).map(|(named, runs)| row(named, runs)).collect();
    let bare = chosen
        .iter()
        .zip(samples)
        .find(|(named, _)| named.name == DEFAULT)
        .and_then(|(named, runs)| bare_of(&named.name, runs));
    let times = |pick: fn(&Bare) -> Spread| bare.as_ref().map(|bare| pick(bare).median);
    let targets = [
        target("read hit / its cryptography", times(|b| b.read_times_bare), MOST_TIMES_BARE, false),
        target(
            "write hit / its cryptography",
            times(|b| b.write_times_bare),
            MOST_TIMES_BARE,
            false,
        ),
    ];
    Report {
        header: Header::new(args.runs),
        hit_bytes: measure::HIT_FRAMES * PAGE_BYTES as u64,
        miss_bytes: measure::MISS_FRAMES * PAGE_BYTES as u64,
        schemes,
        bare,
        targets: targets.into_iter().flatten().collect(),
        notes: notes(),
    }
}

fn row(named: &NamedScheme, runs: &[Sample]) -> Row {
    let spread = |access: Access| {
        let times: Vec<f64> = runs.iter().map(|run| run.ns[access as usize]).collect();
        Spread::of(&times)
    };
    let caches = measure::caches_metadata(&named.scheme);
    let lines = |pick: fn(&Sample) -> f64| {
        let lines: Vec<f64> = runs.iter().map(pick).collect();
        Spread::of(&lines).median
    };
    Row {
        scheme: named.name.to_string(),
        source: named.source,
        read_hit_ns: spread(Access::ReadHit),
        write_hit_ns: spread(Access::WriteHit),
        read_miss_ns: caches.then(|| spread(Access::ReadMiss)),
        write_miss_ns: caches.then(|| spread(Access::WriteMiss)),
        lines_per_read_hit: lines(|run| run.lines_per_read_hit),
        lines_per_read_miss: caches.then(|| lines(|run| run.lines_per_read_miss)),
    }
}

/// A unit and its cryptography are compared within a run, where the machine was the same.
fn bare_of(scheme: &str, runs: &[Sample]) -> Option<Bare> {
    let with_bare: Option<Vec<_>> = runs.iter().map(|run| Some((run, run.bare?))).collect();
    let with_bare = with_bare?;
    let spread = |pick: &dyn Fn(&Sample, &measure::BareTimes) -> f64| {
        let numbers: Vec<f64> = with_bare.iter().map(|(run, bare)| pick(run, bare)).collect();
        Spread::of(&numbers)
    };
    Some(Bare {
        scheme: scheme.to_owned(),
        open_ns: spread(&|_, bare| bare.open_ns),
        seal_ns: spread(&|_, bare| bare.seal_ns),
        read_times_bare: spread(&|run, bare| run.ns[Access::ReadHit as usize] / bare.open_ns),
        write_times_bare: spread(&|run, bare| run.ns[Access::WriteHit as usize] / bare.seal_ns),
    })
}

/// Width of a cell with median and spread.
const CELL: usize = 20;

fn table(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Schemes on bytes, one thread, {} runs. {}.\n\
         Nanoseconds for a 64-byte block: median (least-greatest). Hits over {} KiB, misses over {} KiB.\n\n\
         {:<15}{:>CELL$}{:>CELL$}{:>CELL$}{:>CELL$}{:>7}",
        report.header.runs,
        report.header.machine,
        report.hit_bytes >> 10,
        report.miss_bytes >> 10,
        "scheme",
        "read, hit",
        "write, hit",
        "read, miss",
        "write, miss",
        "lines"
    );
    for row in &report.schemes {
        let miss = |spread: Option<Spread>| spread.map_or_else(|| "-".to_owned(), show);
        let lines = row.lines_per_read_miss.map_or_else(|| "-".to_owned(), |n| format!("{n:.1}"));
        let _ = writeln!(
            text,
            "{:<15}{:>CELL$}{:>CELL$}{:>CELL$}{:>CELL$}{lines:>7}",
            row.scheme,
            show(row.read_hit_ns),
            show(row.write_hit_ns),
            miss(row.read_miss_ns),
            miss(row.write_miss_ns),
        );
    }
    text.push_str(
        "\nlines: counter lines and nodes that a read fetches when it misses. -: no node cache, hits only.\n\
         Log hashes: a read is a block in and out of the program's cache; the check is not included.\n",
    );
    if let Some(bare) = &report.bare {
        let _ = writeln!(
            text,
            "\n{} beside its cryptography (pad, XOR, MAC)\n\
             \x20 read, hit     bare {:>18}   {} times that\n\
             \x20 write, hit    bare {:>18}   {} times that\n\nTargets",
            bare.scheme,
            show(bare.open_ns),
            bare.read_times_bare.show(),
            show(bare.seal_ns),
            bare.write_times_bare.show(),
        );
    }
    text.push_str(&list(&report.targets));
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

/// `412 (401-530)`.
fn show(spread: Spread) -> String {
    format!("{:.0} ({:.0}-{:.0})", spread.median, spread.min, spread.max)
}
