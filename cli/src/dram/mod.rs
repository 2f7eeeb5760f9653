//! `casemate dram`: timed requests through the DDR model alone.

pub mod args;

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use casemate_sim::dram::replay::{Replay, replay};
use casemate_sim::dram::stream::{self, TimedRequest};
use casemate_sim::machine::memory::ddr::DdrConfig;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::progress::{self, Meter};
use crate::sim::machine;

use args::DramArgs;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    preset: &'a str,
    settings: &'a [String],
    clock_ns: f64,
    requests: usize,
    reads: u64,
    writes: u64,
    forwarded_reads: u64,
    read_latency_mean_clocks: f64,
    read_latency_p50_clocks: u64,
    read_latency_p95_clocks: u64,
    read_latency_p99_clocks: u64,
    waited_clocks: u64,
    read_row_hits: u64,
    write_row_hits: u64,
    activates: u64,
    refreshes: u64,
    clocks: u64,
    last_clock: u64,
    bytes: u64,
    bandwidth_bytes_per_second: f64,
    energy_pj: f64,
}

/// Replays and prints.
pub fn dram(args: &DramArgs) -> Result<u8> {
    machine::set_once(&args.settings)?;
    let mut memory = *args.preset;
    for setting in &args.settings {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            Failure::own(format!("--set {setting}: write KEY=VALUE, cl=16 for example"))
        })?;
        memory.set(key, value).map_err(|why| Failure::own(format!("--set {setting}: {why}")))?;
    }
    let config = memory.config().map_err(|why| Failure::own(format!("--set: {why}")))?;
    let requests = requests(args)?;
    let mut meter = Meter::of_requests(requests.len() as u64);
    let metered = requests.iter().inspect(|_| meter.add(1));
    let replay = replay(&config, memory.controller_clocks, metered, 0)
        .map_err(|why| Failure::own(why.to_string()))?;
    drop(meter);
    let energy_pj = replay.commands.energy_pj(&memory.currents, &config.timing, memory.clock_ns);
    let report = report(args, &requests, &replay, energy_pj);
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&text(&report, &config))?,
    }
    Ok(0)
}

fn requests(args: &DramArgs) -> Result<Vec<TimedRequest>> {
    if let Some(generated) = args.generate {
        return Ok(generated.requests(args.count as usize));
    }
    // The parser asks for one or the other.
    let path = args.stream.as_deref().unwrap_or(Path::new("-"));
    progress::stage(&format!("reading {}", path.display()));
    let read = if path == Path::new("-") {
        stream::read(io::stdin())
    } else {
        let file = File::open(path).with_context(|| {
            format!("{}: the stream cannot be opened; check its name", path.display())
        })?;
        stream::read(file)
    };
    read.with_context(|| path.display().to_string())
}

fn report<'a>(
    args: &'a DramArgs,
    requests: &[TimedRequest],
    replay: &Replay,
    energy_pj: f64,
) -> Report<'a> {
    let counts = replay.commands;
    let seconds = (replay.last_clock + 1) as f64 * args.preset.clock_ns * 1e-9;
    Report {
        schema: SCHEMA,
        preset: args.preset.name,
        settings: &args.settings,
        clock_ns: args.preset.clock_ns,
        requests: requests.len(),
        reads: counts.reads,
        writes: counts.writes,
        forwarded_reads: replay.forwarded_reads,
        read_latency_mean_clocks: replay.reads.mean_clocks(),
        read_latency_p50_clocks: replay.reads.percentile_clocks(0.50),
        read_latency_p95_clocks: replay.reads.percentile_clocks(0.95),
        read_latency_p99_clocks: replay.reads.percentile_clocks(0.99),
        waited_clocks: replay.waited_clocks,
        read_row_hits: counts.read_row_hits,
        write_row_hits: counts.write_row_hits,
        activates: counts.activates,
        refreshes: counts.refreshes,
        clocks: replay.clocks,
        last_clock: replay.last_clock,
        bytes: replay.bytes,
        bandwidth_bytes_per_second: replay.bytes as f64 / seconds,
        energy_pj,
    }
}

fn text(report: &Report, config: &DdrConfig) -> String {
    let mut text = String::new();
    let bursts = (report.reads + report.writes).max(1) as f64;
    let hits = (report.read_row_hits + report.write_row_hits) as f64;
    let most =
        config.organisation.burst_bytes as f64 / config.timing.burst as f64 / report.clock_ns
            * config.organisation.channels as f64;
    let _ = writeln!(
        text,
        "{} on {}: {} reads, {} writes, {} reads answered from the write queue",
        report.requests, report.preset, report.reads, report.writes, report.forwarded_reads
    );
    let _ = writeln!(
        text,
        "  read latency  mean {:.1} clocks, median {}, 95 % {}, 99 % {} (a clock is {} ns)",
        report.read_latency_mean_clocks,
        report.read_latency_p50_clocks,
        report.read_latency_p95_clocks,
        report.read_latency_p99_clocks,
        report.clock_ns
    );
    let _ = writeln!(
        text,
        "  queue         requests waited {} clocks for room, all together",
        report.waited_clocks
    );
    let _ = writeln!(
        text,
        "  rows          {:.1} % of bursts found theirs open; {} activates, {} refreshes",
        100.0 * hits / bursts,
        report.activates,
        report.refreshes
    );
    let _ = writeln!(
        text,
        "  bandwidth     {:.2} of {most:.2} GB/s",
        report.bandwidth_bytes_per_second / 1e9
    );
    let _ = writeln!(text, "  energy        {:.1} µJ", report.energy_pj / 1e6);
    text
}
