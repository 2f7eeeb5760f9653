//! The papers' memory: the first chunk of a read arrives after a fixed latency, the others follow
//! at the pace of the bus, and nothing else is ever in the way but the bus.
//!
//! LHash, Table 2: 80 cycles to the first chunk, 8 bytes wide, 200 MHz beside a core of 1 GHz; so
//! a block of 64 bytes is there after 80 + 7 * 5 = 115 cycles. Addresses have a bus of their own
//! (section 7.1), so a request costs the data bus nothing but its data.

use super::answers::Answers;
use super::{Completion, MAX_REQUEST_BYTES, Memory, Refused, Request, Traffic};
use crate::machine::Access;
use crate::machine::cycle::{Calendar, Cycle, MAX_LATENCY_CYCLES};
use crate::machine::error::{ConfigError, within};

/// Latency and bus, in cycles of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatBusConfig {
    /// From a read to the end of its first chunk.
    pub first_chunk_cycles: u64,
    /// Bytes of a chunk: the width of the bus.
    pub bus_bytes: u32,
    /// How long a chunk is on the bus. With 0 the bus delays nothing.
    pub chunk_cycles: u64,
}

impl FlatBusConfig {
    /// LHash, Table 2.
    pub const LHASH: FlatBusConfig =
        FlatBusConfig { first_chunk_cycles: 80, bus_bytes: 8, chunk_cycles: 5 };

    /// AISE/BMT, section 6: 200 cycles, and a bus without limits. The preset's carries what makes
    /// it as busy as in the paper (`papers/aise-bmt/config.toml`). Used by tests only.
    pub const AISE_BMT: FlatBusConfig =
        FlatBusConfig { first_chunk_cycles: 200, bus_bytes: 64, chunk_cycles: 0 };

    /// OTP/SNC, section 5: 100 cycles, the rest as SimpleScalar has it. Its documented defaults
    /// are a bus of 8 bytes and 2 cycles for each further chunk. Used by tests only: the preset
    /// says the same in `papers/otp-snc/config.toml`.
    pub const OTP_SNC: FlatBusConfig =
        FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 8, chunk_cycles: 2 };
}

/// The memory at work.
#[derive(Clone, Debug)]
pub struct FlatBus {
    config: FlatBusConfig,
    bus: Calendar,
    answers: Answers,
    traffic: Traffic,
    now: Cycle,
}

impl FlatBus {
    /// An idle memory.
    ///
    /// # Errors
    /// A number is impossible; the parameter is named.
    pub fn new(config: FlatBusConfig) -> Result<Self, ConfigError> {
        within("bus_bytes", u64::from(config.bus_bytes), 1, u64::from(MAX_REQUEST_BYTES))?;
        within("chunk_cycles", config.chunk_cycles, 0, MAX_LATENCY_CYCLES)?;
        let first = config.first_chunk_cycles;
        within("first_chunk_cycles", first, config.chunk_cycles, MAX_LATENCY_CYCLES)?;
        Ok(FlatBus {
            config,
            bus: Calendar::new(),
            answers: Answers::default(),
            traffic: Traffic::default(),
            now: 0,
        })
    }

    /// In how many cycles the bus moved something.
    #[must_use]
    pub fn bus_busy_cycles(&self) -> u64 {
        self.bus.busy_cycles()
    }

    /// Takes a request like [`Memory::send`], and says at once when it will be answered: here
    /// nothing that comes later can change that. The answer does not come out of
    /// [`Memory::advance`] again.
    ///
    /// # Errors
    /// It is too large.
    pub fn book(&mut self, now: Cycle, request: &Request) -> Result<Cycle, Refused> {
        if request.size_bytes > MAX_REQUEST_BYTES {
            let (size_bytes, most) = (request.size_bytes, MAX_REQUEST_BYTES);
            return Err(Refused::TooLarge { size_bytes, most });
        }
        self.pass_time(now);
        let FlatBusConfig { first_chunk_cycles, bus_bytes, chunk_cycles } = self.config;
        let chunks = u64::from(request.size_bytes.div_ceil(bus_bytes).max(1));
        let wanted = match request.access {
            // The first chunk is on the bus during the last cycles of the latency.
            Access::Read => self.now + (first_chunk_cycles - chunk_cycles),
            Access::Write => self.now,
        };
        let started = self.bus.reserve(wanted, chunks * chunk_cycles);
        self.traffic.count_request(request);
        let bytes = chunks * u64::from(bus_bytes);
        self.traffic.count_bytes(request.content, request.access, bytes);
        Ok(started + chunks * chunk_cycles)
    }

    fn pass_time(&mut self, now: Cycle) {
        self.now = self.now.max(now);
        self.bus.forget_before(self.now);
    }
}

impl Memory for FlatBus {
    fn send(&mut self, now: Cycle, request: Request) -> Result<(), Refused> {
        let at = self.book(now, &request)?;
        let order = self.answers.next_order();
        self.answers.enter(at, order, request.id);
        Ok(())
    }

    fn advance(&mut self, now: Cycle, answered: &mut Vec<Completion>) {
        self.pass_time(now);
        self.answers.take(self.now, answered);
    }

    fn next_event(&self) -> Option<Cycle> {
        self.answers.next()
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}
