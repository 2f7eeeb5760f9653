//! Ratios of counters. They are computed when everything is counted, from whole regions, and never
//! summed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::statistics::Statistics;
use crate::machine::Content;
use crate::machine::memory::ddr::config::Standard;

/// The ratios of a region or a sample; `None` where there is nothing to divide by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Derived {
    /// Instructions in a cycle, of all cores together.
    pub ipc: Option<f64>,
    /// Lines that the last level asked of memory, for 1000 instructions.
    pub last_level_misses_per_kilo_instruction: Option<f64>,
    /// Of the last level's look-ups for data, those that missed.
    pub last_level_miss_rate: Option<f64>,
    /// Of the lines in the last level, those with metadata, averaged over cycles.
    pub last_level_metadata_share: Option<f64>,
    /// Cycles from asking memory for a line until it can be used.
    pub last_level_read_latency_cycles: Option<f64>,
    /// Bytes over the bus for 1000 instructions.
    pub bus_bytes_per_kilo_instruction: Option<f64>,
    /// Of the bytes over the bus, those of metadata.
    pub bus_metadata_share: Option<f64>,
    /// Of the bus's time, that in which it moved something. What is booked ahead counts when it is
    /// booked, so that a short region of a full bus can come to a little more than 1.
    pub bus_busy_share: Option<f64>,
    /// Blocks that a protection unit encrypted anew, in 10^9 cycles (Delta/ECC, Table 2).
    pub reencrypted_blocks_per_giga_cycle: Option<f64>,
    /// Counters that overflowed, in 10^9 cycles.
    pub overflows_per_giga_cycle: Option<f64>,
}

impl Derived {
    /// From counters of a machine with this bus.
    #[must_use]
    pub fn of(statistics: &Statistics, bus: &BusTime) -> Derived {
        let machine = &statistics.machine;
        let (cycles, instructions) = (machine.cycles, machine.instructions);
        let memory = &machine.memory;
        let metadata_bytes = memory.metadata_reads.bytes + memory.metadata_writes.bytes;
        let bytes = memory.data_reads.bytes + memory.data_writes.bytes + metadata_bytes;
        let last = &machine.last_level;
        let lines = last.data_line_cycles + last.metadata_line_cycles;
        let look_ups = machine.last_level_cache().of(Content::Data);
        let per_kilo = |count| ratio(count, instructions).map(|each| each * 1000.0);
        let per_giga = |count| ratio(count, cycles).map(|each| each * 1e9);
        let protection = statistics.protection.as_ref();
        Derived {
            ipc: ratio(instructions, cycles),
            last_level_misses_per_kilo_instruction: per_kilo(last.reads),
            last_level_miss_rate: ratio(look_ups.misses(), look_ups.lookups()),
            last_level_metadata_share: ratio(last.metadata_line_cycles, lines),
            last_level_read_latency_cycles: ratio(
                last.read_latency.sum_cycles,
                last.read_latency.requests,
            ),
            bus_bytes_per_kilo_instruction: per_kilo(bytes),
            bus_metadata_share: ratio(metadata_bytes, bytes),
            bus_busy_share: bus.busy_share(statistics),
            reencrypted_blocks_per_giga_cycle: protection
                .and_then(|unit| per_giga(unit.reencrypted_blocks)),
            overflows_per_giga_cycle: protection.and_then(|unit| per_giga(unit.overflows)),
        }
    }

    /// Of the file's tree of them; none at all if it is no such tree.
    #[must_use]
    pub fn read(tree: &Value) -> Derived {
        Derived::deserialize(tree).unwrap_or_default()
    }
}

/// How much time the bus of a memory has in a cycle of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusTime {
    /// It delays nothing.
    Unlimited,
    /// A cycle.
    Flat,
    /// Clocks of its own, on each channel.
    Ddr {
        /// The memory's clock.
        memory_mhz: u64,
        /// The core's.
        core_mhz: u64,
        /// Data buses beside each other.
        channels: u64,
    },
}

