//! Writes requests to memory in other tools' formats.

use std::io::Write;

use super::Format;
use crate::trace::error::TraceError;
use crate::trace::record::{Instruction, Kind};

impl Format {
    /// Writes a request's references, a line each.
    ///
    /// # Errors
    /// The format has no place for it (only Ramulator's load/store traces and DRAMsim3's hold
    /// requests; the latter's have cycles), or it cannot be written.
    pub fn write(self, out: &mut impl Write, request: &Instruction) -> Result<(), TraceError> {
        for reference in &request.references {
            let (address, is_load) = (reference.address, reference.kind == Kind::Load);
            match (self, request.arrival_cycle) {
                (Format::RamulatorLoadStore, _) => {
                    writeln!(out, "{} {address:#x}", if is_load { "LD" } else { "ST" })?;
                }
                (Format::Dramsim3, Some(cycle)) => {
                    let operation = if is_load { "READ" } else { "WRITE" };
                    writeln!(out, "{address:#x} {operation} {cycle}")?;
                }
                (Format::Dramsim3, None) => {
                    return Err(TraceError::Unwritable("DRAMsim3's requests have cycles"));
                }
                (Format::ChampSim | Format::RamulatorSimpleO3, _) => {
                    return Err(TraceError::Unwritable("the format holds programs, not requests"));
                }
            }
        }
        Ok(())
    }
}
