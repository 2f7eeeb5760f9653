//! Numbers of a run, and of a run beside another one.

use anyhow::{Result, bail};
use casemate_sim::machine::Content;
use casemate_sim::results::derived::{self, BusTime};
use casemate_sim::results::estimates::{Design, Sampling};
use casemate_sim::results::interval::Ratio;
use casemate_sim::results::statistics::Statistics;
use casemate_sim::results::tree;
use serde_json::Value;

use crate::estimate::{Estimate, Parts};

/// What a run counted: in all of it, or in each of the windows that were measured, or in each of
/// the stretches that follow each other (`run.every_instructions`).
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    parts: Vec<Statistics>,
    are: Parts,
    /// The trace and where its parts end, in instructions of the region.
    windows: String,
    /// The same with all that was configured: the run.
    run: String,
    design: Design,
    /// The share of its windows that were measured. The stretches are all of the region, but none
    /// of what else the program does.
    share: f64,
    /// Pages that the program touched in its warm-up and in what was measured.
    pages: u64,
    bus: BusTime,
}

impl Counted {
    /// Of a result, as it is written; `None` if it is another document.
    #[must_use]
    pub fn of(result: &Value) -> Option<Counted> {
        let (config, trace) = (&result["config"], &result["trace"]["name"]);
        let samples = result["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
        let sampling = Sampling::read(result);
        let parts = if sampling.is_none() && samples.is_empty() {
            vec![Statistics::of(&result["statistics"])?]
        } else {
            let parts = samples.iter().map(|part| Statistics::of(&part["statistics"]));
            parts.collect::<Option<_>>()?
        };
        let (are, design, share) = match &sampling {
            Some(sampling) => (Parts::Windows, Design::read(result), sampling.share()),
            None => (Parts::Stretches, Design::default(), 0.0),
        };
        let ends: Vec<&Value> = samples.iter().map(|part| &part["end_instructions"]).collect();
        let windows = format!("{trace} {ends:?}");
        let run = format!("{windows} {config}");
        let before = result["warmup"]["pages_touched"].as_u64().unwrap_or(0);
        let pages = before + parts.iter().map(|part| part.machine.pages_touched).sum::<u64>();
        let bus = BusTime::of(config);
        Some(Counted { parts, are, windows, run, design, share, pages, bus })
    }
}

/// A page of the simulator's.
const PAGE_BYTES: u64 = 4096;
const MEGABYTE: f64 = 1_048_576.0;
/// A ratio's name in result files.
const OVERFLOWS: &str = "overflows_per_giga_cycle";

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
    /// Memory that the program touched, in megabytes.
    Footprint,
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
            "overflows-per-giga-cycle" => number(OVERFLOWS),
            "read-latency" => number("last_level_read_latency_cycles"),
            "counter-miss-rate" => Kind::Share(Share::CounterMisses),
            "write-share" => Kind::Share(Share::Writes),
            "footprint" => Kind::Footprint,
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
            Kind::Counter(_) | Kind::Footprint => false,
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

