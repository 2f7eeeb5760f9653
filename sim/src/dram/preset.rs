//! Memories by name: JEDEC's, and those that the reference was run with.

use super::energy::Currents;
use crate::machine::ConfigError;
use crate::machine::error::within;
use crate::machine::memory::ddr::mapping::Mapping;
use crate::machine::memory::ddr::{Clock, ClockRatio, DdrConfig, Organisation, Timing};
use casemate_schemes::nearest::meant;

/// A memory, its devices, and the controller in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, and where its values come from.
    pub meaning: &'static str,
    /// One clock, in ns.
    pub clock_ns: f64,
    /// Clocks that the controller adds to every answer.
    pub controller_clocks: Clock,
    /// What its devices draw.
    pub currents: Currents,
    organisation: Organisation,
    timing: Timing,
    mapping: Mapping,
    queues: Queues,
}

/// Bursts that a channel holds, and when it turns to its writes.
#[derive(Clone, Copy, Debug)]
struct Queues {
    reads: u64,
    writes: u64,
    write_high: u64,
    write_low: u64,
}

/// 32 reads and 32 writes; writes are drained from 24 down to 8.
const QUEUES: Queues = Queues { reads: 32, writes: 32, write_high: 24, write_low: 8 };

/// Clocks of a controller at most.
const MOST_CONTROLLER_CLOCKS: Clock = 1 << 20;

/// What [`Preset::set`] takes.
pub const KEYS: [&str; 25] = [
    "channels",
    "ranks",
    "read_queue",
    "write_queue",
    "write_high",
    "write_low",
    "controller",
    "burst",
    "cl",
    "cwl",
    "t_rcd",
    "t_rp",
    "t_ras",
    "t_rrd_s",
    "t_rrd_l",
    "t_faw",
    "t_ccd_s",
    "t_ccd_l",
    "t_wtr_s",
    "t_wtr_l",
    "t_wr",
    "t_rtp",
    "t_refi",
    "t_rfc",
    "turnaround",
];

/// A parameter that cannot be set so.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetError {
    /// No such key.
    #[error("there is no {key}{}", meant(key, KEYS))]
    Unknown {
        /// The key.
        key: String,
    },
    /// No number.
    #[error("{value:?} is no whole number")]
    NoNumber {
        /// The value.
        value: String,
    },
}

/// All of them.
pub const ALL: [Preset; 4] = [DDR3_1600, DDR4_2400, DRAMSIM3_DDR3_1600, DRAMSIM3_DDR4_2400];

impl Preset {
    /// The preset of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Preset> {
        ALL.iter().find(|preset| preset.name == name)
    }

    /// Changes one of [`KEYS`]; [`Preset::config`] checks the value.
    ///
    /// # Errors
    /// There is no such key, or the value is no number.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        let field = self.field(key).ok_or_else(|| SetError::Unknown { key: key.to_owned() })?;
        *field = value.parse().map_err(|_| SetError::NoNumber { value: value.to_owned() })?;
        Ok(())
    }

    fn field(&mut self, key: &str) -> Option<&mut u64> {
        let timing = &mut self.timing;
        Some(match key {
            "channels" => &mut self.organisation.channels,
            "ranks" => &mut self.organisation.ranks,
            "read_queue" => &mut self.queues.reads,
            "write_queue" => &mut self.queues.writes,
            "write_high" => &mut self.queues.write_high,
            "write_low" => &mut self.queues.write_low,
            "controller" => &mut self.controller_clocks,
            "burst" => &mut timing.burst,
            "cl" => &mut timing.cl,
            "cwl" => &mut timing.cwl,
            "t_rcd" => &mut timing.t_rcd,
            "t_rp" => &mut timing.t_rp,
            "t_ras" => &mut timing.t_ras,
            "t_rrd_s" => &mut timing.t_rrd_s,
            "t_rrd_l" => &mut timing.t_rrd_l,
            "t_faw" => &mut timing.t_faw,
            "t_ccd_s" => &mut timing.t_ccd_s,
            "t_ccd_l" => &mut timing.t_ccd_l,
            "t_wtr_s" => &mut timing.t_wtr_s,
            "t_wtr_l" => &mut timing.t_wtr_l,
            "t_wr" => &mut timing.t_wr,
            "t_rtp" => &mut timing.t_rtp,
            "t_refi" => &mut timing.t_refi,
            "t_rfc" => &mut timing.t_rfc,
            "turnaround" => &mut timing.turnaround,
            _ => return None,
        })
    }

    /// The memory beside a core with the same clock, so that cycles are clocks.
    ///
    /// # Errors
    /// A number is impossible; the parameter is named.
    pub fn config(&self) -> Result<DdrConfig, ConfigError> {
        let mut config = DdrConfig::ddr4_2400(1, 1200)?;
        config.organisation = self.organisation;
        config.timing = self.timing;
        config.mapping = self.mapping;
        config.read_queue = self.queues.reads;
        config.write_queue = self.queues.writes;
        config.write_high = self.queues.write_high;
        config.write_low = self.queues.write_low;
        within("controller", self.controller_clocks, 0, MOST_CONTROLLER_CLOCKS)?;
        config.check()?;
        config.ratio = ClockRatio::new(1, 1)?;
        Ok(config)
    }
}

