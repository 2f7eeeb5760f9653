//! What DRAMsim3 answered to the same streams: the figures of `sim/reference/dramsim3.csv`.
//!
//! It was run with its own configurations `DDR4_8Gb_x8_2400` and `DDR3_4Gb_x8_1600`. Latencies are
//! clocks from the request's acceptance to the last data. Its reader of streams sends the last
//! request twice.

use crate::machine::memory::ddr::Clock;

const FIGURES: &str = include_str!("../../reference/dramsim3.csv");

/// One run of the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The preset that is the same memory.
    pub preset: &'static str,
    /// The stream's name.
    pub stream: String,
    /// Reads that were served.
    pub reads: u64,
    /// Writes that were served.
    pub writes: u64,
    /// Mean latency of a read, in clocks.
    pub read_mean_clocks: f64,
    /// Half of the reads took no longer.
    pub read_p50_clocks: Clock,
    /// 95 of 100 took no longer.
    pub read_p95_clocks: Clock,
    /// 99 of 100 took no longer.
    pub read_p99_clocks: Clock,
    /// Reads from a row that was used before.
    pub read_row_hits: u64,
    /// Writes into one.
    pub write_row_hits: u64,
    /// Rows that were opened.
    pub activates: u64,
    /// Refreshes of a rank.
    pub refreshes: u64,
    /// Clocks that were simulated.
    pub clocks: Clock,
    /// What it calls pJ: mA times V times clocks, so pJ for a clock of 1 ns.
    pub energy_pj_at_1_ns: f64,
}

/// All runs, in the order of the file.
///
/// # Panics
/// The file in the binary is damaged.
#[must_use]
pub fn all() -> Vec<Reference> {
    FIGURES.lines().skip(1).map(|line| parse(line).expect("the file is well-formed")).collect()
}

fn parse(line: &str) -> Option<Reference> {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |at: usize| cells.get(at)?.parse::<u64>().ok();
    let fraction = |at: usize| cells.get(at)?.parse::<f64>().ok();
    let preset = match *cells.first()? {
        "DDR4_8Gb_x8_2400" => "dramsim3-ddr4-2400",
        "DDR3_4Gb_x8_1600" => "dramsim3-ddr3-1600",
        _ => return None,
    };
    Some(Reference {
        preset,
        stream: (*cells.get(1)?).to_owned(),
        reads: number(2)?,
        writes: number(3)?,
        read_mean_clocks: fraction(4)?,
        read_p50_clocks: number(5)?,
        read_p95_clocks: number(6)?,
        read_p99_clocks: number(7)?,
        read_row_hits: number(8)?,
        write_row_hits: number(9)?,
        activates: number(10)?,
        refreshes: number(11)?,
        clocks: number(12)?,
        energy_pj_at_1_ns: fraction(13)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::{preset::Preset, streams::Named};

    #[test]
    fn every_figure_is_of_a_stream_and_a_preset_that_exist() {
        let all = all();
        assert_eq!(all.len(), 16);
        for one in all {
            assert!(Named::find(&one.stream).is_some() && Preset::find(one.preset).is_some());
            // The last request counts twice.
            assert_eq!(one.reads + one.writes, 50_001 - u64::from(one.reads == 50_000), "{one:?}");
        }
    }
}
