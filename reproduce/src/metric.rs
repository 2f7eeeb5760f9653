//! Numbers of a run, and of a run beside another one.

use anyhow::{Result, bail};
use casemate_sim::machine::Content;
use casemate_sim::results::derived::{self, BusTime};
use casemate_sim::results::estimates::{Design, Sampling};
use casemate_sim::results::interval::Ratio;
use casemate_sim::results::statistics::Statistics;
use casemate_sim::results::tree;
use serde_json::Value;

use crate::estimate::Estimate;

/// What a run counted: in all of it, or in each of the windows that were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    parts: Vec<Statistics>,
    /// The trace and where its windows end, in instructions of the region.
    windows: String,
    design: Design,
    /// The share of its windows that were measured.
    share: f64,
    bus: BusTime,
}

impl Counted {
    /// Of a result, as it is written; `None` if it is another document.
    #[must_use]
    pub fn of(result: &Value) -> Option<Counted> {
        let bus = BusTime::of(&result["config"]);
        let trace = &result["trace"]["name"];
        let Some(sampling) = Sampling::read(result) else {
            let (parts, windows) =
                (vec![Statistics::of(&result["statistics"])?], trace.to_string());
            return Some(Counted { parts, windows, design: Design::default(), share: 1.0, bus });
        };
        let samples = result["samples"].as_array()?;
        let parts = samples.iter().map(|window| Statistics::of(&window["statistics"]));
        let ends: Vec<&Value> = samples.iter().map(|window| &window["end_instructions"]).collect();
        Some(Counted {
            parts: parts.collect::<Option<_>>()?,
            windows: format!("{trace} {ends:?}"),
            design: Design::read(result),
            share: sampling.share(),
            bus,
        })
    }
}

/// What can be asked of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// Of the run and its baseline.
    Compared(Compared),
    /// A ratio of the run's, by its name in result files; what is left of it to one, if `rest`.
    Derived { name: &'static str, rest: bool, percent: bool },
    /// A part of two sums of counters.
    Share(Share),
    /// A counter, by its name in result files.
    Counter(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    CounterMisses,
    Writes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Overhead,
    NormalisedIpc,
    Gain,
    MissesIncrease,
    ExtraTraffic,
}

impl Metric {
    /// By its name in `figures.toml`.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn of_name(name: &str) -> Result<Metric> {
        let number = |name| Kind::Derived { name, rest: false, percent: false };
        let share = |name| Kind::Derived { name, rest: false, percent: true };
        let kind = match name {
            "overhead" => Kind::Compared(Compared::Overhead),
            "normalised-ipc" => Kind::Compared(Compared::NormalisedIpc),
            "gain" => Kind::Compared(Compared::Gain),
            "misses-increase" => Kind::Compared(Compared::MissesIncrease),
            "extra-traffic" => Kind::Compared(Compared::ExtraTraffic),
            "ipc" => number("ipc"),
            "miss-rate" => share("last_level_miss_rate"),
            "misses-per-kilo" => number("last_level_misses_per_kilo_instruction"),
            "data-share" => {
                Kind::Derived { name: "last_level_metadata_share", rest: true, percent: true }
            }
            "bus-use" => share("bus_busy_share"),
            "metadata-traffic" => share("bus_metadata_share"),
            "reencrypted-per-giga-cycle" => number("reencrypted_blocks_per_giga_cycle"),
            "overflows-per-giga-cycle" => number("overflows_per_giga_cycle"),
            "read-latency" => number("last_level_read_latency_cycles"),
            "counter-miss-rate" => Kind::Share(Share::CounterMisses),
            "write-share" => Kind::Share(Share::Writes),
            _ => match name.split_once(':') {
                Some(("statistics", path)) => Kind::Counter(path.to_owned()),
                _ => bail!("there is no metric {name}"),
            },
        };
        Ok(Metric { kind })
    }

    /// Whether it needs a baseline.
    #[must_use]
    pub fn compares(&self) -> bool {
        matches!(self.kind, Kind::Compared(_))
    }

    /// Whether it is a share, to be shown in per cent.
    #[must_use]
    pub fn percent(&self) -> bool {
        match &self.kind {
            Kind::Compared(_) | Kind::Share { .. } => true,
            Kind::Derived { percent, .. } => *percent,
            Kind::Counter(_) => false,
        }
    }

    /// What memory without protection has, if that is the same whatever is run; else 0.
    #[must_use]
    pub fn unprotected(&self) -> f64 {
        match self.kind {
            Kind::Compared(Compared::NormalisedIpc) | Kind::Derived { rest: true, .. } => 1.0,
            _ => 0.0,
        }
    }

    /// Its value for a run, with its interval if windows were measured; `None` where there is
    /// nothing to divide by, or no such number, or a baseline of other windows.
    #[must_use]
    pub fn of(&self, run: &Counted, baseline: Option<&Counted>) -> Option<Estimate> {
        let terms: Option<Vec<Terms>> = if let Kind::Compared(compared) = &self.kind {
            let baseline = baseline.filter(|baseline| baseline.windows == run.windows)?;
            let pairs = run.parts.iter().zip(&baseline.parts);
            pairs.map(|(run, baseline)| Some(compared.terms(run, baseline))).collect()
        } else {
            run.parts.iter().map(|part| self.terms(part, run)).collect()
        };
        let terms = terms?;
        let Terms { times, offset, .. } = *terms.first()?;
        let ratios: Vec<Ratio> = terms.iter().map(|terms| terms.ratio).collect();
        // Chosen windows (SimPoint) have weights, and no interval.
        let region = run.design.estimate(&ratios)?;
        let estimate = match region.half_width {
            Some(_) => Estimate::of(&run.windows, &ratios, run.share)?,
            None => Estimate::alone(region.mean),
        };
        Some(estimate.scaled(times, offset))
    }

    /// What it is of a part of a run.
    fn terms(&self, part: &Statistics, run: &Counted) -> Option<Terms> {
        match &self.kind {
            Kind::Compared(_) => None,
            Kind::Derived { name, rest, .. } => {
                let (times, ratio) = derived::ratio(name, part, &run.bus)?;
                let (times, offset) = if *rest { (-times, 1.0) } else { (times, 0.0) };
                Some(Terms { times, offset, ratio })
            }
            Kind::Share(share) => {
                Some(Terms { times: 1.0, offset: 0.0, ratio: share.ratio(part)? })
            }
            // All that was counted: the mean of a window, times their number.
            Kind::Counter(path) => {
                let count = tree::part(&part.tree(), path)?.as_f64()?;
                let times = run.parts.len() as f64;
                Some(Terms { times, offset: 0.0, ratio: Ratio { part: count, whole: 1.0 } })
            }
        }
    }
}

