//! The whole machine: cores, caches and what lies below them, fed with a trace.
//!
//! In reading order:
//!
//! - `instruction_queues`: the trace, thread by thread;
//! - `run`: cores run ahead, events happen, in turn;
//! - `warm`: instructions go by and only leave their traces in caches, TLBs and the backing;
//! - [`mix`]: several programs at once, each with a trace of its own;
//! - `requests`: traces of requests to memory, which have no core;
//! - [`statistics`].

mod instruction_queues;
pub mod mix;
mod requests;
mod run;
pub mod statistics;
mod warm;

use serde::{Deserialize, Serialize};

pub use statistics::{ProcessorStatistics, WaitCounts};

use super::Cycle;
use super::backing::Backing;
use super::cache::Evicted;
use super::core::{Core, CoreConfig};
use super::error::ConfigError;
use super::frames::OutOfFrames;
use super::hierarchy::{Hierarchy, HierarchyConfig, Observer, Unobserved};
use super::timeline::Timeline;
use crate::trace::TraceError;
use instruction_queues::InstructionQueues;
use requests::Requests;

/// Everything about a machine but its memory and its protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorConfig {
    /// The cores.
    pub core: CoreConfig,
    /// Caches, TLBs, frames.
    pub hierarchy: HierarchyConfig,
}

impl ProcessorConfig {
    /// LHash, Table 2.
    pub const LHASH: ProcessorConfig =
        ProcessorConfig { core: CoreConfig::LHASH, hierarchy: HierarchyConfig::LHASH };

    /// Checks it.
    ///
    /// # Errors
    /// A number is impossible, or parts do not go together; the key is named.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.core.validate().map_err(|error| error.within_section("core"))?;
        self.hierarchy.validate(self.core.cores)
    }
}

/// Why a run broke off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is too little memory.
    #[error(transparent)]
    OutOfFrames(#[from] OutOfFrames),
    /// A request to memory that there is not.
    #[error(
        "a request goes to byte {address:#x} of {memory_bytes} bytes of memory; set memory_bytes higher"
    )]
    BeyondMemory {
        /// Where it goes.
        address: u64,
        /// How much there is.
        memory_bytes: u64,
    },
    /// A request has its own cycle, so no part of its trace goes by without time.
    #[error("a trace of requests to memory has cycles of its own and cannot be sampled")]
    RequestWithoutTime,
    /// Likewise, and no core runs it.
    #[error("a trace of requests to memory runs on no core, and cannot be a program of a mix")]
    RequestInMix,
    /// Only one core can be told which process it runs.
    #[error(
        "the trace has several processes, which take turns on one core, and the machine has {cores}; \
         set cores = 1"
    )]
    ProcessesOnCores {
        /// How many cores there are.
        cores: usize,
    },
    /// A core waits for something that will never come: an error of the simulator.
    #[error("the simulation stands still at cycle {cycle}: this is an error of the simulator")]
    StandsStill {
        /// When.
        cycle: Cycle,
    },
}

/// How a part of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many instructions as were asked for have entered.
    Reached,
    /// The trace has ended before.
    TraceEnded,
}

/// The machine at work.
pub struct Processor<B, O = Unobserved> {
    timeline: Timeline,
    cores: Vec<Core>,
    hierarchy: Hierarchy<B, O>,
    queues: InstructionQueues,
    requests: Requests,
    quantum_cycles: u64,
    /// Which cores have run out of instructions.
    idle: Vec<bool>,
    told: Vec<(Cycle, u64)>,
    instructions: u64,
    /// Of one core: the process that it runs.
    running: u32,
    /// Of several cores, or of programs: instructions of each, and where it pauses.
    entered: Vec<u64>,
    pause_after: Vec<u64>,
}

impl<B: Backing> Processor<B> {
    /// An idle machine. It owns the timeline, which has the memory, and lends it to the backing.
    ///
    /// # Errors
    /// The configuration is impossible; the key is named.
    pub fn new(
        config: &ProcessorConfig,
        timeline: Timeline,
        backing: B,
    ) -> Result<Self, ConfigError> {
        Processor::observed(config, timeline, backing, Unobserved)
    }
}

impl<B: Backing, O: Observer> Processor<B, O> {
    /// An idle machine with an observer of its last-level misses and evictions.
    ///
    /// # Errors
    /// The configuration is impossible; the key is named.
    pub fn observed(
        config: &ProcessorConfig,
        timeline: Timeline,
        backing: B,
        observer: O,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let cores = (0..config.core.cores as u32)
            .map(|id| Core::new(id, &config.core, &config.hierarchy))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Processor {
            timeline,
            hierarchy: Hierarchy::new(&config.hierarchy, config.core.cores, backing, observer)?,
            queues: InstructionQueues::new(
                cores.len(),
                config.core.look_ahead_instructions as usize,
            ),
            requests: Requests::default(),
            quantum_cycles: config.core.quantum_cycles,
            idle: vec![true; cores.len()],
            told: Vec::new(),
            instructions: 0,
            running: 0,
            entered: vec![0; cores.len()],
            pause_after: vec![u64::MAX; cores.len()],
            cores,
        })
    }

    /// The cycle up to which everything is known that happened on the chip.
    #[must_use]
    pub fn cycles(&self) -> Cycle {
        let cores = self.cores.iter().map(Core::cycles).max().unwrap_or(0);
        cores.max(self.timeline.now())
    }

    /// Instructions that have entered, of all cores.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// What instructions had to wait for so far, of all cores.
    #[must_use]
    pub fn wait_counts(&self) -> WaitCounts {
        let mut counts = WaitCounts::default();
        for core in &self.cores {
            counts.first_level_misses += core.first_level_misses();
            counts.mispredictions += core.mispredictions();
        }
        counts.memory_reads = self.hierarchy.memory_reads();
        counts
    }

    /// What lies below the caches.
    pub fn backing_mut(&mut self) -> &mut B {
        &mut self.hierarchy.backing
    }

    /// Does something with what lies below the caches, in the current cycle.
    pub fn with_backing(&mut self, what: impl FnOnce(&mut B, &mut Timeline)) {
        what(&mut self.hierarchy.backing, &mut self.timeline);
        self.hierarchy.settle(&mut self.timeline);
    }

    /// The only core runs another process from now on.
    fn switch_to(&mut self, process: u32) {
        self.running = process;
        self.with_backing(|backing, timeline| backing.let_run(process, timeline));
    }

    /// The observer of misses and evictions.
    pub fn observer_mut(&mut self) -> &mut O {
        self.hierarchy.observer_mut()
    }

    /// How many lines of the last level hold data and metadata, by what was put in and taken out;
    /// and how many hold anything, counted one by one.
    #[must_use]
    pub fn last_level_lines(&self) -> ([u64; 2], u64) {
        self.hierarchy.last_level_lines()
    }

    /// What each cache and TLB holds: of each core the first level for instructions and for data
    /// and the TLBs, then the second levels and the third. Executed by tests only.
    #[must_use]
    pub fn held(&self) -> Vec<Vec<Evicted>> {
        let of_cores = self.cores.iter().flat_map(Core::held);
        of_cores.chain(self.hierarchy.held()).collect()
    }

    /// Everything that was counted so far.
    pub fn statistics(&mut self) -> ProcessorStatistics {
        let cycles = self.cycles();
        ProcessorStatistics::gather(self, cycles)
    }
}
