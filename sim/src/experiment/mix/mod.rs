//! A mix: several programs at once, each on a core of its own, that share what lies below.
//!
//! All begin at cycle 0. Each is measured over its own region: so many of its instructions behind
//! its own warm-up, the same ones in a mix as alone. Its trace begins again when it ends, and a
//! program that has been measured goes on, so that the others are disturbed until the slowest has
//! been measured.

mod program;

pub use program::Program;

use super::machine::{MachineError, Mixing};
use super::run::RunError;
use crate::machine::processor::mix::CoreProgress;
use crate::results::mix::Part;
use crate::results::statistics::Statistics;

/// What of each program is measured, in instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MixLimits {
    /// Simulated first.
    pub warmup_instructions: u64,
    /// Measured after that, at most; to the end of the trace if `None`.
    pub length_instructions: Option<u64>,
}

/// What a mix counted.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredMix {
    /// All of the machine, until the last program's region began.
    pub warmup: Statistics,
    /// All of the machine from there until the last region ended.
    pub region: Statistics,
    /// Each program's own region.
    pub parts: Vec<Part>,
    /// Whether all regions have all instructions that were wanted; else a trace ended first.
    pub whole: bool,
}

/// How far a program is.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Warming,
    Measuring(CoreProgress),
    Measured(Part),
}

/// Runs programs on a machine with at least as many cores.
///
/// # Errors
/// A trace cannot be read, or has nothing behind the warm-up; or the machine cannot go on.
pub fn measure(
    machine: &mut dyn Mixing,
    programs: &mut [Program<'_>],
    limits: MixLimits,
) -> Result<MeasuredMix, RunError> {
    let length = limits.length_instructions.unwrap_or(u64::MAX);
    let mut phases = vec![Phase::Warming; programs.len()];
    let (mut warmup, mut whole) = (None, true);
    loop {
        for (core, (program, phase)) in programs.iter_mut().zip(&mut phases).enumerate() {
            let at = machine.progress(core);
            if let Phase::Warming = phase
                && at.instructions >= limits.warmup_instructions
            {
                *phase = Phase::Measuring(at);
            }
            if let Phase::Measuring(from) = phase {
                program.pause_after = from.instructions.saturating_add(length);
                let ended = program.first_end().is_some_and(|end| at.instructions >= end);
                if at.instructions >= program.pause_after || ended {
                    whole &= at.instructions >= program.pause_after;
                    let instructions = at.instructions - from.instructions;
                    if instructions == 0 {
                        let (found, wanted) = (at.instructions, limits.warmup_instructions);
                        return Err(RunError::OnlyWarmup { found, wanted });
                    }
                    let cycles = at.cycles - from.cycles;
                    *phase = Phase::Measured(Part { instructions, cycles });
                    (program.pause_after, program.pauses_at_end) = (u64::MAX, false);
                }
            } else if let Phase::Warming = phase {
                program.pause_after = limits.warmup_instructions;
                if let Some(found) = program.first_end().filter(|end| at.instructions >= *end) {
                    let wanted = limits.warmup_instructions;
                    return Err(RunError::OnlyWarmup { found, wanted });
                }
            }
        }
        if warmup.is_none() && phases.iter().all(|phase| !matches!(phase, Phase::Warming)) {
            warmup = Some(machine.statistics()?);
        }
        let measured = phases.iter().map(|phase| match phase {
            Phase::Measured(part) => Some(*part),
            _ => None,
        });
        if let Some(parts) = measured.collect::<Option<Vec<Part>>>() {
            let now = machine.statistics()?;
            let warmup = warmup.unwrap_or_default();
            return Ok(MeasuredMix { region: now.since(&warmup)?, warmup, parts, whole });
        }
        machine.run_programs(programs)?;
        if let Some(failure) = programs.iter().find_map(|program| program.failure()) {
            return Err(MachineError(failure.to_owned()).into());
        }
    }
}
