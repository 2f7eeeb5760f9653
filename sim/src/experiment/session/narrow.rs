//! Sampled runs with as many windows as it takes.

use super::{Outcome, Progress, Session};
use crate::config::{ConfigurationError, Layer, Resolved};
use crate::experiment::configurations::Configuration;
use crate::experiment::run::Limits;
use crate::experiment::trace_file::TraceFile;
use crate::results::estimates::Sampling;

/// Windows of the first pass at least, so that it meets whatever lasts for 1 / 300 of the region.
const FIRST_WINDOWS: u64 = 300;
/// Of a long region, one window of so many.
const FIRST_DISTANCE: u64 = 50;
/// The key of their number.
const WINDOWS: &str = "run.sample_windows";

impl Session<'_> {
    /// Does sampled runs, and does them again with more windows until each run's cycles for an
    /// instruction are known within `error`, a share of them in each direction: half of the 95 %
    /// interval, and what no window [met](crate::experiment::unseen). All runs of a trace are
    /// measured on the same windows. `begin` is told, for each pass, how many instructions its runs
    /// will read together, if that is known.
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
        let mut there = u64::MAX;
        for one in configurations {
            there = there.min(most_windows(&one.resolved, instructions)?);
        }
        let mut windows = over_all_of(there, FIRST_WINDOWS.max(there / FIRST_DISTANCE));
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
                Some(wanted) if wanted > windows && outcome.failures.is_empty() => {
                    windows = over_all_of(there, wanted);
                }
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

/// At least so many windows, if there are so many: as many as lie at one distance over all of the
/// region. Of 1000, 600 at a distance of one would be the first 600.
fn over_all_of(there: u64, wanted: u64) -> u64 {
    there / (there / wanted.max(1)).max(1)
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

#[cfg(test)]
mod tests {
    use super::over_all_of;

    /// 300 of 1000 are at a distance of 3 and would leave out the last 100: 333 leave out one.
    #[test]
    fn windows_lie_over_all_of_the_region() {
        for (there, wanted, expected) in
            [(1000, 300, 333), (1000, 501, 1000), (1000, 2000, 1000), (1000, 500, 500), (1, 300, 1)]
        {
            assert_eq!(over_all_of(there, wanted), expected, "{wanted} of {there}");
        }
        for there in 1..400 {
            for wanted in 1..=there {
                let windows = over_all_of(there, wanted);
                let distance = there / windows;
                assert!(windows >= wanted && windows * distance + distance > there);
            }
        }
    }
}
