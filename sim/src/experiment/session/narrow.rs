//! Sampled runs with as many windows as it takes.

use super::{Outcome, Progress, Session};
use crate::config::{ConfigurationError, Layer, Resolved};
use crate::experiment::configurations::Configuration;
use crate::experiment::run::Limits;
use crate::experiment::trace_file::TraceFile;
use crate::results::estimates::Sampling;

/// Windows of the first pass: fewer than 30 say little of how far they are from each other.
const FIRST_WINDOWS: u64 = 30;
/// The key of their number.
const WINDOWS: &str = "run.sample_windows";

impl Session<'_> {
    /// Does sampled runs, and does them again with more windows until the 95 % interval of each
    /// run's cycles for an instruction is at most so wide, a share of them in each direction. All
    /// runs of a trace are measured on the same windows. `begin` is told, for each pass, how many
    /// instructions its runs will read together, if that is known.
    ///
    /// A pass that is not the last leaves no results behind.
    ///
    /// # Errors
    /// A configuration is impossible.
    pub fn run_until_narrow<P: Progress>(
        &self,
        traces: &[TraceFile],
        runs: &[(usize, &Configuration)],
        error: f64,
        mut begin: impl FnMut(Option<u64>) -> P,
    ) -> Result<Outcome, ConfigurationError> {
        let mut all = Outcome { entries: Vec::new(), failures: Vec::new() };
        for trace in 0..traces.len() {
            let of_trace = runs.iter().filter(|(number, _)| *number == trace);
            let configurations: Vec<&Configuration> = of_trace.map(|(_, one)| *one).collect();
            let outcome =
                self.until_narrow(&traces[trace..=trace], &configurations, error, &mut begin)?;
            all.entries.extend(outcome.entries);
            all.failures.extend(outcome.failures);
        }
        Ok(all)
    }

    fn until_narrow<P: Progress>(
        &self,
        trace: &[TraceFile],
        configurations: &[&Configuration],
        error: f64,
        begin: &mut impl FnMut(Option<u64>) -> P,
    ) -> Result<Outcome, ConfigurationError> {
        let instructions = trace.first().and_then(|trace| trace.instructions);
        let mut windows = FIRST_WINDOWS;
        for one in configurations {
            windows = windows.min(most_windows(&one.resolved, instructions)?);
        }
        loop {
            let sampled: Result<Vec<Configuration>, ConfigurationError> =
                configurations.iter().map(|one| with_windows(one, windows)).collect();
            let sampled = sampled?;
            let runs: Vec<_> = sampled.iter().map(|one| (0, one)).collect();
            let mut outcome = self.run_and(trace, &runs, &mut *begin, false);
            let sampling = |entry: &super::Entry| Sampling::read(entry.result.as_ref()?);
            let wanted = outcome.entries.iter().filter_map(sampling);
            let wanted = wanted.filter_map(|sampling| sampling.wanted_windows(error)).max();
            match wanted {
                Some(wanted) if wanted > windows && outcome.failures.is_empty() => windows = wanted,
                _ => {
                    self.keep(&mut outcome);
                    return Ok(outcome);
                }
            }
        }
    }

    /// Writes results that were not written.
    fn keep(&self, outcome: &mut Outcome) {
        let Some(store) = self.store else { return };
        for entry in &mut outcome.entries {
            if let Err(error) = entry.keep(store) {
                outcome.failures.push(error.into());
            }
        }
    }
}

/// How many windows a region has; at least one, so that a region without any says so itself.
fn most_windows(config: &Resolved, instructions: Option<u64>) -> Result<u64, ConfigurationError> {
    let config = config.with(&windows_layer(1)?)?;
    let sampling = Limits::of(&config, instructions).sampling;
    let there = sampling.and_then(|sampling| sampling.of_windows());
    Ok(there.unwrap_or(1).max(1))
}

fn with_windows(
    configuration: &Configuration,
    windows: u64,
) -> Result<Configuration, ConfigurationError> {
    let resolved = configuration.resolved.with(&windows_layer(windows)?)?;
    Ok(Configuration { resolved, varied: configuration.varied.clone() })
}

fn windows_layer(windows: u64) -> Result<Layer, ConfigurationError> {
    let mut layer = Layer::default();
    layer.set("--sample", WINDOWS, &windows.to_string())?;
    Ok(layer)
}
