//! The parts of a DDR memory, and its clock beside the core's.

use super::Clock;
use super::mapping::{DdrLocation, Mapping};
use super::scheduler::Scheduler;
use super::timing::Timing;
use crate::machine::error::{ConfigError, power_of_two, within};
use crate::machine::{Access, Cycle};

/// How many of everything. A channel is 64 data lines wide in both standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Independent buses.
    pub channels: u64,
    /// Ranks of a channel.
    pub ranks: u64,
    /// Bank groups of a rank; DDR3 has none, which is one.
    pub bank_groups: u64,
    /// Banks of a group.
    pub banks: u64,
    /// Rows of a bank.
    pub rows: u64,
    /// Bytes of a row, all devices of the rank together.
    pub row_bytes: u64,
    /// Bytes of a burst: a power of two.
    pub burst_bytes: u64,
}

/// A DDR memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DdrConfig {
    /// Channels, ranks, banks.
    pub organisation: Organisation,
    /// JEDEC's parameters.
    pub timing: Timing,
    /// The core's clock beside the memory's.
    pub ratio: ClockRatio,
    /// Which parts of an address name what.
    pub mapping: Mapping,
    /// Which burst is served next.
    pub scheduler: Scheduler,
    /// Bursts to be read that a channel holds.
    pub read_queue: u64,
    /// Bursts to be written that a channel holds.
    pub write_queue: u64,
    /// With so many writes waiting, they go before reads,
    pub write_high: u64,
    /// until so many are left.
    pub write_low: u64,
}

impl DdrConfig {
    /// DDR3-1600: one rank of eight devices of 4 Gbit on each channel, 4 GiB.
    ///
    /// Delta/ECC, Table 1, has four channels beside a core of 3200 MHz.
    ///
    /// # Errors
    /// A number is impossible; the parameter is named.
    pub fn ddr3_1600(channels: u64, core_mhz: u64) -> Result<Self, ConfigError> {
        let organisation = Organisation {
            channels,
            ranks: 1,
            bank_groups: 1,
            banks: 8,
            rows: 1 << 16,
            row_bytes: 8192,
            burst_bytes: 64,
        };
        Self::new(
            organisation,
            Timing::DDR3_1600K,
            ClockRatio::new(core_mhz, Standard::Ddr3_1600.memory_mhz())?,
        )
    }

    /// DDR4-2400: one rank of eight devices of 8 Gbit on each channel, 8 GiB.
    ///
    /// # Errors
    /// A number is impossible; the parameter is named.
    pub fn ddr4_2400(channels: u64, core_mhz: u64) -> Result<Self, ConfigError> {
        let organisation = Organisation {
            channels,
            ranks: 1,
            bank_groups: 4,
            banks: 4,
            rows: 1 << 16,
            row_bytes: 8192,
            burst_bytes: 64,
        };
        Self::new(
            organisation,
            Timing::DDR4_2400R,
            ClockRatio::new(core_mhz, Standard::Ddr4_2400.memory_mhz())?,
        )
    }

    /// With queues of 32 bursts, writes drained from 24 down to 8, FR-FCFS.
    fn new(
        organisation: Organisation,
        timing: Timing,
        ratio: ClockRatio,
    ) -> Result<Self, ConfigError> {
        let config = DdrConfig {
            organisation,
            timing,
            ratio,
            mapping: Mapping::OPEN_ROW,
            scheduler: Scheduler::FR_FCFS,
            read_queue: 32,
            write_queue: 32,
            write_high: 24,
            write_low: 8,
        };
        config.check()?;
        Ok(config)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Organisation { channels, ranks, bank_groups, banks, rows, row_bytes, burst_bytes } =
            self.organisation;
        within("channels", channels, 1, 64)?;
        within("ranks", ranks, 1, 16)?;
        within("bank_groups", bank_groups, 1, 16)?;
        within("banks", banks, 1, 64)?;
        within("rows", rows, 1, 1 << 24)?;
        within("burst_bytes", burst_bytes, 1, 4096)?;
        power_of_two("burst_bytes", burst_bytes)?;
        within("row_bytes", row_bytes, burst_bytes, 1 << 20)?;
        power_of_two("row_bytes", row_bytes)?;
        within("read_queue", self.read_queue, 1, 4096)?;
        within("write_queue", self.write_queue, 1, 4096)?;
        within("write_high", self.write_high, 1, self.write_queue)?;
        within("write_low", self.write_low, 0, self.write_high - 1)?;
        self.scheduler.check()?;
        self.mapping.check()?;
        self.timing.check()
    }

    /// How many bursts in this direction a channel holds.
    pub(super) fn queued(&self, access: Access) -> u64 {
        match access {
            Access::Read => self.read_queue,
            Access::Write => self.write_queue,
        }
    }

    /// Where a burst is. Addresses beyond the capacity wrap.
    pub(super) fn location(&self, burst: u64) -> DdrLocation {
        self.mapping.location(&self.organisation, burst)
    }
}

/// A standard and speed of DDR memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standard {
    /// DDR3 at 1600 million transfers a second.
    #[default]
    Ddr3_1600,
    /// DDR4 at 2400 million transfers a second.
    Ddr4_2400,
}

impl Standard {
    /// How configurations call them.
    pub const NAMES: [&'static str; 2] = ["ddr3-1600", "ddr4-2400"];

    /// By its name; the first for any other.
    #[must_use]
    pub fn of_name(name: &str) -> Standard {
        if name == Self::NAMES[1] { Standard::Ddr4_2400 } else { Standard::Ddr3_1600 }
    }

    /// The clock of the memory: half of the transfers.
    #[must_use]
    pub const fn memory_mhz(self) -> u64 {
        match self {
            Standard::Ddr3_1600 => 800,
            Standard::Ddr4_2400 => 1200,
        }
    }
}

/// Cycles of the core for clocks of the memory, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRatio {
    core_mhz: u64,
    memory_mhz: u64,
}

impl ClockRatio {
    /// From both frequencies. A DDR memory's clock is half of its transfers: 800 for DDR3-1600.
    ///
    /// # Errors
    /// One is 0 or above 100 GHz; the parameter is named.
    pub fn new(core_mhz: u64, memory_mhz: u64) -> Result<Self, ConfigError> {
        within("core_mhz", core_mhz, 1, 100_000)?;
        within("memory_mhz", memory_mhz, 1, 100_000)?;
        Ok(ClockRatio { core_mhz, memory_mhz })
    }

    /// The first cycle of the core that begins no earlier than this clock.
    #[must_use]
    pub fn cycle_of(&self, clock: Clock) -> Cycle {
        scale(clock, self.core_mhz, self.memory_mhz)
    }

    /// The first clock that begins no earlier than this cycle of the core.
    #[must_use]
    pub fn clock_from(&self, cycle: Cycle) -> Clock {
        scale(cycle, self.memory_mhz, self.core_mhz)
    }
}

/// `number` * `by` / `of`, rounded up; the largest number if that is too large.
fn scale(number: u64, by: u64, of: u64) -> u64 {
    if let Some(product) = number.checked_mul(by) {
        return product.div_ceil(of);
    }
    let scaled = (u128::from(number) * u128::from(by)).div_ceil(u128::from(of));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
