//! `casemate storage --pages`: what a fault of `run` costs, counted by the protocol that it runs.

use std::fmt::Write as _;

use anyhow::Result;
use casemate_pages::fault_costs::{FAULTS_IN_CLEAR, Fault, FaultCosts, MeanCounts, fault_costs};
use serde::Serialize;

use super::args::StorageArgs;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::size;

/// Of a node cache, as of `run`.
const NODE_CACHE_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=1 << 30;

#[derive(Serialize)]
struct Report {
    schema: u32,
    node_cache_bytes: u64,
    memories: Vec<Memory>,
}

#[derive(Serialize)]
struct Memory {
    memory_bytes: u64,
    pages: u64,
    levels: usize,
    levels_in_use: usize,
    directory_bytes: u64,
    read: Costs,
    written: Costs,
    out: Costs,
}

/// Of one kind of fault.
#[derive(Serialize)]
struct Costs {
    cold: Counts,
    warm: Counts,
}

/// For one fault, on average.
#[derive(Clone, Copy, Serialize)]
struct Counts {
    lines_fetched: f64,
    lines_stored: f64,
    macs: f64,
    bytes_moved: f64,
    bytes_ciphered: f64,
}

/// Counts and prints.
pub fn faults(args: &StorageArgs) -> Result<u8> {
    let node_cache_bytes = args.node_cache.0;
    if !NODE_CACHE_BYTES.contains(&node_cache_bytes) {
        let sentence = format!("--node-cache is {node_cache_bytes} bytes; choose 16K to 1G");
        return Err(Failure::own(sentence).into());
    }
    let memory = |bytes: u64| {
        let costs = fault_costs(bytes, node_cache_bytes as usize);
        let costs = costs.map_err(|why| {
            Failure::own(format!("--pages {}: {why}; choose less", size::format(bytes)))
        })?;
        Ok(Memory::new(bytes, &costs))
    };
    let memories = args.pages.iter().map(|size| memory(size.0)).collect::<Result<Vec<_>>>()?;
    let report = Report { schema: SCHEMA, node_cache_bytes, memories };
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&table(&report))?,
    }
    Ok(0)
}

impl Memory {
    fn new(memory_bytes: u64, costs: &FaultCosts) -> Self {
        Memory {
            memory_bytes,
            pages: costs.pages,
            levels: costs.levels,
            levels_in_use: costs.levels_in_use,
            directory_bytes: costs.directory_bytes,
            read: Costs::of(&costs.read),
            written: Costs::of(&costs.written),
            out: Costs::of(&costs.out),
        }
    }
}

impl Costs {
    fn of(fault: &Fault) -> Self {
        Costs { cold: Counts::of(&fault.cold), warm: Counts::of(&fault.warm) }
    }
}

impl Counts {
    fn of(counts: &MeanCounts) -> Self {
        Counts {
            lines_fetched: counts.lines_fetched,
            lines_stored: counts.lines_stored,
            macs: counts.macs,
            bytes_moved: counts.bytes_moved,
            bytes_ciphered: counts.bytes_ciphered,
        }
    }
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "Lines of metadata, MACs and bytes for one fault, on average, with a node cache of {}.\n\
         Computed by the protocol of `run` over counted memory, all pages out of the Clear.\n",
        size::format(report.node_cache_bytes)
    );
    for memory in &report.memories {
        let _ = writeln!(
            text,
            "\n{}: {} pages, directory and tree {}, {} of {} levels with more than one line\n\
             {:<34} {:>13} {:>12} {:>6} {:>12} {:>14}",
            size::format(memory.memory_bytes),
            memory.pages,
            size::format(memory.directory_bytes),
            memory.levels_in_use,
            memory.levels,
            "",
            "lines fetched",
            "lines stored",
            "MACs",
            "bytes moved",
            "bytes ciphered"
        );
        for (what, costs) in [
            ("comes in, read", &memory.read),
            ("comes in, to be written", &memory.written),
            ("goes out", &memory.out),
        ] {
            for (how, counts) in [("warm", costs.warm), ("cold", costs.cold)] {
                let _ = writeln!(
                    text,
                    "  {:<32} {:>13.2} {:>12.2} {:>6.2} {:>12.0} {:>14.0}",
                    format!("{what}, {how}"),
                    counts.lines_fetched,
                    counts.lines_stored,
                    counts.macs,
                    counts.bytes_moved,
                    counts.bytes_ciphered
                );
            }
        }
    }
    let _ = writeln!(
        text,
        "\nwarm: pages at random, each out some {FAULTS_IN_CLEAR} faults later; \
         cold: no line on chip before, all changes written back after"
    );
    text
}
