//! The widths and sizes of a core.

use serde::{Deserialize, Serialize};

use super::branch::PredictorName;
use super::units::UnitsName;
use crate::machine::cycle::MAX_LATENCY_CYCLES;
use crate::machine::error::{ConfigError, power_of_two, within};

/// In which order instructions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each as soon as its operands are available.
    OutOfOrder,
    /// In program order: an instruction that waits for an operand delays all later ones ("stall on
    /// use").
    InOrder,
    /// As `InOrder`, and all later ones wait for a load that misses ("stall on miss"). For traces
    /// that do not tell registers.
    InOrderBlocking,
}

/// The cores of a machine, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreConfig {
    /// How many: 1 to 8. Thread *t* of a trace runs on core *t* modulo this.
    pub cores: u64,
    /// In which order instructions begin.
    pub order: Order,
    /// Instructions that enter the window in a cycle.
    pub issue_width: u64,
    /// Instructions that leave it in a cycle.
    pub commit_width: u64,
    /// Instructions between entering and leaving: the reorder buffer, LHash's register update unit.
    pub window_entries: u64,
    /// Loads among them.
    pub load_queue_entries: u64,
    /// Stores among them, and those that left the window and wait for their line.
    pub store_queue_entries: u64,
    /// Whether a load takes its bytes from a store in the queue that has them.
    pub store_forwarding: bool,
    /// Loads and stores that begin in a cycle; 0 is any number.
    pub memory_ports: u64,
    /// What executes operations, and how long they take.
    pub units: UnitsName,
    /// How branches are predicted.
    pub branch_predictor: PredictorName,
    /// Two-bit counters of its table, a power of two; `perfect` has none.
    pub branch_predictor_entries: u64,
    /// From the end of a branch that was predicted wrongly to the entering of the next
    /// instruction: stages of the core in front of its window.
    pub misprediction_penalty_cycles: u64,
    /// With several cores: how many instructions of the trace are read ahead for each.
    pub look_ahead_instructions: u64,
    /// With several cores: by how many cycles one may be ahead of the others.
    pub quantum_cycles: u64,
}

impl CoreConfig {
    /// LHash, Table 2: 4 wide, 128 entries in the register update unit, 64 in the load/store queue;
    /// the rest as in SimpleScalar's defaults.
    pub const LHASH: CoreConfig = CoreConfig {
        cores: 1,
        order: Order::OutOfOrder,
        issue_width: 4,
        commit_width: 4,
        window_entries: 128,
        load_queue_entries: 64,
        store_queue_entries: 64,
        store_forwarding: true,
        memory_ports: 2,
        units: UnitsName::Simplescalar,
        branch_predictor: PredictorName::Bimodal,
        branch_predictor_entries: 2048,
        misprediction_penalty_cycles: 3,
        look_ahead_instructions: 4096,
        quantum_cycles: 100,
    };

    /// Checks it.
    ///
    /// # Errors
    /// A number is impossible; the key is named.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("cores", self.cores, 1, 8)?;
        within("issue_width", self.issue_width, 1, 64)?;
        within("commit_width", self.commit_width, 1, 64)?;
        within("window_entries", self.window_entries, 1, 1 << 14)?;
        within("load_queue_entries", self.load_queue_entries, 1, 1 << 14)?;
        within("store_queue_entries", self.store_queue_entries, 1, 1 << 14)?;
        within("memory_ports", self.memory_ports, 0, 64)?;
        power_of_two("branch_predictor_entries", self.branch_predictor_entries)?;
        within("branch_predictor_entries", self.branch_predictor_entries, 1, 1 << 24)?;
        let penalty_cycles = self.misprediction_penalty_cycles;
        within("misprediction_penalty_cycles", penalty_cycles, 0, MAX_LATENCY_CYCLES)?;
        within("look_ahead_instructions", self.look_ahead_instructions, 1, 1 << 20)?;
        within("quantum_cycles", self.quantum_cycles, 1, MAX_LATENCY_CYCLES)
    }
}
