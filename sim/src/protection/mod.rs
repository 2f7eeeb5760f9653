//! A protection unit in cycles: the engine's protocols, unchanged, over a port whose values say
//! when they are ready.
//!
//! In reading order:
//!
//! - [`config`]: what can be chosen, with its units;
//! - [`moment`]: what a moment is here: when something can be worked with, and when it is verified;
//! - [`address_map`]: where the regions of metadata lie in physical memory;
//! - `store`: the values of metadata, which decide what is touched next;
//! - [`on_chip`]: caches that decide which lines of metadata stay on chip;
//! - `entries`: of the hash buffer, and miss registers of metadata;
//! - [`port`]: the cycles interpretation itself;
//! - [`statistics`]: what is counted;
//! - [`record`]: what was asked and touched, for comparisons with other interpretations;
//! - [`protected`]: the unit below the caches;
//! - [`twin`]: the same unit on bytes, held against it.

pub mod address_map;
pub mod config;
mod entries;
pub mod moment;
pub mod on_chip;
pub mod plaintext;
pub mod port;
pub mod protected;
pub mod record;
pub mod statistics;
mod store;
pub mod twin;

pub use config::{ProtectionConfig, UnitTiming, Verification};
pub use protected::{Protected, ProtectionError};
pub use statistics::ProtectionStatistics;
pub use twin::{Difference, Twin};
