//! The cores and caches that a configuration describes.

use serde::Deserialize;

use super::error::ConfigurationError;
use super::resolved::Resolved;
use crate::machine::cache::Replacement;
use crate::machine::core::CoreConfig;
use crate::machine::hierarchy::{
    CacheLevelConfig, HierarchyConfig, PrefetchConfig, PrefetcherName,
};
use crate::machine::processor::ProcessorConfig;

/// The section `hierarchy`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    l2_shared: bool,
    prefetcher: PrefetcherName,
    prefetch_degree_lines: u64,
    prefetch_table_entries: u64,
    coherence_cycles: u64,
    write_buffer_entries: u64,
}

/// Reads it from its sections, and checks it.
///
/// # Errors
/// A number is impossible, or parts do not go together; the key is named.
pub fn processor(config: &Resolved) -> Result<ProcessorConfig, ConfigurationError> {
    let common: Common = config.section("hierarchy")?;
    let core: CoreConfig = config.section("core")?;
    let has_l3 = config.number("l3.size_bytes") > 0;
    let hierarchy = HierarchyConfig {
        l1i: level(config, "l1i")?,
        l1d: level(config, "l1d")?,
        l2: level(config, "l2")?,
        l2_shared: common.l2_shared,
        prefetch: PrefetchConfig {
            prefetcher: common.prefetcher,
            degree_lines: common.prefetch_degree_lines,
            table_entries: common.prefetch_table_entries,
        },
        l3: has_l3.then(|| level(config, "l3")).transpose()?,
        itlb: config.section("itlb")?,
        dtlb: config.section("dtlb")?,
        coherence_cycles: common.coherence_cycles,
        write_buffer_entries: common.write_buffer_entries,
        memory_bytes: config.number("memory.size_bytes"),
    };
    let processor = ProcessorConfig { core, hierarchy };
    processor.validate().map_err(|refusal| ConfigurationError::Refused { refusal })?;
    Ok(processor)
}

/// A cache; its random replacement has the run's seed if it names none.
fn level(config: &Resolved, section: &str) -> Result<CacheLevelConfig, ConfigurationError> {
    let mut level: CacheLevelConfig = config.section(section)?;
    if config.text(&format!("{section}.replacement")) == "random" {
        level.replacement = Replacement::Random { seed: config.number("run.seed") };
    }
    Ok(level)
}
