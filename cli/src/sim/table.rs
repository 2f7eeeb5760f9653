//! Results beside each other, as a table or as JSON.

use std::collections::BTreeMap;

use casemate_sim::config::simpoints::NONE;
use casemate_sim::experiment::session::Entry;
use casemate_sim::results::compare;
use casemate_sim::results::derived::Derived;
use casemate_sim::results::estimates::{self, Sampling};
use casemate_sim::results::statistics::Statistics;
use serde::Serialize;
use serde_json::Value;

use super::mix;
use crate::output::SCHEMA;

/// Weights that sum to less stand for a part of the program only; less than that is rounding.
const ALL_WEIGHTS: f64 = 0.999;

#[derive(Serialize)]
struct RunReport<'a> {
    trace: &'a str,
    scheme: &'a str,
    varied: BTreeMap<&'a str, &'a str>,
    /// More cycles than the baseline, as a share of its.
    overhead: Option<f64>,
    /// Half of its 95 % interval, by matched pairs, if both were sampled.
    overhead_half_width: Option<f64>,
    /// The scheme that it is compared with.
    baseline: Option<&'a str>,
    /// Where the result was written.
    folder: Option<String>,
    /// Whether it was there before.
    reused: bool,
    result: &'a Value,
}

/// The report as one JSON object.
pub fn report(entries: &[Entry], failures: &[String]) -> impl Serialize {
    let run = |entry: &Entry| -> Option<Value> {
        let result = entry.result.as_ref()?;
        let baseline = entry.baseline(entries);
        let report = RunReport {
            trace: &entry.trace.name,
            scheme: entry.configuration.scheme(),
            varied: entry
                .configuration
                .varied
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str()))
                .collect(),
            overhead_half_width: baseline
                .and_then(|b| estimates::overhead(result, b.result.as_ref()?)?.half_width),
            overhead: baseline.and_then(|b| b.result.as_ref()).map(|b| compare::against(result, b)),
            baseline: baseline.map(|baseline| baseline.configuration.scheme()),
            folder: entry.folder.as_ref().map(|folder| folder.display().to_string()),
            reused: entry.reused,
            result,
        };
        serde_json::to_value(report).ok()
    };
    let runs: Vec<Value> = entries.iter().filter_map(run).collect();
    serde_json::json!({ "schema": SCHEMA, "runs": runs, "failures": failures })
}

/// The table for people.
pub fn text(entries: &[Entry]) -> String {
    let mut rows = vec![header(entries)];
    rows.extend(entries.iter().filter_map(|entry| row(entry, entries)));
    // Names to the left, numbers to the right.
    let names = rows[0].iter().position(|cell| cell == "cycles").unwrap_or(0);
    aligned(&rows, names) + &mix::text(entries) + &notes(entries)
}

