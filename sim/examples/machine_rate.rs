//! Simulated instructions a second of processor time, of the machine without protection, on made-up
//! programs.
//!
//! `cargo run --release -p casemate-sim --example machine_rate [INSTRUCTIONS [MIX [flat]]]`

use casemate_sim::machine::backing::Unprotected;
use casemate_sim::machine::hierarchy::HierarchyConfig;
use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, Ddr, FlatBus};
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::trace::synthetic::{Mix, Synthetic};
use casemate_sim::trace::{Instruction, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    let instructions = argument.map_or(Ok(10_000_000), |number| number.parse())?;
    let mixes = [
        ("light", Mix::LIGHT),
        ("heavy", Mix::HEAVY),
        ("third", Mix::HEAVY_THIRD),
        ("stores", Mix::HEAVY_WITH_STORES),
    ];
    let only = std::env::args().nth(2);
    for (name, mix) in mixes.into_iter().filter(|mix| only.as_deref().is_none_or(|o| o == mix.0)) {
        let start = processor_seconds()?;
        let (mut source, mut record) =
            (Synthetic::new(mix, 1, instructions), Instruction::default());
        let mut references = 0;
        while source.next(&mut record)? {
            references += record.references.len();
        }
        let rate = instructions as f64 / (processor_seconds()? - start) / 1e6;
        println!("{name:<8} the trace alone  {rate:>7.1} M/s   {references} references");
        let flat = AnyMemory::from(FlatBus::new(FlatBusConfig::LHASH)?);
        run(name, "flat", mix, instructions, flat)?;
        if std::env::args().nth(3).is_some_and(|memory| memory == "flat") {
            continue;
        }
        let ddr = AnyMemory::from(Ddr::new(DdrConfig::ddr4_2400(1, 3_200)?)?);
        run(name, "ddr", mix, instructions, ddr)?;
    }
    Ok(())
}

/// Seconds that this process was on a processor: other programs on the machine do not count.
fn processor_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = schedstat.split(' ').next().unwrap_or_default();
    Ok(nanoseconds.parse::<u64>()? as f64 / 1e9)
}

fn run(
    name: &str,
    memory_name: &str,
    mix: Mix,
    instructions: u64,
    memory: AnyMemory,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut config = ProcessorConfig::LHASH;
    config.hierarchy = HierarchyConfig { memory_bytes: 1 << 30, ..config.hierarchy };
    config.hierarchy.l1d.block_bytes = 64;
    config.hierarchy.l1i.block_bytes = 64;
    let mut machine = Processor::new(&config, Timeline::new(memory), Unprotected)?;
    let start = processor_seconds()?;
    machine.run_until_instructions(&mut Synthetic::new(mix, 1, instructions), u64::MAX)?;
    machine.finish()?;
    let rate = instructions as f64 / (processor_seconds()? - start) / 1e6;
    let statistics = machine.statistics();
    println!(
        "{name:<8} {memory_name:<15} {rate:>8.1} M/s   {} cycles, {} misses of the first level, {} of the last, {} write-backs, {} events",
        statistics.cycles,
        statistics.cores[0].l1d.misses(),
        statistics.last_level.reads,
        statistics.last_level.write_backs,
        statistics.simulated_events,
    );
    Ok(())
}
