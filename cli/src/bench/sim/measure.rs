//! One measurement: instructions a second of processor time.

use std::io::Cursor;

use anyhow::{Result, ensure};
use casemate_schemes::unit::scheme::Scheme;
use casemate_sim::machine::backing::{Backing, Unprotected};
use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, Ddr, FlatBus};
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::protection::{Protected, ProtectionConfig};
use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::format::{Reader, Writer};
use casemate_sim::trace::synthetic::{Mix, Synthetic};
use casemate_sim::trace::{Header, Instruction, Kind, Source};
use rustix::time::{ClockId, clock_gettime};

/// Clock of the core beside DDR4-2400.
const CORE_MHZ: u64 = 3200;
/// Every measurement sees the same program.
const SEED: u64 = 1;

/// Which memory.
#[derive(Clone, Copy, Debug)]
pub enum Below {
    /// The papers': LHash, Table 2.
    Flat,
    /// Banks: one channel of DDR4-2400.
    Banks,
}

/// The machine of all measurements: LHash, Table 2, with lines of 64 bytes everywhere.
fn machine() -> ProcessorConfig {
    let mut config = ProcessorConfig::LHASH;
    config.hierarchy.memory_bytes = 1 << 30;
    config.hierarchy.l1d.block_bytes = 64;
    config.hierarchy.l1i.block_bytes = 64;
    config
}

fn memory(below: Below) -> Result<AnyMemory> {
    Ok(match below {
        Below::Flat => FlatBus::new(FlatBusConfig::LHASH)?.into(),
        Below::Banks => Ddr::new(DdrConfig::ddr4_2400(1, CORE_MHZ)?)?.into(),
    })
}

/// Millions a second of processor time: others on the machine do not count.
fn rate(instructions: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = processor_seconds();
    work()?;
    Ok(instructions as f64 / (processor_seconds() - start) / 1e6)
}

/// Seconds that this thread was on a processor. To the nanosecond, where `schedstat` counts the
/// time since the last tick of 4 ms as none.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// To make the program up: part of all the other rates but that of decoding.
pub fn made_up(mix: Mix, instructions: u64) -> Result<f64> {
    rate(instructions, || drain(&mut Synthetic::new(mix, SEED, instructions)))
}

/// To decode it from our trace format.
pub fn decoded(mix: Mix, instructions: u64) -> Result<f64> {
    let mut writer = Writer::new(Vec::new(), &Header::default())?;
    let (mut source, mut record) =
        (Synthetic::new(mix, SEED, instructions), Instruction::default());
    while source.next(&mut record)? {
        writer.write(&record)?;
    }
    let (_, bytes) = writer.finish()?;
    let mut reader = Reader::open(Cursor::new(bytes))?;
    rate(instructions, || drain(&mut reader))
}

/// To decode it from ChampSim's format, raw.
pub fn decoded_champsim(mix: Mix, instructions: u64) -> Result<f64> {
    let mut bytes = Vec::new();
    let (mut source, mut record) =
        (Synthetic::new(mix, SEED, instructions), Instruction::default());
    while source.next(&mut record)? {
        bytes.extend_from_slice(&champsim_record(&record));
    }
    let mut source = Format::ChampSim.read(Cursor::new(bytes))?;
    rate(instructions, || drain(&mut source))
}

/// As the table of `casemate_sim::trace::foreign::champsim` has it, with the first references of
/// each kind.
fn champsim_record(instruction: &Instruction) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&instruction.pc.to_le_bytes());
    let places = [(Kind::Store, 16..32), (Kind::Load, 32..64)];
    for (kind, place) in places {
        let of_kind = instruction.references.iter().filter(|reference| reference.kind == kind);
        for (slot, reference) in bytes[place].chunks_exact_mut(8).zip(of_kind) {
            slot.copy_from_slice(&reference.address.to_le_bytes());
        }
    }
    bytes
}

fn drain(source: &mut dyn Source) -> Result<()> {
    let mut record = Instruction::default();
    while source.next(&mut record)? {}
    Ok(())
}

/// Core and caches over memory as it is.
pub fn unprotected(mix: Mix, instructions: u64, below: Below) -> Result<f64> {
    run(mix, instructions, Timeline::new(memory(below)?), Unprotected::default())
}

/// The same over a protection unit.
pub fn protected(mix: Mix, instructions: u64, below: Below, scheme: &Scheme) -> Result<f64> {
    let config = ProtectionConfig { memory_bytes: 1 << 30, ..ProtectionConfig::AISE_BMT };
    let mut timeline = Timeline::new(memory(below)?);
    let unit = Protected::new(scheme, &config, &mut timeline)?;
    run(mix, instructions, timeline, unit)
}

/// The same without time: what a sampled run does between its windows.
pub fn warmed(mix: Mix, instructions: u64, scheme: &Scheme) -> Result<f64> {
    let config = ProtectionConfig { memory_bytes: 1 << 30, ..ProtectionConfig::AISE_BMT };
    let mut timeline = Timeline::new(memory(Below::Flat)?);
    let unit = Protected::new(scheme, &config, &mut timeline)?;
    let mut machine = Processor::new(&machine(), timeline, unit)?;
    let rate = rate(instructions, || {
        machine.warm_until_instructions(&mut Synthetic::new(mix, SEED, instructions), u64::MAX)?;
        Ok(())
    })?;
    ensure!(machine.instructions() == instructions, "the simulator lost instructions");
    Ok(rate)
}

fn run(mix: Mix, instructions: u64, timeline: Timeline, backing: impl Backing) -> Result<f64> {
    let mut machine = Processor::new(&machine(), timeline, backing)?;
    let rate = rate(instructions, || {
        machine.run_until_instructions(&mut Synthetic::new(mix, SEED, instructions), u64::MAX)?;
        Ok(machine.finish()?)
    })?;
    ensure!(machine.instructions() == instructions, "the simulator lost instructions");
    Ok(rate)
}
