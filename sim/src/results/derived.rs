//! Ratios of counters. They are computed when everything is counted, from whole regions, and never summed.

use serde_json::{Value, json};

use super::tree::{count, part};

/// The ratios of a region or a sample of a machine with this configuration; null where there is nothing to
/// divide by.
#[must_use]
pub fn of(statistics: &Value, config: &Value) -> Value {
    let count = |path: &str| count(statistics, path);
    let (cycles, instructions) = (count("cycles"), count("instructions"));
    let metadata_bytes =
        count("memory.metadata_reads.bytes") + count("memory.metadata_writes.bytes");
    let data_bytes = count("memory.data_reads.bytes") + count("memory.data_writes.bytes");
    let lines = [count("last_level.data_line_cycles"), count("last_level.metadata_line_cycles")];
    let last = if statistics["l3"].is_null() { "l2" } else { "l3" };
    let lookups =
        |of: &str| ["read", "write"].map(|a| count(&format!("{last}.cache.data.{a}_{of}")));
    let (hits, misses) =
        (lookups("hits").iter().sum::<u64>(), lookups("misses").iter().sum::<u64>());
    json!({
        "ipc": ratio(instructions, cycles),
        "last_level_misses_per_kilo_instruction": times(1000, ratio(count("last_level.reads"), instructions)),
        "last_level_miss_rate": ratio(misses, hits + misses),
        "last_level_metadata_share": ratio(lines[1], lines[0] + lines[1]),
        "last_level_read_latency_cycles": ratio(
            count("last_level.read_latency.sum_cycles"),
            count("last_level.read_latency.requests"),
        ),
        "bus_bytes_per_kilo_instruction": times(1000, ratio(data_bytes + metadata_bytes, instructions)),
        "bus_metadata_share": ratio(metadata_bytes, data_bytes + metadata_bytes),
        "bus_busy_share": bus_busy_share(statistics, config),
        "reencrypted_blocks_per_giga_cycle": per_giga_cycle(statistics, "protection.reencrypted_blocks"),
        "overflows_per_giga_cycle": per_giga_cycle(statistics, "protection.overflows"),
    })
}

/// How often something of a protection unit happened in 10^9 cycles (Delta/ECC, Table 2).
fn per_giga_cycle(statistics: &Value, path: &str) -> Option<f64> {
    let happened = part(statistics, path)?.as_u64()?;
    ratio(happened, count(statistics, "cycles")).map(|each| each * 1e9)
}

/// In which share of its time the bus moved something: of the region's cycles, or of the clocks of all channels
/// in these cycles. Null for a flat bus that is never in the way. What is booked ahead counts when it is booked, so
/// that a short region of a full bus can come to a little more than 1.
fn bus_busy_share(statistics: &Value, config: &Value) -> Option<f64> {
    let (cycles, memory) = (count(statistics, "cycles"), &config["memory"]);
    if memory["kind"] == "ddr" {
        let memory_mhz = if memory["ddr"]["standard"] == "ddr4-2400" { 1200.0 } else { 800.0 };
        let core_mhz = memory["ddr"]["core_mhz"].as_u64()? as f64;
        let channels = memory["ddr"]["channels"].as_u64()? as f64;
        let clocks = cycles as f64 * memory_mhz / core_mhz * channels;
        return (clocks > 0.0)
            .then(|| count(statistics, "memory.ddr_bus_busy_clocks") as f64 / clocks);
    }
    if memory["flat"]["chunk_cycles"] == 0 {
        return None;
    }
    ratio(count(statistics, "memory.flat_bus_busy_cycles"), cycles)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn times(factor: u32, ratio: Option<f64>) -> Option<f64> {
    ratio.map(|ratio| ratio * f64::from(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let derived = of(&statistics, &flat);
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
        assert_eq!(of(&statistics, &ddr)["bus_busy_share"].as_f64(), Some(0.1));
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let derived = of(&json!({}), &json!({}));
        let members = derived.as_object().expect("an object");
        assert!(members.values().all(Value::is_null), "{derived}");
    }
}