/// A metric as a ratio, so many times and so much more.
#[derive(Clone, Copy)]
struct Terms {
    times: f64,
    offset: f64,
    ratio: Ratio,
}

impl Share {
    fn ratio(self, statistics: &Statistics) -> Option<Ratio> {
        let (part, whole) = match self {
            Share::CounterMisses => {
                let counters = statistics.protection.as_ref()?.counters;
                (counters.misses, counters.misses + counters.hits)
            }
            Share::Writes => {
                let memory = &statistics.machine.memory;
                let written = memory.data_writes.bytes;
                (written, written + memory.data_reads.bytes)
            }
        };
        Some(Ratio { part: part as f64, whole: whole as f64 })
    }
}

impl Compared {
    fn terms(self, run: &Statistics, baseline: &Statistics) -> Terms {
        let both = |count: fn(&Statistics) -> u64| (count(run) as f64, count(baseline) as f64);
        let (ours, theirs) = both(match self {
            Compared::Overhead | Compared::NormalisedIpc | Compared::Gain => |s| s.machine.cycles,
            Compared::MissesIncrease => |s| s.machine.last_level_cache().of(Content::Data).misses(),
            Compared::ExtraTraffic => bus_bytes,
        });
        let (part, whole, offset) = match self {
            Compared::NormalisedIpc => (theirs, ours, 0.0),
            Compared::Gain => (theirs, ours, -1.0),
            Compared::Overhead | Compared::MissesIncrease | Compared::ExtraTraffic => {
                (ours, theirs, -1.0)
            }
        };
        Terms { times: 1.0, offset, ratio: Ratio { part, whole } }
    }
}

