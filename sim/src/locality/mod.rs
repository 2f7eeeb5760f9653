//! What caches make of a trace, without time: misses, write-backs, footprint.
//!
//! In reading order:
//!
//! - [`geometry`]: which caches, under which rules;
//! - [`counts`] and [`footprint`]: what comes out;
//! - `levels`: the caches, and what a reference does to them under either rules;
//! - [`Survey`]: a trace that goes through;
//! - [`mod@reference`]: counts of six programs, beside cachegrind's.
//!
//! Time and protection are the simulator's. This is for choosing traces, and for comparing the
//! caches with Valgrind's cachegrind, whose rules can be followed ([`Rules::Cachegrind`]).

pub mod counts;
pub mod footprint;
pub mod geometry;
mod levels;
pub mod reference;

pub use counts::{Counts, References};
pub use footprint::Footprint;
pub use geometry::{Geometry, Rules};

use crate::machine::{Access, ConfigError};
use crate::trace::{Extent, Instruction, Kind, Source, TraceError};
use levels::Levels;

/// A trace that goes through caches.
pub struct Survey {
    rules: Rules,
    levels: Levels,
    counts: Counts,
    footprint: Footprint,
}

impl Survey {
    /// Empty caches.
    ///
    /// # Errors
    /// One cannot be built; the parameter is named.
    pub fn new(geometry: &Geometry, rules: Rules) -> Result<Self, ConfigError> {
        let (counts, footprint) = (Counts::default(), Footprint::default());
        Ok(Survey { rules, levels: Levels::new(geometry, rules)?, counts, footprint })
    }

    /// Takes all instructions of a trace, and returns how many there were. Those that are needed to
    /// come to `warmup` instructions change caches and footprint, and are not counted.
    ///
    /// # Errors
    /// The trace is malformed, damaged or cannot be read.
    pub fn take_all(
        &mut self,
        trace: &mut (impl Source + ?Sized),
        warmup: u64,
    ) -> Result<u64, TraceError> {
        let mut instruction = Instruction::default();
        let (mut is_warm, mut before) = (warmup == 0, 0);
        while trace.next(&mut instruction)? {
            self.take(&instruction);
            if !is_warm && self.counts.instructions >= warmup {
                (is_warm, before) = (true, self.counts.instructions);
                self.clear_counts();
            }
        }
        let all = before.saturating_add(self.counts.instructions);
        if !is_warm {
            self.clear_counts();
        }
        Ok(all)
    }

    /// Takes an instruction: its fetch, if the trace knows its address, then its references in
    /// order. Thread *t* runs on core *t* modulo the number of cores.
    pub fn take(&mut self, instruction: &Instruction) {
        self.counts.instructions += instruction.instructions();
        let core = instruction.thread as usize % self.levels.cores();
        if instruction.pc != 0 {
            let size_bytes = u64::from(instruction.length_bytes.max(1));
            self.footprint.instruction(instruction.pc, size_bytes);
            let extent = Extent { address: instruction.pc, size_bytes };
            self.counts.fetches.add(self.levels.fetch(core, extent));
        }
        let mut last_load = None;
        for reference in &instruction.references {
            let size_bytes = u64::from(reference.size_bytes.max(1));
            let extent = Extent { address: reference.address, size_bytes };
            self.footprint.data(reference.address, size_bytes);
            match reference.kind {
                Kind::Load => {
                    last_load = Some(extent);
                    self.counts.loads.add(self.levels.refer(core, Access::Read, extent));
                }
                // It counts "instructions that modify a memory location as doing just a read".
                Kind::Store if self.rules == Rules::Cachegrind && last_load == Some(extent) => {}
                Kind::Store => {
                    self.counts.stores.add(self.levels.refer(core, Access::Write, extent));
                }
            }
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { write_backs: self.levels.write_backs(), ..self.counts }
    }

    /// What was touched so far.
    #[must_use]
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// Counts begin again, after a warm-up. Caches and footprint stay.
    pub fn clear_counts(&mut self) {
        self.counts = Counts::default();
        self.levels.clear_write_backs();
    }
}
