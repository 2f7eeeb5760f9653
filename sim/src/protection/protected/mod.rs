//! A protection unit between the last-level cache and memory, of any size of line: how it is made.
//! In `unit` what it is and counts, in `backing` what the machine asks of it.

mod backing;
mod unit;

use casemate_core::Violation;
use casemate_schemes::choice::{UnknownScheme, named};
use casemate_schemes::primitives::MacKind;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::associative::Shape;
use casemate_schemes::unit::encryption::{ContextSwitch, FilledBy, SncShape};
use casemate_schemes::unit::scheme::{
    Capacity, EncryptionKind, IntegrityKind, SchemeError, UnitSize,
};

use super::config::{Enter, OnSwitch, ProtectionConfig};
use super::record::Event;
use super::statistics::ProtectionStatistics;
use crate::machine::backing::BLOCK_BYTES;
use crate::machine::cache::Evicted;
use crate::machine::error::ConfigError;
use crate::machine::timeline::Timeline;
use unit::Unit;

/// Why there is no such unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtectionError {
    /// A number is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The parts of the scheme do not go together, or not with so much memory.
    #[error("{0}")]
    Scheme(SchemeError),
    /// No scheme has this name.
    #[error(transparent)]
    NoSuchScheme(#[from] UnknownScheme),
}

/// The unit, over the memory of the timeline that it is lent.
pub struct Protected(InLines);

/// The unit by its lines: the engine has their size in types, the configuration in a value.
enum InLines {
    One(Box<Unit<64>>),
    Two(Box<Unit<128>>),
    Four(Box<Unit<256>>),
}

/// Calls the same method on whichever unit it is.
macro_rules! in_lines {
    ($protected:expr, $unit:ident => $call:expr) => {
        match &mut $protected.0 {
            $crate::protection::protected::InLines::One($unit) => $call,
            $crate::protection::protected::InLines::Two($unit) => $call,
            $crate::protection::protected::InLines::Four($unit) => $call,
        }
    };
}
use in_lines;

impl Protected {
    /// A unit for a scheme of this name.
    ///
    /// # Errors
    /// There is no such scheme; else as [`new`](Self::new).
    pub fn named(
        scheme: &str,
        config: &ProtectionConfig,
        timeline: &mut Timeline,
    ) -> Result<Protected, ProtectionError> {
        Self::new(&named(scheme)?.scheme, config, timeline)
    }

    /// A unit for a scheme, for the machine of a timeline. A Sequence Number Cache has the
    /// configured size, and the scheme's replacement.
    ///
    /// # Errors
    /// The configuration is impossible, or the scheme does not go with it.
    pub fn new(
        scheme: &Scheme,
        config: &ProtectionConfig,
        timeline: &mut Timeline,
    ) -> Result<Protected, ProtectionError> {
        config.validate()?;
        let scheme = &sized(scheme, config);
        Ok(Protected(match scheme.line_blocks {
            2 => InLines::Two(Box::new(Unit::new(scheme, config, timeline)?)),
            4 => InLines::Four(Box::new(Unit::new(scheme, config, timeline)?)),
            _ => InLines::One(Box::new(Unit::new(scheme, config, timeline)?)),
        }))
    }

    /// How large the engine's unit is.
    #[must_use]
    pub fn unit_size(config: &ProtectionConfig) -> UnitSize {
        unit_size(config)
    }

    /// Why the unit cannot go on, if that is so: seeds or time stamps that are used up, or no room
    /// for more sequence numbers. What it says of moments is meaningless from then on.
    #[must_use]
    pub fn failure(&mut self) -> Option<Violation> {
        in_lines!(self, unit => unit.failure())
    }

    /// What was counted so far.
    #[must_use]
    pub fn statistics(&mut self) -> ProtectionStatistics {
        in_lines!(self, unit => unit.statistics())
    }

    /// Begins to write down what happens. Executed by tests only.
    pub fn record(&mut self) {
        in_lines!(self, unit => unit.record());
    }

    /// What happened since asked last, if it is written down.
    pub fn take_record(&mut self) -> Vec<Event> {
        in_lines!(self, unit => unit.take_record())
    }

    /// What each cache of metadata of its own holds. Executed by tests only.
    pub fn held(&mut self) -> Vec<Vec<Evicted>> {
        in_lines!(self, unit => unit.held())
    }

    /// Compares logs now, where accesses are verified as a sequence.
    pub fn check(&mut self, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.check(timeline));
    }

    /// Lets another process run, of which nothing is seen, and then the same one again.
    pub fn switch_away_and_back(&mut self, timeline: &mut Timeline) {
        in_lines!(self, unit => unit.switch_away_and_back(timeline));
    }

    /// Whether a scheme's Sequence Number Cache knows one process only, so that all of it goes to
    /// memory when another runs.
    ///
    /// # Errors
    /// There is no such scheme.
    pub fn flushes_at_switches(
        scheme: &str,
        config: &ProtectionConfig,
    ) -> Result<bool, ProtectionError> {
        let scheme = sized(&named(scheme)?.scheme, config);
        Ok(matches!(scheme.encryption, EncryptionKind::OneTimePad(kind)
            if kind.context_switch == ContextSwitch::Flush))
    }
}

/// How large the engine's unit is.
fn unit_size(config: &ProtectionConfig) -> UnitSize {
    UnitSize {
        frames: config.frames(),
        metadata_cache: Capacity::Governed,
        on_chip_tree_bytes: config.on_chip_tree_bytes as usize,
        time_stamp_cache: Shape {
            entries: config.time_stamp_cache_blocks as usize,
            ways: config.time_stamp_cache_ways as usize,
        },
    }
}

/// A scheme with the configured lines, Sequence Number Cache, MACs and subspaces.
pub(super) fn sized(scheme: &Scheme, config: &ProtectionConfig) -> Scheme {
    let mut scheme = Scheme { line_blocks: config.line_bytes / BLOCK_BYTES, ..*scheme };
    if let EncryptionKind::OneTimePad(kind) = &mut scheme.encryption {
        let entries = (config.sequence_numbers_bytes / 2) as usize;
        let ways = match config.sequence_numbers_ways {
            0 => entries,
            ways => ways as usize,
        };
        let filled_by = match config.sequence_numbers_enter {
            Enter::FirstWriteBack => FilledBy::WriteBacks,
            Enter::FirstTouch => FilledBy::FirstTouches,
        };
        kind.snc = SncShape { entries, ways, filled_by, ..kind.snc };
        kind.context_switch = match config.snc_on_switch {
            OnSwitch::Scheme => kind.context_switch,
            OnSwitch::Flush => ContextSwitch::Flush,
            OnSwitch::Tag => ContextSwitch::Tags,
        };
    }
    if config.mac_bits > 0 {
        let mac = match config.mac_bits {
            256 => MacKind::HmacSha256,
            bits => MacKind::HmacSha1 { bits: bits as u16 },
        };
        (scheme.algorithms.data_mac, scheme.algorithms.node_mac) = (mac, mac);
    }
    if let IntegrityKind::HierarchicalLogHash { subspace_bytes, .. } = &mut scheme.integrity
        && config.subspace_bytes > 0
    {
        *subspace_bytes = config.subspace_bytes;
    }
    scheme
}
