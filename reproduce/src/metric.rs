//! Numbers of a run, and of a run beside another one.

use anyhow::{Result, bail};
use casemate_sim::machine::Content;
use casemate_sim::results::derived::Derived;
use casemate_sim::results::statistics::Statistics;
use casemate_sim::results::tree::part;
use serde_json::Value;

/// What a run counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    statistics: Statistics,
    derived: Derived,
}

impl Counted {
    /// Of a result, as it is written; `None` if it is another document.
    #[must_use]
    pub fn of(result: &Value) -> Option<Counted> {
        let statistics = Statistics::of(&result["statistics"])?;
        Some(Counted { statistics, derived: Derived::read(&result["derived"]) })
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
    /// A ratio of the run's; what is left of it to one, if `rest`.
    Derived { ratio: Ratio, rest: bool, percent: bool },
    /// A part of two sums of counters.
    Share(Share),
    /// A counter, by its name in result files.
    Counter(String),
}

/// A ratio of a run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ratio {
    Ipc,
    MissRate,
    MissesPerKilo,
    MetadataLines,
    BusUse,
    MetadataBytes,
    ReencryptedPerGigaCycle,
    OverflowsPerGigaCycle,
    ReadLatency,
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
        let number = |ratio| Kind::Derived { ratio, rest: false, percent: false };
        let share = |ratio| Kind::Derived { ratio, rest: false, percent: true };
        let kind = match name {
            "overhead" => Kind::Compared(Compared::Overhead),
            "normalised-ipc" => Kind::Compared(Compared::NormalisedIpc),
            "gain" => Kind::Compared(Compared::Gain),
            "misses-increase" => Kind::Compared(Compared::MissesIncrease),
            "extra-traffic" => Kind::Compared(Compared::ExtraTraffic),
            "ipc" => number(Ratio::Ipc),
            "miss-rate" => share(Ratio::MissRate),
            "misses-per-kilo" => number(Ratio::MissesPerKilo),
            "data-share" => {
                Kind::Derived { ratio: Ratio::MetadataLines, rest: true, percent: true }
            }
            "bus-use" => share(Ratio::BusUse),
            "metadata-traffic" => share(Ratio::MetadataBytes),
            "reencrypted-per-giga-cycle" => number(Ratio::ReencryptedPerGigaCycle),
            "overflows-per-giga-cycle" => number(Ratio::OverflowsPerGigaCycle),
            "read-latency" => number(Ratio::ReadLatency),
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

    /// Its value for a run; `None` where there is nothing to divide by, or no such number.
    #[must_use]
    pub fn of(&self, run: &Counted, baseline: Option<&Counted>) -> Option<f64> {
        match &self.kind {
            Kind::Compared(compared) => compared.of(&run.statistics, &baseline?.statistics),
            Kind::Derived { ratio, rest, .. } => {
                let value = ratio.of(&run.derived)?;
                Some(if *rest { 1.0 - value } else { value })
            }
            Kind::Share(share) => share.of(&run.statistics),
            Kind::Counter(path) => part(&run.statistics.tree(), path)?.as_f64(),
        }
    }
}

impl Ratio {
    fn of(self, derived: &Derived) -> Option<f64> {
        match self {
            Ratio::Ipc => derived.ipc,
            Ratio::MissRate => derived.last_level_miss_rate,
            Ratio::MissesPerKilo => derived.last_level_misses_per_kilo_instruction,
            Ratio::MetadataLines => derived.last_level_metadata_share,
            Ratio::BusUse => derived.bus_busy_share,
            Ratio::MetadataBytes => derived.bus_metadata_share,
            Ratio::ReencryptedPerGigaCycle => derived.reencrypted_blocks_per_giga_cycle,
            Ratio::OverflowsPerGigaCycle => derived.overflows_per_giga_cycle,
            Ratio::ReadLatency => derived.last_level_read_latency_cycles,
        }
    }
}

impl Share {
    fn of(self, statistics: &Statistics) -> Option<f64> {
        match self {
            Share::CounterMisses => {
                let counters = statistics.protection.as_ref()?.counters;
                ratio(counters.misses, counters.misses + counters.hits)
            }
            Share::Writes => {
                let memory = &statistics.machine.memory;
                let written = memory.data_writes.bytes;
                ratio(written, written + memory.data_reads.bytes)
            }
        }
    }
}

impl Compared {
    fn of(self, run: &Statistics, baseline: &Statistics) -> Option<f64> {
        let both = |count: fn(&Statistics) -> u64| (count(run), count(baseline));
        let (ours, theirs) = both(match self {
            Compared::Overhead | Compared::NormalisedIpc | Compared::Gain => |s| s.machine.cycles,
            Compared::MissesIncrease => |s| s.machine.last_level_cache().of(Content::Data).misses(),
            Compared::ExtraTraffic => bus_bytes,
        });
        match self {
            Compared::NormalisedIpc => ratio(theirs, ours),
            Compared::Gain => Some(ratio(theirs, ours)? - 1.0),
            Compared::Overhead | Compared::MissesIncrease | Compared::ExtraTraffic => {
                Some(ratio(ours, theirs)? - 1.0)
            }
        }
    }
}

/// All bytes over the bus.
fn bus_bytes(statistics: &Statistics) -> u64 {
    let memory = &statistics.machine.memory;
    let data = memory.data_reads.bytes + memory.data_writes.bytes;
    data + memory.metadata_reads.bytes + memory.metadata_writes.bytes
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(cycles: u64, metadata_bytes: u64) -> Counted {
        let result = json!({
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
        });
        Counted::of(&result).expect("a result")
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
