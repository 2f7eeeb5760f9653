//! What of the DDR model's differences from DRAMsim3 is policy, and which.

use std::fmt::Write as _;

use casemate_sim::dram::accuracy::Comparison;
use casemate_sim::dram::exchange::{Exchanged, STEPS};
use casemate_sim::dram::replay::Replay;
use serde::Serialize;

use super::{Pair, both, pair};

/// A stream through our timing under DRAMsim3's rules, and what the commands of ours show.
#[derive(Serialize)]
pub(super) struct Policy {
    preset: &'static str,
    stream: String,
    mean_clocks: Pair<f64>,
    p50_clocks: Pair<u64>,
    p95_clocks: Pair<u64>,
    p99_clocks: Pair<u64>,
    row_hits: Pair<u64>,
    activates: Pair<u64>,
    /// From here on of our model, and of our timing under DRAMsim3's rules.
    unused_rows: Pair<u64>,
    turns_to_writes: Pair<u64>,
    unused_of_writes_for_reads: Pair<u64>,
    unused_of_reads_for_writes: Pair<u64>,
    unused_for_refreshes: Pair<u64>,
    wait_for_writes_clocks: Pair<f64>,
}

/// A stream with DRAMsim3's rules exchanged for ours, step by step.
#[derive(Serialize)]
pub(super) struct Steps {
    preset: &'static str,
    stream: String,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    rules: &'static str,
    mean_clocks: f64,
    p95_clocks: u64,
    p99_clocks: u64,
}

pub(super) fn policy(one: &Comparison) -> Policy {
    let (theirs, reads, counts) = (&one.theirs, &one.policy.reads, one.policy.commands);
    let (ours, there) = (one.ours.sequence, one.policy.sequence);
    let (unused, unused_there) = (ours.unused_rows, there.unused_rows);
    Policy {
        preset: theirs.preset,
        stream: theirs.stream.clone(),
        mean_clocks: pair(reads.mean_clocks(), theirs.read_mean_clocks),
        p50_clocks: pair(reads.percentile_clocks(0.50), theirs.read_p50_clocks),
        p95_clocks: pair(reads.percentile_clocks(0.95), theirs.read_p95_clocks),
        p99_clocks: pair(reads.percentile_clocks(0.99), theirs.read_p99_clocks),
        row_hits: pair(
            counts.read_row_hits + counts.write_row_hits,
            theirs.read_row_hits + theirs.write_row_hits,
        ),
        activates: pair(counts.activates, theirs.activates),
        unused_rows: pair(unused.all, unused_there.all),
        turns_to_writes: pair(ours.turns_to_writes, there.turns_to_writes),
        unused_of_writes_for_reads: pair(
            unused.of_writes_for_reads,
            unused_there.of_writes_for_reads,
        ),
        unused_of_reads_for_writes: pair(
            unused.of_reads_for_writes,
            unused_there.of_reads_for_writes,
        ),
        unused_for_refreshes: pair(unused.for_refreshes, unused_there.for_refreshes),
        wait_for_writes_clocks: pair(
            ours.wait_for_writes_clocks(one.ours.clocks),
            there.wait_for_writes_clocks(one.policy.clocks),
        ),
    }
}

/// The steps, and at last our model itself.
pub(super) fn steps(one: &Exchanged, all: &[Comparison]) -> Steps {
    let is_same = |other: &&Comparison| {
        (other.theirs.preset, &other.theirs.stream) == (one.preset, &one.stream)
    };
    let ours = all.iter().find(is_same).map(|other| ("ours", &other.ours));
    let names = STEPS.iter().map(|(name, _)| *name);
    let steps = names.zip(&one.steps).chain(ours).map(|(rules, run)| step(rules, run)).collect();
    Steps { preset: one.preset, stream: one.stream.clone(), steps }
}

fn step(rules: &'static str, run: &Replay) -> Step {
    Step {
        rules,
        mean_clocks: run.reads.mean_clocks(),
        p95_clocks: run.reads.percentile_clocks(0.95),
        p99_clocks: run.reads.percentile_clocks(0.99),
    }
}

pub(super) fn table(rows: &[Policy]) -> String {
    let mut text =
        "\nOur timing under DRAMsim3's rules / DRAMsim3. The last two columns, of commands: \
                    our model / DRAMsim3's rules.\n"
            .to_owned();
    let mut preset = "";
    for row in rows {
        if row.preset != preset {
            preset = row.preset;
            let _ = writeln!(
                text,
                "\n{preset}\n{:<18} {:>17} {:>9} {:>9} {:>9} {:>13} {:>13} {:>11} {:>15}",
                "",
                "mean",
                "median",
                "95 %",
                "99 %",
                "row hits",
                "activates",
                "unused rows",
                "turns to writes"
            );
        }
        let _ = writeln!(
            text,
            "{:<18} {:>17} {:>9} {:>9} {:>9} {:>13} {:>13} {:>11} {:>15}",
            row.stream,
            format!("{:.3} / {:.3}", row.mean_clocks.ours, row.mean_clocks.theirs),
            both(&row.p50_clocks),
            both(&row.p95_clocks),
            both(&row.p99_clocks),
            both(&row.row_hits),
            both(&row.activates),
            both(&row.unused_rows),
            both(&row.turns_to_writes)
        );
    }
    text
}

/// Of the streams with writes: what rows were opened for in vain, and what writes reads wait for.
pub(super) fn sequences_table(rows: &[Policy]) -> String {
    let mut text =
        "\nWhat the commands show, of our model / DRAMsim3's rules: unused rows, by what \
                    they were opened and closed\nfor; half of the clocks between two reads with \
                    writes between them, averaged over all clocks.\n"
            .to_owned();
    let mut preset = "";
    for row in rows.iter().filter(|row| row.turns_to_writes.ours > 0) {
        if row.preset != preset {
            preset = row.preset;
            let _ = writeln!(
                text,
                "\n{preset}\n{:<18} {:>15} {:>15} {:>15} {:>17}",
                "", "write for read", "read for write", "for refreshes", "between reads"
            );
        }
        let _ = writeln!(
            text,
            "{:<18} {:>15} {:>15} {:>15} {:>17}",
            row.stream,
            both(&row.unused_of_writes_for_reads),
            both(&row.unused_of_reads_for_writes),
            both(&row.unused_for_refreshes),
            format!(
                "{:.1} / {:.1}",
                row.wait_for_writes_clocks.ours, row.wait_for_writes_clocks.theirs
            )
        );
    }
    text
}

pub(super) fn steps_table(rows: &[Steps]) -> String {
    let mut text =
        "\nRules of DRAMsim3 exchanged for ours, each with all before it: mean, 95 % and \
                    99 % of latencies of reads.\n"
            .to_owned();
    let mut preset = "";
    for row in rows {
        if row.preset != preset {
            preset = row.preset;
            let names: String = row.steps.iter().map(|one| format!("{:>15}", one.rules)).collect();
            let _ = writeln!(text, "\n{preset}\n{:<18}{names}", "");
        }
        let cell = |one: &Step| {
            let Step { mean_clocks, p95_clocks, p99_clocks, .. } = one;
            format!("{:>15}", format!("{mean_clocks:.1} {p95_clocks} {p99_clocks}"))
        };
        let cells: String = row.steps.iter().map(cell).collect();
        let _ = writeln!(text, "{:<18}{cells}", row.stream);
    }
    text
}
