//! Small machines, and programs written down instruction by instruction.
#![allow(dead_code)]

use casemate_sim::machine::backing::Unprotected;
use casemate_sim::machine::cache::{Replacement, Ways};
use casemate_sim::machine::core::{CoreConfig, Order, PredictorName, UnitsName};
use casemate_sim::machine::hierarchy::{CacheLevelConfig, HierarchyConfig, PrefetchConfig};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, FlatBus};
use casemate_sim::machine::processor::{ProcessorStatistics, Progress};
use casemate_sim::machine::tlb::TlbConfig;
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::trace::{Instruction, Reference, Registers, Source, TraceError};

/// A program as a list.
pub struct Listed<'a>(std::slice::Iter<'a, Instruction>);

impl Listed<'_> {
    pub fn new(program: &[Instruction]) -> Listed<'_> {
        Listed(program.iter())
    }
}

impl Source for Listed<'_> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        let next = self.0.next();
        into.clone_from(next.unwrap_or(&Instruction::default()));
        Ok(next.is_some())
    }
}

/// An instruction that takes a cycle.
pub fn plain() -> Instruction {
    Instruction::default()
}

pub fn load(address: u64) -> Instruction {
    Instruction { references: vec![Reference::load(address, 8)], ..plain() }
}

pub fn store(address: u64) -> Instruction {
    Instruction { references: vec![Reference::store(address, 8)], ..plain() }
}

/// The same instruction, reading and writing a register; 0 is none.
pub fn with(read: u8, written: u8, instruction: Instruction) -> Instruction {
    let registers = Registers { read: [read, 0, 0, 0, 0, 0], written: [written, 0, 0, 0] };
    Instruction { registers, ..instruction }
}

pub fn at(pc: u64, instruction: Instruction) -> Instruction {
    Instruction { pc, length_bytes: 4, ..instruction }
}

pub fn by(thread: u32, instruction: Instruction) -> Instruction {
    Instruction { thread, ..instruction }
}

/// A cache of LRU with lines of 64 bytes.
pub fn cache(lines: u64, ways: u64, latency_cycles: u64) -> CacheLevelConfig {
    CacheLevelConfig {
        size_bytes: 64 * lines,
        ways: Ways::Set(ways),
        block_bytes: 64,
        latency_cycles,
        replacement: Replacement::Lru,
        mshr_registers: 8,
        mshr_waiters_per_register: 8,
    }
}

/// The machine of the hand-computed tests: 2 wide, a window of 8 with 4 loads and 4 stores; no
/// TLBs; a hit takes 2 cycles in the first level and 10 more in the second; memory answers after
/// 100 and has no bus. So a load is there 2, 12 or 112 cycles after it began.
pub fn small() -> ProcessorConfig {
    let no_tlb = TlbConfig { entries: 0, ways: Ways::Full, miss_latency_cycles: 160 };
    ProcessorConfig {
        core: CoreConfig {
            cores: 1,
            order: Order::OutOfOrder,
            issue_width: 2,
            commit_width: 2,
            window_entries: 8,
            load_queue_entries: 4,
            store_queue_entries: 4,
            store_forwarding: false,
            memory_ports: 0,
            units: UnitsName::Ideal,
            branch_predictor: PredictorName::Perfect,
            branch_predictor_entries: 1,
            misprediction_penalty_cycles: 0,
            look_ahead_instructions: 64,
            quantum_cycles: 20,
        },
        hierarchy: HierarchyConfig {
            l1i: cache(16, 2, 2),
            l1d: cache(16, 2, 2),
            l2: cache(64, 4, 10),
            l2_shared: true,
            prefetch: PrefetchConfig::NONE,
            l3: None,
            itlb: no_tlb,
            dtlb: no_tlb,
            coherence_cycles: 7,
            write_buffer_entries: 4,
            memory_bytes: 1 << 20,
        },
    }
}

/// The memory of [`small`].
pub const FLAT: FlatBusConfig =
    FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 0 };

pub fn machine(config: &ProcessorConfig, memory: FlatBusConfig) -> Processor<Unprotected> {
    let memory = AnyMemory::from(FlatBus::new(memory).expect("valid"));
    Processor::new(config, Timeline::new(memory), Unprotected::default()).expect("valid")
}

/// Runs a program to its end.
pub fn run_on(
    config: &ProcessorConfig,
    memory: FlatBusConfig,
    program: &[Instruction],
) -> ProcessorStatistics {
    let mut machine = machine(config, memory);
    let ended = machine.run_until_instructions(&mut Listed::new(program), u64::MAX);
    assert_eq!(ended.expect("runs"), Progress::TraceEnded);
    machine.finish().expect("everything comes to its end");
    machine.statistics()
}

/// Runs a program to its end over [`FLAT`].
pub fn run(config: &ProcessorConfig, program: &[Instruction]) -> ProcessorStatistics {
    run_on(config, FLAT, program)
}

/// The cycle in which the last instruction of a program leaves, and its last store is done.
pub fn cycles(config: &ProcessorConfig, program: &[Instruction]) -> u64 {
    run(config, program).cycles
}
