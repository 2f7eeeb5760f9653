//! The memory that a configuration describes.

use super::error::ConfigurationError;
use super::resolved::Resolved;
use crate::machine::ConfigError;
use crate::machine::memory::any::AnyMemory;
use crate::machine::memory::ddr::config::{DdrConfig, Standard};
use crate::machine::memory::ddr::mapping::Mapping;
use crate::machine::memory::ddr::scheduler::Scheduler;
use crate::machine::memory::flat_bus::FlatBusConfig;
use crate::machine::memory::{Ddr, FlatBus};
use crate::machine::timeline::Timeline;

/// Builds it.
///
/// # Errors
/// A number is impossible, or does not go with another; the key is named.
pub fn memory(config: &Resolved) -> Result<AnyMemory, ConfigurationError> {
    let built = if config.text("memory.kind") == "ddr" {
        ddr(config).and_then(Ddr::new).map(AnyMemory::from)
    } else {
        FlatBus::new(flat(config)).map(AnyMemory::from)
    };
    let section = if config.text("memory.kind") == "ddr" { "memory.ddr" } else { "memory.flat" };
    built
        .map_err(|refusal| ConfigurationError::Refused { refusal: refusal.within_section(section) })
}

/// Builds it with its controller, for a machine.
///
/// # Errors
/// As [`memory`].
pub fn timeline(config: &Resolved) -> Result<Timeline, ConfigurationError> {
    Ok(Timeline::behind(memory(config)?, config.number("memory.controller_cycles")))
}

fn flat(config: &Resolved) -> FlatBusConfig {
    let number = |key: &str| config.number(&format!("memory.flat.{key}"));
    FlatBusConfig {
        first_chunk_cycles: number("first_chunk_cycles"),
        // The key takes no more than 4096.
        bus_bytes: number("bus_bytes") as u32,
        chunk_cycles: number("chunk_cycles"),
    }
}

fn ddr(config: &Resolved) -> Result<DdrConfig, ConfigError> {
    let number = |key: &str| config.number(&format!("memory.ddr.{key}"));
    let (channels, core_mhz) = (number("channels"), number("core_mhz"));
    let mut ddr = match Standard::of_name(config.text("memory.ddr.standard")) {
        Standard::Ddr3_1600 => DdrConfig::ddr3_1600(channels, core_mhz)?,
        Standard::Ddr4_2400 => DdrConfig::ddr4_2400(channels, core_mhz)?,
    };
    ddr.organisation.ranks = number("ranks");
    ddr.mapping = match config.text("memory.ddr.mapping") {
        "spread" => Mapping::SPREAD,
        _ => Mapping::OPEN_ROW,
    };
    ddr.scheduler = match config.text("memory.ddr.scheduler") {
        "fcfs" => Scheduler::Fcfs,
        _ => Scheduler::FR_FCFS,
    };
    ddr.read_queue = number("read_queue");
    ddr.write_queue = number("write_queue");
    ddr.write_high = number("write_high");
    ddr.write_low = number("write_low");
    Ok(ddr)
}