/// All bytes over the bus.
fn bus_bytes(statistics: &Statistics) -> u64 {
    let memory = &statistics.machine.memory;
    let data = memory.data_reads.bytes + memory.data_writes.bytes;
    data + memory.metadata_reads.bytes + memory.metadata_writes.bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn statistics(cycles: u64, metadata_bytes: u64) -> Value {
        json!({
                "cycles": cycles, "instructions": 75, "l3": null,
                "last_level": {"data_line_cycles": 7, "metadata_line_cycles": 3},
                "l2": {"cache": {"data": {"read_misses": cycles / 10, "write_misses": 0}}},
                "memory": {
                    "data_reads": {"bytes": 600}, "data_writes": {"bytes": 200},
                    "metadata_reads": {"bytes": metadata_bytes}, "metadata_writes": {"bytes": 0},
                },
                "protection": {"counters": {"hits": 3, "misses": 1}},
        })
    }

    fn run(cycles: u64, metadata_bytes: u64) -> Counted {
        let result = json!({"config": {}, "statistics": statistics(cycles, metadata_bytes)});
        Counted::of(&result).expect("a result")
    }

    /// Windows of a run, of which there are very many.
    fn sampled(cycles: &[u64]) -> Counted {
        let window = |(at, cycles): (usize, &u64)| json!({"end_instructions": at, "statistics": statistics(*cycles, 0)});
        let windows: Vec<Value> = cycles.iter().enumerate().map(window).collect();
        let sampling =
            json!({"windows": cycles.len(), "of_windows": null, "cpi": null, "derived": {}});
        let result = json!({"config": {}, "samples": windows, "sampling": sampling});
        Counted::of(&result).expect("a result")
    }

    /// What protection takes is taken from all of it; what it adds is added to nothing.
    #[test]
    fn unprotected_memory_has_all_of_it_or_nothing() {
        let unprotected = |name| Metric::of_name(name).expect("it is one").unprotected();
        assert_eq!(["normalised-ipc", "data-share"].map(unprotected), [1.0; 2]);
        assert_eq!(["overhead", "gain", "miss-rate", "ipc", "bus-use"].map(unprotected), [0.0; 5]);
    }

    #[test]
    fn metrics_are_what_they_are_called() {
        let (ours, theirs) = (run(150, 400), run(100, 0));
        for (name, value) in [
            ("overhead", 0.5),
            ("normalised-ipc", 100.0 / 150.0),
            ("gain", 100.0 / 150.0 - 1.0),
            ("misses-increase", 0.5),
            ("extra-traffic", 0.5),
            ("ipc", 0.5),
            ("data-share", 0.7),
            ("counter-miss-rate", 0.25),
            ("write-share", 0.25),
            ("statistics:cycles", 150.0),
        ] {
            let metric = Metric::of_name(name).expect("it is one");
            let got = metric.of(&ours, Some(&theirs)).expect("there is a value");
            assert_eq!(got.half_width(), None, "of one window nothing is known");
            let got = got.mean;
            assert!((got - value).abs() < 1e-12, "{name}: {got}");
            assert_eq!(metric.compares(), metric.of(&ours, None).is_none(), "{name}");
        }
        assert!(Metric::of_name("overheat").is_err());
        let nothing = Metric::of_name("statistics:nothing").expect("any path will do");
        assert_eq!(nothing.of(&ours, None), None);
    }

    /// Cycles 110 over 100 and 330 over 300: 10 % in every window. 75 instructions in 110 and in
    /// 330 cycles: an IPC of 150 / 440, and 440 cycles in all, 220 ± 12.7062 * 110 in each.
    #[test]
    fn windows_give_intervals() {
        let (ours, theirs) = (sampled(&[110, 330]), sampled(&[100, 300]));
        let of = |name: &str, baseline| {
            let metric = Metric::of_name(name).expect("it is one");
            metric.of(&ours, baseline).expect("there is a value")
        };
        let overhead = of("overhead", Some(&theirs));
        assert!((overhead.mean - 0.1).abs() < 1e-12, "{overhead:?}");
        assert!(overhead.half_width().is_some_and(|half| half < 1e-9), "{overhead:?}");
        assert!((of("ipc", None).mean - 150.0 / 440.0).abs() < 1e-12);
        let cycles = of("statistics:cycles", None);
        assert!((cycles.mean - 440.0).abs() < 1e-9, "{cycles:?}");
        let half = cycles.half_width().expect("there are two");
        assert!((half - 2.0 * 110.0 * 12.706_205).abs() < 1e-3, "{half}");
        let overhead = Metric::of_name("overhead").expect("it is one");
        assert_eq!(overhead.of(&ours, Some(&sampled(&[100]))), None, "other windows");
    }
}
