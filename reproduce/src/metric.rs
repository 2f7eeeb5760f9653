//! Numbers of a run, and of a run beside another one.

use anyhow::{Result, bail};
use casemate_sim::results::tree::{count, part};
use serde_json::Value;

/// What can be asked of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Of the run and its baseline.
    Compared(Compared),
    /// A ratio of the run's.
    Derived { path: String, rest: bool, percent: bool },
    /// A part of two sums of counters.
    Share { part: &'static [&'static str], whole: &'static [&'static str] },
    /// A counter.
    Counter(String),
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
        let derived = |path: &str, rest: bool, percent: bool| Kind::Derived {
            path: path.to_owned(),
            rest,
            percent,
        };
        let kind = match name {
            "overhead" => Kind::Compared(Compared::Overhead),
            "normalised-ipc" => Kind::Compared(Compared::NormalisedIpc),
            "gain" => Kind::Compared(Compared::Gain),
            "misses-increase" => Kind::Compared(Compared::MissesIncrease),
            "extra-traffic" => Kind::Compared(Compared::ExtraTraffic),
            "ipc" => derived("ipc", false, false),
            "miss-rate" => derived("last_level_miss_rate", false, true),
            "misses-per-kilo" => derived("last_level_misses_per_kilo_instruction", false, false),
            "data-share" => derived("last_level_metadata_share", true, true),
            "bus-use" => derived("bus_busy_share", false, true),
            "metadata-traffic" => derived("bus_metadata_share", false, true),
            "reencrypted-per-giga-cycle" => {
                derived("reencrypted_blocks_per_giga_cycle", false, false)
            }
            "overflows-per-giga-cycle" => derived("overflows_per_giga_cycle", false, false),
            "read-latency" => derived("last_level_read_latency_cycles", false, false),
            "counter-miss-rate" => Kind::Share {
                part: &["protection.counters.misses"],
                whole: &["protection.counters.misses", "protection.counters.hits"],
            },
            "write-share" => Kind::Share {
                part: &["memory.data_writes.bytes"],
                whole: &["memory.data_writes.bytes", "memory.data_reads.bytes"],
            },
            _ => match name.split_once(':') {
                Some(("statistics", path)) => Kind::Counter(path.to_owned()),
                Some(("derived", path)) => derived(path, false, false),
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

    /// Its value for a run; `None` where there is nothing to divide by, or no such number.
    #[must_use]
    pub fn of(&self, result: &Value, baseline: Option<&Value>) -> Option<f64> {
        match &self.kind {
            Kind::Compared(compared) => compared.of(result, baseline?),
            Kind::Derived { path, rest, .. } => {
                let value = part(&result["derived"], path)?.as_f64()?;
                Some(if *rest { 1.0 - value } else { value })
            }
            Kind::Share { part, whole } => {
                ratio(sum(result, part.iter().copied()), sum(result, whole.iter().copied()))
            }
            Kind::Counter(path) => part(&result["statistics"], path)?.as_f64(),
        }
    }
}

impl Compared {
    fn of(self, result: &Value, baseline: &Value) -> Option<f64> {
        let both = |paths: &[&str]| {
            let of = |value| sum(value, paths.iter().copied());
            (of(result), of(baseline))
        };
        match self {
            Compared::Overhead => {
                let (ours, theirs) = both(&["cycles"]);
                Some(ratio(ours, theirs)? - 1.0)
            }
            Compared::NormalisedIpc => {
                let (ours, theirs) = both(&["cycles"]);
                ratio(theirs, ours)
            }
            Compared::Gain => {
                let (ours, theirs) = both(&["cycles"]);
                Some(ratio(theirs, ours)? - 1.0)
            }
            Compared::MissesIncrease => {
                let last = if result["statistics"]["l3"].is_null() { "l2" } else { "l3" };
                let paths = ["read", "write"].map(|a| format!("{last}.cache.data.{a}_misses"));
                let (ours, theirs) = both(&[&paths[0], &paths[1]]);
                Some(ratio(ours, theirs)? - 1.0)
            }
            Compared::ExtraTraffic => {
                let (ours, theirs) = both(&[
                    "memory.data_reads.bytes",
                    "memory.data_writes.bytes",
                    "memory.metadata_reads.bytes",
                    "memory.metadata_writes.bytes",
                ]);
                Some(ratio(ours, theirs)? - 1.0)
            }
        }
    }
}

fn sum<'a>(result: &Value, paths: impl Iterator<Item = &'a str>) -> u64 {
    paths.map(|path| count(&result["statistics"], path)).sum()
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(cycles: u64, metadata_bytes: u64) -> Value {
        json!({
            "derived": {"ipc": 0.5, "last_level_metadata_share": 0.3},
            "statistics": {
                "cycles": cycles, "l3": null,
                "l2": {"cache": {"data": {"read_misses": cycles / 10, "write_misses": 0}}},
                "memory": {
                    "data_reads": {"bytes": 600}, "data_writes": {"bytes": 200},
                    "metadata_reads": {"bytes": metadata_bytes}, "metadata_writes": {"bytes": 0},
                },
                "protection": {"counters": {"hits": 3, "misses": 1}},
            },
        })
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
            assert!((got - value).abs() < 1e-12, "{name}: {got}");
            assert_eq!(metric.compares(), metric.of(&ours, None).is_none(), "{name}");
        }
        assert!(Metric::of_name("overheat").is_err());
        let nothing = Metric::of_name("statistics:nothing").expect("any path will do");
        assert_eq!(nothing.of(&ours, None), None);
    }
}
