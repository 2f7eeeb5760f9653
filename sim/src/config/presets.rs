//! The machines of the papers, compiled in.

use super::error::ConfigurationError;
use super::layer::Layer;
use casemate_schemes::nearest::nearest;

/// A machine by name. It says every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// How users call it.
    pub name: &'static str,
    /// Whose machine it is.
    pub meaning: &'static str,
    /// The TOML file, with a source for every value.
    pub text: &'static str,
}

/// All of them; the first is taken where none is named.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "aise-bmt",
        meaning: "AISE/BMT section 6: SESC, 3-issue at 2 GHz, 1 MB L2, memory at 200 cycles",
        text: include_str!("../../../papers/aise-bmt/config.toml"),
    },
    Preset {
        name: "otp-snc",
        meaning: "OTP/SNC section 5: SimpleScalar, 4-issue, 256 KB L2 with 128-byte lines, memory at 100 cycles",
        text: include_str!("../../../papers/otp-snc/config.toml"),
    },
    Preset {
        name: "lhash",
        meaning: "LHash Table 2: SimpleScalar, 4-issue at 1 GHz, 1 MB L2, a bus of 1.6 GB/s",
        text: include_str!("../../../papers/lhash/config.toml"),
    },
    Preset {
        name: "delta-ecc",
        meaning: "Delta/ECC Table 1: MARSSx86 and DRAMSim2, four cores at 3.2 GHz, 10 MB L3, DDR3-1600",
        text: include_str!("../../../papers/delta-ecc/config.toml"),
    },
    Preset {
        name: "modern",
        meaning: "no paper's: 8-wide at 4 GHz, 2 MB L2, DDR4-2400 bank by bank",
        text: include_str!("../../../papers/modern/config.toml"),
    },
];

impl Preset {
    /// The preset of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn of_name(name: &str) -> Result<Self, ConfigurationError> {
        let names = || PRESETS.iter().map(|preset| preset.name);
        let found = PRESETS.iter().find(|preset| preset.name == name);
        found.copied().ok_or_else(|| ConfigurationError::UnknownPreset {
            name: name.to_owned(),
            nearest: nearest(name, names()).map(str::to_owned),
            known: names().collect::<Vec<_>>().join(", "),
        })
    }

    /// What it says.
    ///
    /// # Errors
    /// None of those that are compiled in (a test reads them all).
    pub fn layer(&self) -> Result<Layer, ConfigurationError> {
        Layer::read(&format!("preset {}", self.name), self.text)
    }
}