/// The part of a configuration that says it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Configuration {
    memory: Memory,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Memory {
    kind: String,
    flat: Flat,
    ddr: Ddr,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Flat {
    chunk_cycles: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ddr {
    standard: String,
    core_mhz: u64,
    channels: u64,
}

impl BusTime {
    /// As a file's configuration has it.
    #[must_use]
    pub fn of(config: &Value) -> BusTime {
        let Memory { kind, flat, ddr } =
            Configuration::deserialize(config).unwrap_or_default().memory;
        if kind == "ddr" {
            let Ddr { standard, core_mhz, channels } = ddr;
            let memory_mhz = Standard::of_name(&standard).memory_mhz();
            return BusTime::Ddr { memory_mhz, core_mhz, channels };
        }
        if flat.chunk_cycles == 0 { BusTime::Unlimited } else { BusTime::Flat }
    }

    fn busy_share(&self, statistics: &Statistics) -> Option<f64> {
        let (cycles, memory) = (statistics.machine.cycles, &statistics.machine.memory);
        match *self {
            BusTime::Unlimited => None,
            BusTime::Flat => ratio(memory.flat_bus_busy_cycles, cycles),
            BusTime::Ddr { memory_mhz, core_mhz, channels } => {
                let clocks = cycles as f64 * memory_mhz as f64 / core_mhz as f64 * channels as f64;
                (clocks > 0.0).then(|| memory.ddr_bus_busy_clocks as f64 / clocks)
            }
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ratios_are_those_of_the_counters() {
        let statistics = json!({
            "cycles": 1000, "instructions": 500, "l3": null,
            "l2": {"cache": {"data": {"read_hits": 30, "read_misses": 8, "write_hits": 0, "write_misses": 2}}},
            "last_level": {
                "reads": 10, "data_line_cycles": 3, "metadata_line_cycles": 1,
                "read_latency": {"requests": 10, "sum_cycles": 2500},
            },
            "memory": {
                "data_reads": {"bytes": 640}, "data_writes": {"bytes": 128},
                "metadata_reads": {"bytes": 192}, "metadata_writes": {"bytes": 64},
                "flat_bus_busy_cycles": 250, "ddr_bus_busy_clocks": 40,
            },
            "protection": {"reencrypted_blocks": 64, "overflows": 1},
        });
        let flat = json!({"memory": {"kind": "flat", "flat": {"chunk_cycles": 5}}});
        let statistics = Statistics::of(&statistics).expect("counters");
        let of = |config: &Value| {
            let derived = Derived::of(&statistics, &BusTime::of(config));
            serde_json::to_value(derived).expect("numbers")
        };
        let derived = of(&flat);
        for (name, value) in [
            ("ipc", 0.5),
            ("last_level_misses_per_kilo_instruction", 20.0),
            ("last_level_miss_rate", 0.25),
            ("last_level_metadata_share", 0.25),
            ("last_level_read_latency_cycles", 250.0),
            ("bus_bytes_per_kilo_instruction", 2048.0),
            ("bus_metadata_share", 0.25),
            ("bus_busy_share", 0.25),
            ("reencrypted_blocks_per_giga_cycle", 64e6),
            ("overflows_per_giga_cycle", 1e6),
        ] {
            assert_eq!(derived[name].as_f64(), Some(value), "{name}");
        }
        // 1000 cycles at 4000 MHz are 200 clocks at 800 MHz, on each of two channels.
        let ddr = json!({"standard": "ddr3-1600", "core_mhz": 4000, "channels": 2});
        let ddr = json!({"memory": {"kind": "ddr", "ddr": ddr}});
        assert_eq!(of(&ddr)["bus_busy_share"].as_f64(), Some(0.1));
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        for bus in [BusTime::of(&json!({})), BusTime::Flat] {
            let derived = Derived::of(&Statistics::default(), &bus);
            assert_eq!(derived, Derived::default());
        }
    }
}
