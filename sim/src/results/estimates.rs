//! A sampled run's estimates: of each ratio, and of each counter for an instruction. Of windows that
//! were chosen (SimPoint) they are weighted means.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::derived::{BusTime, NAMES, ratios};
use super::interval::{Interval, Ratio, estimate, weighted};
use super::statistics::Statistics;
use super::table::Table;
use super::tree::flatten;
use crate::experiment::run::{Sample, Sampled};
use crate::experiment::unseen::Unseen;

/// A sample that is not enough grows by at least this part of it: each further one is a whole run.
const LEAST_GROWTH: u64 = 8;

/// Of which windows a sampled run has its counters, and what they say of the region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// How many windows were measured.
    pub windows: u64,
    /// How many the region has, measured or not, if its end is known.
    pub of_windows: Option<u64>,
    /// Cycles for an instruction.
    pub cpi: Option<Interval>,
    /// What no window met, if they were spread over the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Unseen>,
    /// What the weights of windows that were chosen sum to: the share of the region that they stand
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_sum: Option<f64>,
    /// Of each of the ratios in `derived` that the machine has, by its name.
    pub derived: Map<String, Value>,
}

impl Sampling {
    /// From what was counted in each window.
    #[must_use]
    pub fn of(windows: &[Sample], sampled: Sampled, bus: &BusTime) -> Sampling {
        let Sampled { of_windows, unseen } = sampled;
        let weights: Option<Vec<f64>> = windows.iter().map(|window| window.weight).collect();
        let weights_sum = weights.as_ref().map(|weights| weights.iter().sum());
        let share = share(windows.len() as u64, of_windows);
        let design = Design { weights, share };
        let of_each: Vec<_> =
            windows.iter().map(|window| ratios(&window.statistics, bus)).collect();
        let mut derived = Map::new();
        for (at, name) in NAMES.iter().enumerate() {
            let known: Option<Vec<(f64, Ratio)>> =
                of_each.iter().map(|ratios| ratios[at]).collect();
            let known = known.unwrap_or_default();
            let ratios: Vec<Ratio> = known.iter().map(|(_, ratio)| *ratio).collect();
            let times = known.first().map_or(1.0, |(times, _)| *times);
            let interval = design.estimate(&ratios).map(|interval| interval.times(times));
            derived.insert((*name).to_owned(), json!(interval));
        }
        let cpi: Vec<Ratio> = windows.iter().map(|window| cpi(&window.statistics)).collect();
        let (cpi, windows) = (design.estimate(&cpi), windows.len() as u64);
        Sampling { windows, of_windows, cpi, unseen, weights_sum, derived }
    }

    /// Of a result's file; none if its run was not sampled.
    #[must_use]
    pub fn read(result: &Value) -> Option<Sampling> {
        Sampling::deserialize(&result["sampling"]).ok()
    }

    /// One of the ratios.
    #[must_use]
    pub fn ratio(&self, name: &str) -> Option<Interval> {
        Interval::deserialize(self.derived.get(name)?).ok()
    }

    /// How many of the windows there are that were measured; 0 of a region without end.
    #[must_use]
    pub fn share(&self) -> f64 {
        share(self.windows, self.of_windows)
    }

    /// By what share of itself the CPI can be another, in each direction: half of its interval, and
    /// what no window met.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        let cpi = self.cpi?;
        Some(cpi.relative()? + self.unseen_of(cpi))
    }

    fn unseen_of(&self, cpi: Interval) -> f64 {
        self.unseen.map_or(0.0, |unseen| unseen.cycles_per_instruction / cpi.mean)
    }

    /// How many windows it takes until the CPI is [known](Self::relative) as closely as that: the
    /// interval's width falls with the root of their number, what is unseen with their number.
    #[must_use]
    pub fn wanted_windows(&self, error: f64) -> Option<u64> {
        if self.relative()? <= error {
            return Some(self.windows);
        }
        let cpi = self.cpi?;
        // Without the part that a large share of the region takes off.
        let of_few = cpi.relative()? / (1.0 - self.share()).sqrt();
        let unseen = self.unseen_of(cpi);
        // of_few * x + unseen * x^2 = error, of x = sqrt(windows / wanted).
        let root = 2.0 * error / (of_few + of_few.mul_add(of_few, 4.0 * unseen * error).sqrt());
        let wanted = self.windows as f64 / root.powi(2);
        let most = self.of_windows.unwrap_or(u64::MAX);
        let more = self.windows + self.windows / LEAST_GROWTH + 1;
        Some((wanted.ceil() as u64).max(more).min(most))
    }
}

fn share(windows: u64, of_windows: Option<u64>) -> f64 {
    of_windows.map_or(0.0, |of_windows| windows as f64 / of_windows.max(1) as f64)
}

