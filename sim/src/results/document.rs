//! The result of a run, as it is written.

use serde::Serialize;
use serde_json::{Value, json};

use super::derived::{BusTime, Derived};
use super::estimates::Sampling;
use super::mix::Mix;
use super::provenance::Provenance;
use super::statistics::Statistics;
use super::table::Table;
use crate::experiment::run::{Measured, Sample, Sampled};

/// The version of result files; grows when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// The result of a run with everything that it depends on. No date and no duration is in it: the
/// same inputs give the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// BLAKE3 of what it depends on; null for a program that ran while it was simulated.
    pub inputs_blake3: Option<String>,
    /// The scheme's name, as in the configuration.
    pub scheme: String,
    /// What it depends on.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Ratios of the region's counters.
    pub derived: Derived,
    /// Of a sampled run: from which windows, and what they say of the region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Of a mix of programs: each one's speed, and what they do to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Whether the region ends with the trace, and not after `run.length_instructions`.
    pub trace_ended: bool,
    /// Counted during the warm-up.
    pub warmup: Statistics,
    /// Counted in the region of interest.
    pub statistics: Statistics,
    /// Counted in parts of the region.
    pub samples: Vec<Sample>,
}

impl Document {
    /// From what a run counted.
    #[must_use]
    pub fn new(scheme: &str, provenance: Provenance, measured: Measured) -> Self {
        let bus = BusTime::of(&provenance.config);
        let of = |sampled: Sampled| Sampling::of(&measured.samples, sampled, &bus);
        let sampling = measured.sampled.map(of);
        Document {
            schema: SCHEMA,
            inputs_blake3: provenance.key(),
            scheme: scheme.to_owned(),
            derived: Derived::of(&measured.region, &bus),
            sampling,
            mix: None,
            provenance,
            trace_ended: !measured.whole,
            warmup: measured.warmup,
            statistics: measured.region,
            samples: measured.samples,
        }
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        // Strings, numbers and their maps: there is nothing that could not be written.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A row for each result: all of it but samples.
#[must_use]
pub fn table<'a>(results: impl IntoIterator<Item = &'a Value>) -> Table {
    let rows: Vec<Value> = results.into_iter().map(without_samples).collect();
    Table::of(&rows)
}

/// A row for each sample of a result.
#[must_use]
pub fn samples(result: &Value) -> Table {
    Table::of(&sample_trees(result))
}

/// The samples of a result with their ratios.
#[must_use]
pub fn sample_trees(result: &Value) -> Vec<Value> {
    let samples = result["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bus = BusTime::of(&result["config"]);
    let tree = |sample: &Value| {
        json!({
            "end_instructions": sample["end_instructions"],
            "derived": Derived::of(&Statistics::of(&sample["statistics"]).unwrap_or_default(), &bus),
            "statistics": sample["statistics"],
        })
    };
    samples.iter().map(tree).collect()
}

fn without_samples(result: &Value) -> Value {
    let mut result = result.clone();
    if let Value::Object(members) = &mut result {
        members.remove("samples");
    }
    result
}