/// One rank of eight DDR3 devices of 4 Gbit with 8 data lines.
const DDR3_RANK: Organisation = Organisation {
    channels: 1,
    ranks: 1,
    bank_groups: 1,
    banks: 8,
    rows: 1 << 16,
    row_bytes: 8192,
    burst_bytes: 64,
};

/// One rank of eight DDR4 devices of 8 Gbit with 8 data lines.
const DDR4_RANK: Organisation = Organisation { bank_groups: 4, banks: 4, ..DDR3_RANK };

/// Of a DDR3-1600 device: DRAMsim3, `configs/DDR3_4Gb_x8_1600.ini`.
const DDR3_CURRENTS: Currents = Currents {
    vdd: 1.35,
    idd0: 55.0,
    idd2n: 32.0,
    idd3n: 38.0,
    idd4r: 157.0,
    idd4w: 125.0,
    idd5b: 235.0,
    devices: 8.0,
};

/// Of a DDR4-2400 device: DRAMsim3, `configs/DDR4_8Gb_x8_2400.ini`.
const DDR4_CURRENTS: Currents = Currents {
    vdd: 1.2,
    idd0: 48.0,
    idd2n: 34.0,
    idd3n: 43.0,
    idd4r: 135.0,
    idd4w: 123.0,
    idd5b: 250.0,
    devices: 8.0,
};

const DDR3_1600: Preset = Preset {
    name: "ddr3-1600",
    meaning: "DDR3-1600K, one rank (JESD79-3F), no time in the controller",
    clock_ns: 1.25,
    controller_clocks: 0,
    currents: DDR3_CURRENTS,
    organisation: DDR3_RANK,
    timing: Timing::DDR3_1600K,
    mapping: Mapping::OPEN_ROW,
    queues: QUEUES,
};

const DDR4_2400: Preset = Preset {
    name: "ddr4-2400",
    meaning: "DDR4-2400R, one rank (JESD79-4), no time in the controller",
    clock_ns: 0.833,
    controller_clocks: 0,
    currents: DDR4_CURRENTS,
    organisation: DDR4_RANK,
    timing: Timing::DDR4_2400R,
    mapping: Mapping::OPEN_ROW,
    queues: QUEUES,
};

/// `configs/DDR3_4Gb_x8_1600.ini`. Its channel of 8 GiB makes two ranks of these devices. Its
/// refresh interval is spelt `REFI`, which the reader does not know, so tREFI is that reader's
/// default of 7800 clocks.
const DRAMSIM3_DDR3_1600: Preset = Preset {
    name: "dramsim3-ddr3-1600",
    meaning: "DRAMsim3's DDR3_4Gb_x8_1600 as it runs: two ranks, tREFI 7800, a clock in the controller",
    clock_ns: 1.25,
    controller_clocks: 1,
    currents: DDR3_CURRENTS,
    organisation: Organisation { ranks: 2, ..DDR3_RANK },
    timing: Timing { t_refi: 7800, turnaround: 1, ..Timing::DDR3_1600K },
    mapping: Mapping::WHOLE_ROWS,
    queues: QUEUES,
};

/// `configs/DDR4_8Gb_x8_2400.ini`. Its channel of 16 GiB makes two ranks of these devices.
const DRAMSIM3_DDR4_2400: Preset = Preset {
    name: "dramsim3-ddr4-2400",
    meaning: "DRAMsim3's DDR4_8Gb_x8_2400 as it runs: two ranks, 17-17-17, a clock in the controller",
    clock_ns: 0.83,
    controller_clocks: 1,
    currents: DDR4_CURRENTS,
    organisation: Organisation { ranks: 2, ..DDR4_RANK },
    timing: Timing {
        cl: 17,
        t_rcd: 17,
        t_rp: 17,
        t_refi: 9360,
        t_rfc: 420,
        turnaround: 1,
        ..Timing::DDR4_2400R
    },
    mapping: Mapping::WHOLE_ROWS,
    queues: QUEUES,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_changes_something_and_no_two_the_same() {
        for key in KEYS {
            for other in KEYS {
                let mut preset = DDR4_2400;
                preset.set(key, "77").expect("it is a key");
                let seen = *preset.field(other).expect("it is a key");
                assert_eq!(seen == 77, key == other, "{key}, {other}");
            }
        }
    }

    #[test]
    fn other_keys_and_values_are_refused() {
        let mut preset = DDR4_2400;
        let refusal = preset.set("t_rc", "3").expect_err("no such key").to_string();
        assert_eq!(refusal, "there is no t_rc (did you mean t_rcd?)");
        assert!(preset.set("cl", "-1").is_err() && preset.set("cl", "").is_err());
        preset.set("t_refi", "0").expect("it is a number");
        assert!(preset.config().is_err());
    }

    #[test]
    fn every_preset_is_possible() {
        for preset in ALL {
            assert!(preset.config().is_ok(), "{preset:?}");
        }
    }
}
