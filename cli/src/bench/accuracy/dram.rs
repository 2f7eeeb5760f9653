//! The DDR model beside DRAMsim3.

use std::fmt::Write as _;

use casemate_sim::dram::accuracy::Comparison;
use serde::Serialize;

use super::{Pair, both, pair};

/// A stream on both memories.
#[derive(Serialize)]
pub(super) struct Row {
    preset: &'static str,
    stream: String,
    saturated: bool,
    waited_clocks: u64,
    mean_clocks: Pair<f64>,
    mean_difference: f64,
    p50_clocks: Pair<u64>,
    p95_clocks: Pair<u64>,
    p99_clocks: Pair<u64>,
    row_hit_rate: Pair<f64>,
    activates: Pair<u64>,
    refreshes: Pair<u64>,
    bandwidth_gb_per_s: Pair<f64>,
    energy_pj: Pair<f64>,
    energy_difference: f64,
}

pub(super) fn row(one: &Comparison) -> Row {
    let (theirs, reads, counts) = (&one.theirs, &one.ours.reads, one.ours.commands);
    Row {
        preset: theirs.preset,
        stream: theirs.stream.clone(),
        saturated: one.is_saturated(),
        waited_clocks: one.ours.waited_clocks,
        mean_clocks: pair(reads.mean_clocks(), theirs.read_mean_clocks),
        mean_difference: one.mean_difference(),
        p50_clocks: pair(reads.percentile_clocks(0.50), theirs.read_p50_clocks),
        p95_clocks: pair(reads.percentile_clocks(0.95), theirs.read_p95_clocks),
        p99_clocks: pair(reads.percentile_clocks(0.99), theirs.read_p99_clocks),
        row_hit_rate: pair(one.our_hit_rate(), one.their_hit_rate()),
        activates: pair(counts.activates, theirs.activates),
        refreshes: pair(counts.refreshes, theirs.refreshes),
        bandwidth_gb_per_s: pair(one.our_bandwidth_gb_per_s(), one.their_bandwidth_gb_per_s()),
        energy_pj: pair(one.energy_pj, one.their_energy_pj),
        energy_difference: one.energy_difference(),
    }
}

pub(super) fn table(rows: &[Row]) -> String {
    let mut text = "DDR model beside DRAMsim3: ours / theirs. Latencies of reads in clocks, rows \
                    that were open in % of bursts,\nbandwidth in GB/s over the same clocks.\n"
        .to_owned();
    let mut preset = "";
    for row in rows {
        if row.preset != preset {
            preset = row.preset;
            let _ = writeln!(
                text,
                "\n{preset}\n{:<18} {:>15} {:>7} {:>9} {:>9} {:>9} {:>11} {:>13} {:>13} {:>7}",
                "",
                "mean",
                "",
                "median",
                "95 %",
                "99 %",
                "rows open",
                "activates",
                "bandwidth",
                "energy"
            );
        }
        text += &line(row);
    }
    text += "\nsaturated: DRAMsim3 has 32 reads or more under way on average: its queue's length\n";
    text
}

fn line(row: &Row) -> String {
    let (hits, bandwidth) = (&row.row_hit_rate, &row.bandwidth_gb_per_s);
    format!(
        "{:<18} {:>15} {:>+6.1}% {:>9} {:>9} {:>9} {:>11} {:>13} {:>13} {:>+6.1}%{}\n",
        row.stream,
        format!("{:.1} / {:.1}", row.mean_clocks.ours, row.mean_clocks.theirs),
        100.0 * row.mean_difference,
        both(&row.p50_clocks),
        both(&row.p95_clocks),
        both(&row.p99_clocks),
        format!("{:.1} / {:.1}", 100.0 * hits.ours, 100.0 * hits.theirs),
        both(&row.activates),
        format!("{:.3} / {:.3}", bandwidth.ours, bandwidth.theirs),
        100.0 * row.energy_difference,
        if row.saturated { "  saturated" } else { "" }
    )
}
