//! Results beside each other.

pub use casemate_schemes::catalogue::UNPROTECTED as BASELINE;
use serde::Deserialize;
use serde_json::Value;

use super::estimates;
use super::interval::Interval;

/// The runs without protection among several results, for the overheads of the others.
#[derive(Default)]
pub struct Baselines<'a>(Vec<(Compared, &'a Value)>);

impl<'a> Baselines<'a> {
    /// Those of `results`.
    #[must_use]
    pub fn of(results: impl IntoIterator<Item = &'a Value>) -> Baselines<'a> {
        let unprotected = results.into_iter().filter(|result| result["scheme"] == BASELINE);
        Baselines(unprotected.filter_map(|result| Some((Compared::of(result)?, result))).collect())
    }

    /// How much longer a run took than the same run without protection: 0.12 is 12 %; with its
    /// interval, by matched pairs, if both are sampled. `None` if that is not among them.
    #[must_use]
    pub fn overhead(&self, result: &Value) -> Option<Interval> {
        let run = Compared::of(result)?;
        let (baseline, whole) = self.0.iter().find(|(other, _)| run.is_same_run(other))?;
        let half_width = estimates::overhead(result, whole).and_then(|pairs| pairs.half_width);
        Some(Interval { mean: run.against(baseline), half_width })
    }
}

/// How much longer a run took than another one of the same instructions; no number where a result
/// has no cycles.
#[must_use]
pub fn against(result: &Value, baseline: &Value) -> f64 {
    let pair = Compared::of(result).zip(Compared::of(baseline));
    pair.map_or(f64::NAN, |(result, baseline)| result.against(&baseline))
}

/// Whether two results are of the same trace and machine, whatever the scheme.
#[must_use]
pub fn is_same_run(one: &Value, other: &Value) -> bool {
    let pair = Compared::of(one).zip(Compared::of(other));
    pair.is_some_and(|(one, other)| one.is_same_run(&other))
}

/// What of a result's file is compared.
#[derive(Deserialize)]
struct Compared {
    trace: Value,
    config: Configuration,
    statistics: Cycles,
}

/// A machine, and how much of which scheme it runs.
#[derive(PartialEq, Deserialize)]
struct Configuration {
    run: Run,
    #[serde(flatten)]
    machine: Value,
}

#[derive(Deserialize)]
struct Run {
    #[serde(rename = "scheme")]
    _scheme: String,
    #[serde(flatten)]
    limits: Value,
}

impl PartialEq for Run {
    /// But for the scheme.
    fn eq(&self, other: &Self) -> bool {
        self.limits == other.limits
    }
}

#[derive(Deserialize)]
struct Cycles {
    cycles: u64,
}

impl Compared {
    fn of(result: &Value) -> Option<Compared> {
        Compared::deserialize(result).ok()
    }

    fn is_same_run(&self, other: &Compared) -> bool {
        self.trace == other.trace && self.config == other.config
    }

    fn against(&self, baseline: &Compared) -> f64 {
        self.statistics.cycles as f64 / baseline.statistics.cycles as f64 - 1.0
    }
}