    /// Its value for a run, with its interval if windows or stretches were measured; `None` where
    /// there is nothing to divide by, or no such number, or a baseline of others.
    #[must_use]
    pub fn of(&self, run: &Counted, baseline: Option<&Counted>) -> Option<Estimate> {
        if self.kind == Kind::Footprint {
            return Some(Estimate::alone(run.pages as f64 * PAGE_BYTES as f64 / MEGABYTE));
        }
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
            Some(_) if region.mean == 0.0 && self.counts_events() => {
                let whole = ratios.iter().map(|ratio| ratio.whole).sum::<f64>();
                Estimate::of_none(&run.run, 1.0 / whole)
            }
            Some(_) => Estimate::of(&run.windows, run.are, &ratios, run.share)?,
            None => Estimate::alone(region.mean),
        };
        Some(estimate.scaled(times, offset))
    }

    /// Whether it counts events, one by one.
    fn counts_events(&self) -> bool {
        match &self.kind {
            Kind::Counter(_) => true,
            Kind::Derived { name, .. } => *name == OVERFLOWS,
            Kind::Compared(_) | Kind::Share(_) | Kind::Footprint => false,
        }
    }

    /// What it is of a part of a run.
    fn terms(&self, part: &Statistics, run: &Counted) -> Option<Terms> {
        match &self.kind {
            Kind::Compared(_) | Kind::Footprint => None,
            Kind::Derived { name, rest, .. } => {
                let (times, ratio) = derived::ratio(name, part, &run.bus)?;
                let (times, offset) = if *rest { (-times, 1.0) } else { (times, 0.0) };
                Some(Terms { times, offset, ratio })
            }
            Kind::Share(share) => {
                Some(Terms { times: 1.0, offset: 0.0, ratio: share.ratio(part)? })
            }
            // All that was counted: the mean of a part, times their number. A part is as much of
            // one as it has of their instructions.
            Kind::Counter(path) => {
                let count = tree::part(&part.tree(), path)?.as_f64()?;
                let times = run.parts.len() as f64;
                let all: u64 = run.parts.iter().map(|part| part.machine.instructions).sum();
                let whole = part.machine.instructions as f64 * times / all as f64;
                Some(Terms { times, offset: 0.0, ratio: Ratio { part: count, whole } })
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

    /// 100 pages in the warm-up and 28 after it, of 4 KB: half a megabyte.
    #[test]
    fn a_footprint_is_what_was_touched() {
        let mut result = json!({"config": {}, "statistics": statistics(100, 0)});
        result["statistics"]["pages_touched"] = json!(28);
        result["warmup"] = json!({"pages_touched": 100});
        let run = Counted::of(&result).expect("a result");
        let footprint = Metric::of_name("footprint").expect("it is one");
        let value = footprint.of(&run, None).expect("there is a value");
        assert_eq!((value.mean, value.half_width()), (0.5, None));
        assert!(!footprint.percent() && !footprint.compares());
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

    /// A run in one piece, cut into stretches of so many instructions and cycles, with what
    /// overflowed in each.
    fn cut(scheme: &str, stretches: &[(u64, u64, u64)]) -> Counted {
        let mut end = 0;
        let samples = stretches.iter().map(|(instructions, cycles, overflows)| {
            end += instructions;
            let mut statistics = statistics(*cycles, 0);
            statistics["instructions"] = json!(instructions);
            statistics["protection"]["overflows"] = json!(overflows);
            json!({"end_instructions": end, "statistics": statistics})
        });
        let samples: Vec<Value> = samples.collect();
        let result = json!({"config": {"run": {"scheme": scheme}}, "samples": samples});
        Counted::of(&result).expect("a result")
    }

    /// Cycles 110, 330, 220 over 100, 300, 200: 10 % everywhere. 3, 1, 2 overflows in three
    /// stretches of 75 instructions are 6, 2 in each, with residuals 1, -1, 0: their squares sum
    /// to 2, and neighbours are opposite. t(2) = 4.302653, error 3 * sqrt(2 / 2 / 3).
    #[test]
    fn stretches_give_intervals() {
        let of = |name: &str, run: &Counted, baseline: Option<&Counted>| {
            let value = Metric::of_name(name).expect("it is one").of(run, baseline);
            value.expect("there is a value")
        };
        let ours = cut("split", &[(75, 110, 3), (75, 330, 1), (75, 220, 2)]);
        let theirs = cut("none", &[(75, 100, 0), (75, 300, 0), (75, 200, 0)]);
        let overhead = of("overhead", &ours, Some(&theirs));
        assert!((overhead.mean - 0.1).abs() < 1e-12, "{overhead:?}");
        assert!(overhead.half_width().is_some_and(|half| half < 1e-9), "{overhead:?}");
        let overflows = of("statistics:protection.overflows", &ours, None);
        assert!((overflows.mean - 6.0).abs() < 1e-9, "{overflows:?}");
        let half = overflows.half_width().expect("of three");
        assert!((half - 4.302_653 * 3.0_f64.sqrt()).abs() < 1e-4, "{half}");
        // Instructions 75, 75, 75, 15: 240, so a whole is 60. 6 in all are 1.5 in 60: residuals
        // 1.125, -0.875, 0.125, -0.375 with squares 1.265625 + 0.765625 + 0.015625 + 0.140625.
        let shorter = cut("split", &[(75, 110, 3), (75, 330, 1), (75, 220, 2), (15, 44, 0)]);
        let overflows = of("statistics:protection.overflows", &shorter, None);
        assert!((overflows.mean - 6.0).abs() < 1e-9, "{overflows:?}");
        let half = overflows.half_width().expect("of four");
        let wanted = 3.182_446 * 4.0 * (2.1875_f64 / 3.0 / 4.0).sqrt();
        assert!((half - wanted).abs() < 1e-4, "{half}, not {wanted}");
        let overhead = Metric::of_name("overhead").expect("it is one");
        assert_eq!(overhead.of(&shorter, Some(&theirs)), None, "other stretches");
    }

    /// No overflow in 600 cycles: at most three, 5 in a thousand cycles.
    #[test]
    fn no_event_is_not_certain() {
        let none = cut("split", &[(75, 100, 0), (75, 300, 0), (75, 200, 0)]);
        let of = |name: &str| {
            let value = Metric::of_name(name).expect("it is one").of(&none, None);
            value.expect("there is a value").interval().expect("of three")
        };
        let (low, high) = of("overflows-per-giga-cycle");
        assert!(low == 0.0 && (high - 5e6).abs() < 1.0, "{high}");
        let (low, high) = of("statistics:protection.overflows");
        assert!(low == 0.0 && (high - 3.0).abs() < 1e-9, "{high}");
    }
}
