//! Ratios of counters. They are computed when everything is counted, from whole regions, and never
//! summed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::interval::Ratio;
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
        let value = |(times, ratio): (f64, Ratio)| ratio.value().map(|value| value * times);
        Derived::from_values(ratios(statistics, bus).map(|ratio| ratio.and_then(value)))
    }

    /// From values in the order of [`NAMES`].
    pub(super) fn from_values(values: [Option<f64>; NAMES.len()]) -> Derived {
        Derived {
            ipc: values[0],
            last_level_misses_per_kilo_instruction: values[1],
            last_level_miss_rate: values[2],
            last_level_metadata_share: values[3],
            last_level_read_latency_cycles: values[4],
            bus_bytes_per_kilo_instruction: values[5],
            bus_metadata_share: values[6],
            bus_busy_share: values[7],
            reencrypted_blocks_per_giga_cycle: values[8],
            overflows_per_giga_cycle: values[9],
        }
    }

    /// Of the file's tree of them; none at all if it is no such tree.
    #[must_use]
    pub fn read(tree: &Value) -> Derived {
        Derived::deserialize(tree).unwrap_or_default()
    }
}

/// The fields of [`Derived`].
pub(super) const NAMES: [&str; 10] = [
    "ipc",
    "last_level_misses_per_kilo_instruction",
    "last_level_miss_rate",
    "last_level_metadata_share",
    "last_level_read_latency_cycles",
    "bus_bytes_per_kilo_instruction",
    "bus_metadata_share",
    "bus_busy_share",
    "reencrypted_blocks_per_giga_cycle",
    "overflows_per_giga_cycle",
];

/// One of the ratios by its name in [`Derived`]: what is divided by what, and how many times that it
/// is; none where a machine has no such thing.
#[must_use]
pub fn ratio(name: &str, statistics: &Statistics, bus: &BusTime) -> Option<(f64, Ratio)> {
    let at = NAMES.iter().position(|known| *known == name)?;
    ratios(statistics, bus)[at]
}

/// What is divided by what for each of [`NAMES`], and how many times that it is; none where a
/// machine has no such thing.
pub(super) fn ratios(
    statistics: &Statistics,
    bus: &BusTime,
) -> [Option<(f64, Ratio)>; NAMES.len()] {
    let machine = &statistics.machine;
    let (cycles, instructions) = (machine.cycles, machine.instructions);
    let memory = &machine.memory;
    let metadata_bytes = memory.metadata_reads.bytes + memory.metadata_writes.bytes;
    let bytes = memory.data_reads.bytes + memory.data_writes.bytes + metadata_bytes;
    let last = &machine.last_level;
    let lines = last.data_line_cycles + last.metadata_line_cycles;
    let look_ups = machine.last_level_cache().of(Content::Data);
    let times = |times: f64, part: u64, whole: u64| {
        Some((times, Ratio { part: part as f64, whole: whole as f64 }))
    };
    let per_kilo = |count| times(1000.0, count, instructions);
    let protection = statistics.protection.as_ref();
    [
        times(1.0, instructions, cycles),
        per_kilo(last.reads),
        times(1.0, look_ups.misses(), look_ups.lookups()),
        times(1.0, last.metadata_line_cycles, lines),
        times(1.0, last.read_latency.sum_cycles, last.read_latency.requests),
        per_kilo(bytes),
        times(1.0, metadata_bytes, bytes),
        bus.busy_share(statistics).map(|ratio| (1.0, ratio)),
        protection.and_then(|unit| times(1e9, unit.reencrypted_blocks, cycles)),
        protection.and_then(|unit| times(1e9, unit.overflows, cycles)),
    ]
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

    fn busy_share(&self, statistics: &Statistics) -> Option<Ratio> {
        let (cycles, memory) = (statistics.machine.cycles as f64, &statistics.machine.memory);
        match *self {
            BusTime::Unlimited => None,
            BusTime::Flat => {
                Some(Ratio { part: memory.flat_bus_busy_cycles as f64, whole: cycles })
            }
            BusTime::Ddr { memory_mhz, core_mhz, channels } => {
                let clocks = cycles * memory_mhz as f64 / core_mhz as f64 * channels as f64;
                Some(Ratio { part: memory.ddr_bus_busy_clocks as f64, whole: clocks })
            }
        }
    }
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
    fn values_are_in_the_order_of_their_names() {
        let mut number = 0;
        let derived = Derived::from_values(NAMES.map(|_| {
            number += 1;
            Some(f64::from(number))
        }));
        let tree = serde_json::to_value(derived).expect("numbers");
        assert_eq!(tree.as_object().map(serde_json::Map::len), Some(NAMES.len()));
        for (at, name) in NAMES.iter().enumerate() {
            assert_eq!(tree[name].as_f64(), Some(at as f64 + 1.0), "{name}");
        }
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        for bus in [BusTime::of(&json!({})), BusTime::Flat] {
            let derived = Derived::of(&Statistics::default(), &bus);
            assert_eq!(derived, Derived::default());
        }
    }
}
