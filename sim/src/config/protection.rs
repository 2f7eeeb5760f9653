//! The protection unit that a configuration describes.

use super::error::ConfigurationError;
use super::resolved::Resolved;
use crate::machine::cache::Replacement;
use crate::protection::ProtectionConfig;

/// Reads it from its sections, and checks it.
///
/// # Errors
/// A number is impossible; the key is named.
pub fn protection(config: &Resolved) -> Result<ProtectionConfig, ConfigurationError> {
    let mut sections = config.json()["protection"].take();
    sections["memory_bytes"] = config.number("memory.size_bytes").into();
    let read = serde_json::from_value::<ProtectionConfig>(sections);
    let mut unit = read.map_err(|error| ConfigurationError::Section {
        section: "protection".to_owned(),
        sentence: error.to_string(),
    })?;
    // Random replacement has the run's seed if it names none.
    let seed = config.number("run.seed");
    for (cache, name) in
        [(&mut unit.counters, "counters"), (&mut unit.nodes, "nodes"), (&mut unit.macs, "macs")]
    {
        if config.text(&format!("protection.{name}.replacement")) == "random" {
            cache.replacement = Replacement::Random { seed };
        }
    }
    let refused = |refusal: crate::machine::ConfigError| ConfigurationError::Refused {
        refusal: refusal.within_section("protection"),
    };
    unit.validate().map_err(refused)?;
    Ok(unit)
}
