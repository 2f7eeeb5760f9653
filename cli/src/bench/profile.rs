//! Where the time of a page goes: the keeper's own account of it, a column for each kind of load.
//!
//! The same program runs twice, with many accesses of that kind and with none; the difference of
//! the two reports is what those accesses cost.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use casemate_keeper::{Profile, Statistics};
use serde::Serialize;

use super::args::PagerArgs;
use super::floor;
use super::measure::{Bench, Measured};
use super::timer::Phase;
use crate::progress;

/// Accesses for each page of the region.
const ROUNDS: u64 = 3;
const LOADS: [(&str, Phase, usize); 4] = [
    ("random read", Phase::RandomRead, 1),
    ("load + store", Phase::RandomModify, 1),
    ("2 threads read", Phase::RandomRead, 2),
    ("sequential", Phase::SequentialRead, 1),
];

/// One kind of load: medians over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Doing what.
    pub phase: Phase,
    /// With how many threads.
    pub threads: usize,
    /// Pages that came in, in one run.
    pub pages: f64,
    /// Pages evicted for each of them.
    pub evicted: f64,
    /// The share of evicted pages that was clean.
    pub clean: f64,
    /// The share of pages that was read ahead.
    pub read_ahead: f64,
    /// Time that a thread of the program spends for each page.
    pub total_ns: f64,
    /// The handlers' time by what they did, for each page.
    pub rows: Vec<(&'static str, f64)>,
    /// Times that the handlers' account was written, for each page.
    pub borders: f64,
}

/// Rows of the table: the account's fields, and what they are.
type Row = (&'static str, fn(&Profile) -> f64);
const ROWS: [Row; 16] = [
    ("wait for the space's lock", |p| p.lock_ns),
    ("read messages, mirror events", |p| p.read_ns + p.events_ns),
    ("lists, read-ahead, budget", |p| p.lists_ns),
    ("look the record up, verify", |p| p.lookup_ns),
    ("copy the ciphertext", |p| p.show_ns),
    ("decrypt and verify", |p| p.open_ns),
    ("UFFDIO_COPY", |p| p.fill_ns),
    ("drop records of written pages", |p| p.forget_ns),
    ("lift write protection", |p| p.unprotect_ns),
    ("evict: choose, settle events", |p| p.choose_ns),
    ("evict: agent", |p| p.agent_ns),
    ("evict: take from the mailbox", |p| p.take_ns),
    ("evict: look for zeros", |p| p.zero_ns),
    ("evict: encrypt", |p| p.seal_ns),
    ("evict: store", |p| p.store_ns),
    ("evict: record", |p| p.record_ns),
];

/// Measures every load.
pub fn measure(bench: &Bench, args: &PagerArgs) -> Result<Vec<Column>> {
    let cpus = floor::allowed_cpus()?.len();
    let loads = LOADS.into_iter().filter(|(_, _, threads)| *threads <= cpus);
    loads.map(|(_, phase, threads)| column(bench, args, phase, threads)).collect()
}

fn column(bench: &Bench, args: &PagerArgs, phase: Phase, threads: usize) -> Result<Column> {
    let accesses = args.clear.0 * 3 / casemate_keeper::PAGE_BYTES as u64 * ROUNDS;
    let mut samples = Vec::new();
    for run in 0..args.runs {
        progress::stage(&format!("run {} of {}: profile, {phase:?}", run + 1, args.runs));
        let without = statistics(&bench.one_phase(phase, threads, 0)?)?;
        let measured = bench.one_phase(phase, threads, accesses)?;
        let line = measured.lines.last().context("the load said nothing")?;
        samples.push(sample(&without, &statistics(&measured)?, line.seconds, threads)?);
    }
    let median = |pick: &dyn Fn(&Column) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let row = |(at, (name, _)): (usize, &Row)| (*name, median(&|column| column.rows[at].1));
    Ok(Column {
        phase,
        threads,
        pages: median(&|c| c.pages),
        evicted: median(&|c| c.evicted),
        clean: median(&|c| c.clean),
        read_ahead: median(&|c| c.read_ahead),
        total_ns: median(&|c| c.total_ns),
        rows: ROWS.iter().enumerate().map(row).collect(),
        borders: median(&|c| c.borders),
    })
}

fn statistics(measured: &Measured) -> Result<Statistics> {
    let report = measured.report.as_ref().context("the run left no report")?;
    serde_json::from_value(report["statistics"].clone()).context("cannot understand the report")
}

fn sample(without: &Statistics, with: &Statistics, seconds: f64, threads: usize) -> Result<Column> {
    let more = |count: fn(&Statistics) -> u64| count(with) as f64 - count(without) as f64;
    let read_ahead = more(|s| s.readahead_pages);
    let pages = more(|s| s.pages_in + s.grace_hits);
    if pages < 1.0 {
        bail!("no access missed");
    }
    let out = more(|s| s.pages_out + s.clean_evictions + s.zero_evictions);
    let per_page =
        |of: &dyn Fn(&Profile) -> f64| (of(&with.profile) - of(&without.profile)) / pages;
    Ok(Column {
        phase: Phase::RandomRead,
        threads,
        pages,
        evicted: out / pages,
        clean: more(|s| s.clean_evictions) / out.max(1.0),
        read_ahead: read_ahead / pages,
        total_ns: seconds * 1e9 * threads as f64 / pages,
        rows: ROWS.iter().map(|(name, of)| (*name, per_page(of))).collect(),
        borders: per_page(&|p| p.borders as f64),
    })
}

/// The table.
pub fn table(text: &mut String, columns: &[Column]) {
    if columns.is_empty() {
        return;
    }
    text.push('\n');
    let mut line = |name: &str, value: &dyn Fn(&Column) -> String| {
        let _ = write!(text, "{name:<34}");
        for column in columns {
            let _ = write!(text, "{:>15}", value(column));
        }
        text.push('\n');
    };
    line("Where the time of a page goes, ns", &|column| {
        let is = |load: &&(&str, Phase, usize)| (load.1, load.2) == (column.phase, column.threads);
        LOADS.iter().find(is).map_or("", |load| load.0).to_owned()
    });
    for (at, (name, _)) in ROWS.iter().enumerate() {
        line(&format!("  {name}"), &|column| format!("{:.0}", column.rows[at].1));
    }
    let sum = |c: &Column| c.rows.iter().map(|row| row.1).sum::<f64>();
    line("  the pager's work", &|c| format!("{:.0}", sum(c)));
    // What the account cannot tell from the program's own time: it runs before the wake-up returns.
    line("  fault, switches, wait, program", &|c| format!("{:.0}", (c.total_ns - sum(c)).max(0.0)));
    line("  a thread's time for the page", &|c| format!("{:.0}", c.total_ns));
    line("  pages evicted for it, clean", &|c| {
        format!("{:.2}, {:.0} %", c.evicted, c.clean * 100.0)
    });
    line("  pages that were read ahead", &|c| format!("{:.0} %", c.read_ahead.max(0.0) * 100.0));
    line("  borders between these phases", &|c| format!("{:.1}", c.borders));
}