/// How windows came to be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// For what share of the region each was chosen, if they were.
    weights: Option<Vec<f64>>,
    /// What share of the region all of them are.
    share: f64,
}

impl Design {
    /// Of a result's file.
    #[must_use]
    pub fn read(result: &Value) -> Design {
        let windows = result["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
        let weights = windows.iter().map(|window| window["weight"].as_f64()).collect();
        let share = Sampling::read(result).map_or(0.0, |sampling| sampling.share());
        Design { weights, share }
    }

    /// What the region's ratio is, by those of the windows.
    #[must_use]
    pub fn estimate(&self, windows: &[Ratio]) -> Option<Interval> {
        match &self.weights {
            Some(weights) => weighted(weights.iter().copied().zip(windows.iter().copied())),
            None => estimate(windows, self.share),
        }
    }
}

fn cpi(window: &Statistics) -> Ratio {
    Ratio { part: window.machine.cycles as f64, whole: window.machine.instructions as f64 }
}

/// A row for each counter: how often it counts for an instruction, with its interval.
#[must_use]
pub fn counters(result: &Value) -> Table {
    let windows = result["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
    let leaves: Vec<_> = windows.iter().map(|window| flatten(&window["statistics"])).collect();
    let design = Design::read(result);
    let row = |at: usize, name: &str| {
        let of = |(window, leaves): (&Value, &Vec<(String, Value)>)| {
            let whole = window["statistics"]["instructions"].as_f64()?;
            Some(Ratio { part: leaves.get(at)?.1.as_f64()?, whole })
        };
        let ratios: Option<Vec<Ratio>> = windows.iter().zip(&leaves).map(of).collect();
        let interval = design.estimate(&ratios?)?;
        Some(json!({
            "counter": name,
            "per_instruction": interval.mean,
            "half_width": interval.half_width,
        }))
    };
    let names = leaves.first().map(Vec::as_slice).unwrap_or_default();
    let rows = names.iter().enumerate().filter_map(|(at, (name, _))| row(at, name));
    Table::of(&rows.collect::<Vec<_>>())
}

/// How much longer a run took than another on the same windows, as a share, by matched pairs; none
/// if one was not sampled, or on other windows.
#[must_use]
pub fn overhead(result: &Value, baseline: &Value) -> Option<Interval> {
    Sampling::read(result)?;
    let (ones, others) = (result["samples"].as_array()?, baseline["samples"].as_array()?);
    let pair = |(one, other): (&Value, &Value)| {
        let cycles = |window: &Value| window["statistics"]["cycles"].as_f64();
        let same = one["end_instructions"] == other["end_instructions"];
        same.then_some(Ratio { part: cycles(one)?, whole: cycles(other)? })
    };
    let pairs: Option<Vec<Ratio>> = ones.iter().zip(others).map(pair).collect();
    let pairs = pairs.filter(|_| ones.len() == others.len())?;
    let Interval { mean, half_width } = Design::read(result).estimate(&pairs)?;
    Some(Interval { mean: mean - 1.0, half_width })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(half_width: f64, windows: u64, of_windows: u64) -> Sampling {
        let cpi = Some(Interval { mean: 2.0, half_width: Some(half_width) });
        let (unseen, weights_sum, derived) = (None, None, Map::new());
        Sampling { windows, of_windows: Some(of_windows), cpi, unseen, weights_sum, derived }
    }

    /// 5 % with 30 windows: for 1.01 % it takes 24.507 times as many, 735.2. With 30 of 100 they
    /// are 5.976 % of a few windows' interval: for 4.5 % it takes 1.764 times as many, 52.9.
    #[test]
    fn the_number_of_windows_grows_with_the_square() {
        let of_many = 1 << 40;
        assert_eq!(sampling(0.1, 30, of_many).wanted_windows(0.0101), Some(736));
        assert_eq!(sampling(0.1, 30, of_many).wanted_windows(0.05), Some(30));
        assert_eq!(sampling(0.1, 30, 100).wanted_windows(0.045), Some(53));
        assert_eq!(sampling(0.1, 30, 100).wanted_windows(0.01), Some(100));
        let unknown = Sampling { cpi: None, ..sampling(0.1, 1, 9) };
        assert_eq!(unknown.wanted_windows(0.01), None);
    }

    /// Windows that agree, and 0.2 of 2 cycles that none of 30 met: for 1 % it takes ten times as
    /// many. With an interval of 5 % besides, for 3 %: 0.05 x + 0.1 x^2 = 0.03 has x = 0.352080,
    /// whose square is 0.123960; 30 over that are 242.01.
    #[test]
    fn what_no_window_met_wants_more_of_them() {
        let share = 0.1;
        let unseen = Some(Unseen { share, cycles_per_instruction: 0.2 });
        let agree = Sampling { unseen, ..sampling(0.0, 30, 1 << 40) };
        assert_eq!(agree.relative(), Some(0.1));
        assert_eq!(agree.wanted_windows(0.01), Some(300));
        assert_eq!(agree.wanted_windows(0.1), Some(30));
        assert_eq!(agree.wanted_windows(0.0999), Some(34), "an eighth more at least");
        let both = Sampling { unseen, ..sampling(0.1, 30, 1 << 40) };
        assert_eq!(both.wanted_windows(0.03), Some(243));
    }

    fn result(windows: &[(u64, u64)]) -> Value {
        let samples = windows.iter().enumerate().map(|(at, (instructions, cycles))| {
            let statistics = json!({"instructions": instructions, "cycles": cycles});
            json!({"end_instructions": at, "statistics": statistics})
        });
        result_of(samples.collect())
    }

    fn result_of(samples: Vec<Value>) -> Value {
        let window = |sample: &Value| Sample {
            end_instructions: sample["end_instructions"].as_u64().expect("a number"),
            weight: sample["weight"].as_f64(),
            statistics: Statistics::of(&sample["statistics"]).expect("counters"),
        };
        let windows: Vec<Sample> = samples.iter().map(window).collect();
        let sampled = Sampled { of_windows: Some(1 << 50), unseen: None };
        let sampling = Sampling::of(&windows, sampled, &BusTime::Flat);
        json!({"samples": samples, "sampling": sampling})
    }

    fn weighted_result(windows: &[(u64, u64)], weights: &[f64]) -> Value {
        let mut samples = result(windows)["samples"].clone();
        for (sample, weight) in samples.as_array_mut().expect("windows").iter_mut().zip(weights) {
            sample["weight"] = json!(weight);
        }
        result_of(samples.as_array().expect("windows").clone())
    }

    /// Cycles 110 over 100 and 1320 over 1200: 10 % longer, without doubt.
    #[test]
    fn overheads_are_of_pairs() {
        let (one, other) = (result(&[(50, 110), (50, 1320)]), result(&[(50, 100), (50, 1200)]));
        let found = overhead(&one, &other).expect("the windows are the same");
        assert!((found.mean - 0.1).abs() < 1e-12 && found.half_width.expect("two") < 1e-9);
        assert_eq!(overhead(&one, &result(&[(50, 100)])), None);
        assert_eq!(overhead(&json!({"samples": []}), &other), None);
    }

    /// 100 and 300 cycles for 50 instructions each, a quarter and three quarters of the program: CPI
    /// 2 / 4 + 6 * 3 / 4 = 5. Against 100 and 200 cycles it is 250 / 175.
    #[test]
    fn chosen_windows_are_weighted_everywhere() {
        let one = weighted_result(&[(50, 100), (50, 300)], &[0.25, 0.75]);
        let sampling = Sampling::read(&one).expect("it is sampled");
        assert_eq!(sampling.cpi, Some(Interval { mean: 5.0, half_width: None }));
        assert_eq!(sampling.ratio("ipc").map(|ipc| ipc.mean), Some(0.2));
        let other = weighted_result(&[(50, 100), (50, 200)], &[0.25, 0.75]);
        let found = overhead(&one, &other).expect("the windows are the same");
        assert!((found.mean - (250.0 / 175.0 - 1.0)).abs() < 1e-12);
        assert_eq!(found.half_width, None);
        let table = counters(&one).csv();
        assert!(table.lines().any(|line| line == "cycles,,5.0"), "{table}");
    }

    /// 100 and 300 cycles for 50 instructions each: CPI 4, IPC 0.25; residuals of the CPI -100 and
    /// 100, so the error is sqrt(20000 / 2) / 50 = 2.
    #[test]
    fn ratios_and_counters_have_their_intervals() {
        let result = result(&[(50, 100), (50, 300)]);
        let sampling = Sampling::read(&result).expect("it is sampled");
        let cpi = sampling.cpi.expect("cycles");
        assert!((cpi.mean - 4.0).abs() < 1e-12);
        let half_width = cpi.half_width.expect("of two");
        assert!((half_width - 2.0 * 12.706_205).abs() < 1e-6, "{half_width}");
        assert_eq!(sampling.ratio("ipc").map(|ipc| ipc.mean), Some(0.25));
        assert_eq!(sampling.ratio("last_level_miss_rate"), None);
        let table = counters(&result).csv();
        assert!(table.starts_with("counter,half_width,per_instruction\n"), "{table}");
        let cycles = table.lines().find(|line| line.starts_with("cycles,")).expect("a row");
        assert!(cycles.starts_with("cycles,25.41") && cycles.ends_with(",4.0"), "{cycles}");
    }
}
