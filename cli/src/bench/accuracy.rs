//! `casemate bench accuracy`: the DDR model beside DRAMsim3, stream by stream, and a core with its
//! caches and memory beside ChampSim, program by program.

use std::fmt::Write as _;

use anyhow::Result;
use casemate_sim::cores;
use casemate_sim::dram::accuracy::{Comparison, compare_all};
use serde::Serialize;

use super::args::AccuracyArgs;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};

#[derive(Serialize)]
struct Report {
    schema: u32,
    reference: &'static str,
    dram: Vec<Row>,
    cores_reference: &'static str,
    cores: Vec<Program>,
}

/// A program on both cores.
#[derive(Serialize)]
struct Program {
    program: String,
    cycles_per_instruction: Pair<f64>,
    difference: f64,
    l1d_misses: Pair<u64>,
    l2_misses: Pair<u64>,
    l3_misses: Pair<u64>,
}

#[derive(Serialize)]
struct Row {
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
    energy_pj: Pair<f64>,
    energy_difference: f64,
}

#[derive(Serialize)]
struct Pair<T> {
    ours: T,
    theirs: T,
}

fn pair<T>(ours: T, theirs: T) -> Pair<T> {
    Pair { ours, theirs }
}

/// Compares and prints.
pub fn accuracy(args: &AccuracyArgs) -> Result<u8> {
    let compared = compare_all().map_err(|why| Failure::own(why.to_string()))?;
    let dram: Vec<Row> = compared.iter().map(row).collect();
    let compared = cores::accuracy::compare_all().map_err(|why| Failure::own(why.to_string()))?;
    let cores: Vec<Program> = compared.iter().map(program).collect();
    let report =
        Report { schema: SCHEMA, reference: "DRAMsim3", dram, cores_reference: "ChampSim", cores };
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&(table(&report.dram) + &programs(&report.cores)))?,
    }
    Ok(0)
}

fn row(one: &Comparison) -> Row {
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
        energy_pj: pair(one.energy_pj, one.their_energy_pj),
        energy_difference: one.energy_difference(),
    }
}

fn program(one: &cores::accuracy::Comparison) -> Program {
    let misses = |level: usize| pair(one.misses[level], one.theirs.misses[level]);
    Program {
        program: one.theirs.program.clone(),
        cycles_per_instruction: pair(one.our_cpi(), one.their_cpi()),
        difference: one.difference(),
        l1d_misses: misses(0),
        l2_misses: misses(1),
        l3_misses: misses(2),
    }
}

fn programs(programs: &[Program]) -> String {
    let mut text = format!(
        "\nCore, caches and memory beside ChampSim: ours / theirs, of a million instructions.\n\n\
         {:<15} {:>22} {:>7} {:>19} {:>19} {:>19}\n",
        "", "cycles an instruction", "", "L1 misses", "L2 misses", "L3 misses"
    );
    for one in programs {
        let cycles = &one.cycles_per_instruction;
        let _ = writeln!(
            text,
            "{:<15} {:>22} {:>+6.1}% {:>19} {:>19} {:>19}",
            one.program,
            format!("{:.3} / {:.3}", cycles.ours, cycles.theirs),
            100.0 * one.difference,
            both(&one.l1d_misses),
            both(&one.l2_misses),
            both(&one.l3_misses)
        );
    }
    text
}

fn table(rows: &[Row]) -> String {
    let mut text = "DDR model beside DRAMsim3: ours / theirs. Latencies of reads in clocks, rows \
                    that were open in % of bursts.\n"
        .to_owned();
    let mut preset = "";
    for row in rows {
        if row.preset != preset {
            preset = row.preset;
            let _ = writeln!(
                text,
                "\n{preset}\n{:<18} {:>15} {:>7} {:>9} {:>9} {:>9} {:>11} {:>13} {:>7}",
                "", "mean", "", "median", "95 %", "99 %", "rows open", "activates", "energy"
            );
        }
        let _ = writeln!(
            text,
            "{:<18} {:>15} {:>+6.1}% {:>9} {:>9} {:>9} {:>11} {:>13} {:>+6.1}%{}",
            row.stream,
            format!("{:.1} / {:.1}", row.mean_clocks.ours, row.mean_clocks.theirs),
            100.0 * row.mean_difference,
            both(&row.p50_clocks),
            both(&row.p95_clocks),
            both(&row.p99_clocks),
            format!(
                "{:.1} / {:.1}",
                100.0 * row.row_hit_rate.ours,
                100.0 * row.row_hit_rate.theirs
            ),
            both(&row.activates),
            100.0 * row.energy_difference,
            if row.saturated { "  saturated" } else { "" }
        );
    }
    text += "\nsaturated: requests waited for room in the queue, so latencies depend on its length\n\
             (docs/accuracy.md)\n";
    text
}

fn both(pair: &Pair<u64>) -> String {
    format!("{} / {}", pair.ours, pair.theirs)
}
