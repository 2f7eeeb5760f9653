//! Whichever memory a configuration names.

use super::{Completion, Ddr, FlatBus, MAX_REQUEST_BYTES, Memory, Refused, Request, Traffic};
use crate::machine::Cycle;

/// One of the memories there are.
#[derive(Clone, Debug)]
pub enum AnyMemory {
    /// The papers'.
    Flat(FlatBus),
    /// Banks.
    Ddr(Box<Ddr>),
}

impl AnyMemory {
    /// The largest request that it takes.
    #[must_use]
    pub fn most_request_bytes(&self) -> u32 {
        match self {
            AnyMemory::Flat(_) => MAX_REQUEST_BYTES,
            AnyMemory::Ddr(memory) => memory.most_request_bytes(),
        }
    }
}

impl From<FlatBus> for AnyMemory {
    fn from(memory: FlatBus) -> Self {
        AnyMemory::Flat(memory)
    }
}

impl From<Ddr> for AnyMemory {
    fn from(memory: Ddr) -> Self {
        AnyMemory::Ddr(Box::new(memory))
    }
}

impl Memory for AnyMemory {
    fn send(&mut self, now: Cycle, request: Request) -> Result<(), Refused> {
        match self {
            AnyMemory::Flat(memory) => memory.send(now, request),
            AnyMemory::Ddr(memory) => memory.send(now, request),
        }
    }

    fn advance(&mut self, now: Cycle, answered: &mut Vec<Completion>) {
        match self {
            AnyMemory::Flat(memory) => memory.advance(now, answered),
            AnyMemory::Ddr(memory) => memory.advance(now, answered),
        }
    }

    fn next_event(&self) -> Option<Cycle> {
        match self {
            AnyMemory::Flat(memory) => memory.next_event(),
            AnyMemory::Ddr(memory) => memory.next_event(),
        }
    }

    fn traffic(&self) -> &Traffic {
        match self {
            AnyMemory::Flat(memory) => memory.traffic(),
            AnyMemory::Ddr(memory) => memory.traffic(),
        }
    }
}