/// Rows as lines, the first cells of each to the left and the rest to the right.
pub fn aligned(rows: &[Vec<String>], names: usize) -> String {
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len))
        .map(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(i, (cell, width))| {
            if i < names { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn header(entries: &[Entry]) -> Vec<String> {
    let mut cells = vec!["trace".to_owned()];
    if let Some(entry) = entries.first() {
        cells.extend(entry.configuration.varied.iter().map(|(key, _)| key.clone()));
    }
    let numbers = [
        "scheme",
        "cycles",
        "IPC",
        "overhead",
        "LLC misses",
        "bus busy",
        "bytes/1000 instr.",
        "metadata in LLC",
        "re-enc. blocks/10^9 cycles",
    ];
    cells.extend(numbers.map(str::to_owned));
    cells
}

fn row(entry: &Entry, entries: &[Entry]) -> Option<Vec<String>> {
    let result = entry.result.as_ref()?;
    let statistics = Statistics::of(&result["statistics"]).unwrap_or_default();
    let derived = Derived::read(&result["derived"]);
    let real = |ratio: Option<f64>, show: fn(f64) -> String| ratio.map_or("-".to_owned(), show);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let whole = |number: f64| format!("{number:.0}");
    let mut cells = vec![entry.trace.name.clone()];
    cells.extend(entry.configuration.varied.iter().map(|(_, value)| value.clone()));
    cells.push(entry.configuration.scheme().to_owned());
    cells.push(statistics.machine.cycles.to_string());
    let sampling = Sampling::read(result);
    // With what no window met, as the CPI has it.
    let ipc = sampling.as_ref().and_then(|s| Some(s.relative()? * s.ratio("ipc")?.mean));
    let beside = |half: Option<f64>, show: fn(f64) -> String| half.map_or(String::new(), show);
    let ipc = beside(ipc, |half| format!(" ±{half:.3}"));
    cells.push(real(derived.ipc, |ipc| format!("{ipc:.3}")) + &ipc);
    let baseline = entry.baseline(entries).and_then(|baseline| baseline.result.as_ref());
    let over = |other: &Value| {
        let half = estimates::overhead(result, other).and_then(|interval| interval.half_width);
        let half = beside(half, |half| format!(" ±{:.1}", half * 100.0));
        format!("{:+.1}{half} %", compare::against(result, other) * 100.0)
    };
    cells.push(baseline.map_or("-".to_owned(), over));
    cells.push(statistics.machine.last_level.reads.to_string());
    cells.push(real(derived.bus_busy_share, percent));
    cells.push(real(derived.bus_bytes_per_kilo_instruction, whole));
    cells.push(real(derived.last_level_metadata_share, percent));
    cells.push(real(derived.reencrypted_blocks_per_giga_cycle, whole));
    Some(cells)
}

/// What is said of windows that SimPoint chose.
fn weighted(sampling: &Sampling) -> String {
    let mut text = "they count by their weights".to_owned();
    if let Some(sum) = sampling.weights_sum.filter(|sum| *sum < ALL_WEIGHTS) {
        text += &format!(
            ", which sum to {sum:.3}: {:.1} % of the program is in none, and counts as they do",
            (1.0 - sum) * 100.0
        );
    }
    text
}

/// What is said of windows that are spread over the region.
fn intervals(sampling: &Sampling) -> String {
    if sampling.windows < 2 {
        return "of one window no interval is known".to_owned();
    }
    let text = "± is half of an interval of 95 %";
    match sampling.unseen {
        Some(unseen) if unseen.share > 0.0 => format!(
            "{text}, the IPC's with {:.2} % of the region that may be unlike every window",
            unseen.share * 100.0
        ),
        _ => text.to_owned(),
    }
}

fn notes(entries: &[Entry]) -> String {
    let mut text = String::new();
    let done = || entries.iter().filter(|entry| entry.result.is_some());
    let alone = done().all(|entry| entry.baseline(entries).is_none());
    if alone && done().any(|entry| entry.configuration.scheme() != compare::BASELINE) {
        text += "overhead needs something to compare with: add --scheme none\n";
    }
    if let Some(other) = done().find_map(|entry| {
        let scheme = entry.baseline(entries)?.configuration.scheme();
        (scheme != compare::BASELINE).then_some(scheme)
    }) {
        text += &format!(
            "overhead is against {other}, the first scheme; add --scheme none to compare with unprotected memory\n"
        );
    }
    if let Some(sampling) = done().find_map(|entry| Sampling::read(entry.result.as_ref()?)) {
        let points = |entry: &Entry| entry.configuration.resolved.text("run.sample_points") != NONE;
        let chosen = done().any(points);
        text += &format!(
            "counters are of {} {}{}; {}\n",
            sampling.windows,
            if sampling.windows == 1 { "window" } else { "windows" },
            sampling.of_windows.map_or(String::new(), |all| format!(" of {all}")),
            if chosen { weighted(&sampling) } else { intervals(&sampling) },
        );
    }
    let reused = done().filter(|entry| entry.reused).count();
    if reused > 0 {
        text += &format!(
            "{reused} of {} results were there already (--force computes them again)\n",
            done().count()
        );
    }
    let short = |entry: &&Entry| {
        let wanted = entry.configuration.resolved.number("run.length_instructions") > 0;
        wanted && entry.result.as_ref().is_some_and(|result| result["trace_ended"] == true)
    };
    if let Some(entry) = done().find(short) {
        text += &format!("{}: the trace ended before run.length_instructions\n", entry.trace.name);
    }
    text
}
