//! Sampled runs against the same runs in detail from beginning to end, judged by the intervals.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use casemate_core::random::Random;
use casemate_sim::config::{Layer, Preset, Resolved};
use casemate_sim::experiment::batch::{Listener, Run, run_on};
use casemate_sim::experiment::run::{Limits, Measured, RunError};
use casemate_sim::experiment::simulated;
use casemate_sim::results::derived::BusTime;
use casemate_sim::results::document::Document;
use casemate_sim::results::estimates::{self, Sampling};
use casemate_sim::results::provenance::{Casemate, Provenance, TraceIdentity};
use casemate_sim::results::statistics::Statistics;
use casemate_sim::results::tree;
use casemate_sim::trace::synthetic::{Mix, Synthetic};
use casemate_sim::trace::{Header, Instruction, Source, TraceError};
use serde_json::Value;

const INSTRUCTIONS: u64 = 3_000_000;
const WARMUP: u64 = 200_000;

/// A program of phases of 1 to 100 thousand instructions, each heavy or light.
struct Phases {
    mixes: [Synthetic; 2],
    random: Random,
    phase: usize,
    left: u64,
    made: u64,
}

impl Phases {
    fn new() -> Phases {
        let mix = |mix| Synthetic::new(mix, 1, u64::MAX);
        let heavy = Mix { walk_bytes: 4 << 20, random_bytes: 8 << 20, ..Mix::HEAVY_WITH_STORES };
        let mixes = [mix(Mix { reference_every: 3, ..heavy }), mix(Mix::LIGHT)];
        Phases { mixes, random: Random::new(5), phase: 0, left: 0, made: 0 }
    }
}

impl Source for Phases {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.made == INSTRUCTIONS {
            return Ok(false);
        }
        if self.left == 0 {
            self.left = 1000 + self.random.below(100_000);
            self.phase = self.random.index(2);
        }
        (self.left, self.made) = (self.left - 1, self.made + 1);
        self.mixes[self.phase].next(into)
    }
}

fn config(scheme: &str, sets: &[String]) -> Resolved {
    let base = Preset::of_name("aise-bmt").and_then(|preset| preset.layer()).expect("it is whole");
    let own = [format!("run.scheme={scheme}"), format!("run.warmup_instructions={WARMUP}")];
    let sets = own.iter().chain(sets);
    let sets = sets.map(|set| Layer::assignment("--set", set).expect("the key takes it"));
    let layers: Vec<Layer> = [base].into_iter().chain(sets).collect();
    Resolved::new(&layers).expect("every key has a value")
}

#[derive(Default)]
struct Outcomes(Mutex<Vec<(usize, Result<Measured, String>)>>);

impl Listener for Outcomes {
    fn decoded(&self, _instructions: u64, _runs: usize) {}

    fn done(&self, id: usize, outcome: Result<Measured, RunError>) {
        let outcome = outcome.map_err(|error| error.to_string());
        self.0.lock().expect("no thread panics").push((id, outcome));
    }

    fn broken(&self, _ids: &[usize], error: Box<dyn std::error::Error + Send + Sync>) {
        panic!("{error}");
    }
}

/// The results of configurations, as they are written.
fn results(configs: &[Resolved]) -> Vec<Result<Value, String>> {
    let run = |(id, config): (usize, &Resolved)| {
        let (limits, config) = (Limits::of(config, Some(INSTRUCTIONS)), config.clone());
        Run { id, limits, build: Box::new(move || simulated::build(&config)) }
    };
    let runs = configs.iter().enumerate().map(run).collect();
    let outcomes = Outcomes::default();
    run_on(&mut Phases::new(), 0, runs, &AtomicBool::new(false), &outcomes);
    let mut done = outcomes.0.into_inner().expect("no thread panics");
    done.sort_by_key(|(id, _)| *id);
    let document = |(id, measured): (usize, Result<Measured, String>)| {
        let config = &configs[id];
        let casemate = Casemate { version: "0".into(), sources: "unknown".into() };
        let trace = TraceIdentity::of("phases", "made up", Some([7; 32]), &Header::default());
        let provenance = Provenance { casemate, trace, config: config.json() };
        Ok(Document::new(config.text("run.scheme"), provenance, measured?).json())
    };
    done.into_iter().map(document).collect()
}

fn sampled(scheme: &str, seed: u64) -> Resolved {
    let sets = ["sample_windows=24", "sample_window_instructions=5000"];
    let mut sets: Vec<String> = sets.iter().map(|set| format!("run.{set}")).collect();
    sets.push("run.sample_warmup_instructions=4000".to_owned());
    sets.push(format!("run.seed={seed}"));
    config(scheme, &sets)
}

/// Of twenty samples of 24 windows each, 19 intervals of 95 % are expected to hold what the whole
/// run counted. That fewer than 16 do has a chance of 0.3 %, if intervals are right; the seeds are
/// always the same. Matched pairs are closer to each other than the runs are to themselves.
///
/// The miss rate is left to the next test: a few windows, when the walk begins anew, are far below
/// all others. A sample without them knows nothing of that, and only 13 of its intervals hold.
#[test]
fn intervals_hold_what_the_run_in_detail_counts() {
    const SAMPLES: usize = 20;
    let mut configs = vec![config("none", &[]), config("aise+bmt", &[])];
    for seed in 1..=SAMPLES as u64 {
        configs.extend([sampled("none", seed), sampled("aise+bmt", seed)]);
    }
    let results: Vec<Value> = results(&configs).into_iter().map(|r| r.expect("it runs")).collect();
    let whole = |of: &Value| Statistics::of(&of["statistics"]).expect("counters").machine;
    let truth = [whole(&results[0]), whole(&results[1])];
    let cpi = truth.each_ref().map(|one| one.cycles as f64 / one.instructions as f64);
    let overhead = cpi[1] / cpi[0] - 1.0;
    assert!(overhead > 0.05, "{overhead}");
    let names = ["ipc", "last_level_misses_per_kilo_instruction", "bus_bytes_per_kilo_instruction"];
    let mut held = [0; 6];
    let mut narrower = 0;
    for pair in results[2..].chunks(2) {
        let [none, scheme] = pair else { panic!("two of each seed") };
        let samplings = [none, scheme].map(|one| Sampling::read(one).expect("it is sampled"));
        assert_eq!((samplings[0].windows, samplings[0].of_windows), (24, Some(560)));
        let holds = |interval: casemate_sim::results::interval::Interval, truth: f64| {
            let half_width = interval.half_width.expect("of 24 windows");
            assert!(half_width > 0.0 && half_width < interval.mean.abs(), "{interval:?}");
            usize::from((interval.mean - truth).abs() <= half_width)
        };
        let found = samplings.each_ref().map(|sampling| sampling.cpi.expect("cycles"));
        held[0] += holds(found[0], cpi[0]);
        held[1] += holds(found[1], cpi[1]);
        let difference = estimates::overhead(scheme, none).expect("the same windows");
        held[2] += holds(difference, overhead);
        let apart = found[1].half_width.expect("of 24 windows") / found[0].mean;
        narrower += usize::from(difference.half_width.expect("of 24 windows") < apart);
        for (at, name) in names.iter().enumerate() {
            let truth = results[1]["derived"][name].as_f64().expect("a ratio");
            held[3 + at] += holds(samplings[1].ratio(name).expect("a ratio"), truth);
        }
    }
    assert!(held.iter().all(|held| *held >= 16), "{held:?} of {SAMPLES}");
    assert_eq!(narrower, SAMPLES);
}

/// Samples with each of the 23 first windows that there can be measure every window once: together
/// they are the run, but for what warming and the short warm-up in detail leave out.
#[test]
fn samples_are_right_on_average() {
    let mut by_place: Vec<(u64, Resolved)> = Vec::new();
    for seed in 1.. {
        let config = sampled("aise+bmt", seed);
        let sampling = Limits::of(&config, Some(INSTRUCTIONS)).sampling.expect("it is sampled");
        let (first, _) = sampling.places().expect("there are enough")[0];
        if by_place.iter().all(|(place, _)| *place != first) {
            by_place.push((first, config));
        }
        if by_place.len() == 23 {
            break;
        }
    }
    let mut configs = vec![config("aise+bmt", &[])];
    configs.extend(by_place.into_iter().map(|(_, config)| config));
    let results: Vec<Value> = results(&configs).into_iter().map(|r| r.expect("it runs")).collect();
    let count = |of: &Value, path: &str| tree::count(&of["statistics"], path) as f64;
    // 23 times 24 windows are 552 of the region's 560: the last 40,000 instructions are in none.
    let part = |path: &str| {
        let sum: f64 = results[1..].iter().map(|result| count(result, path)).sum();
        sum / count(&results[0], path)
    };
    assert!((part("instructions") - 552.0 / 560.0).abs() < 1e-6, "{}", part("instructions"));
    for path in [
        "cycles",
        "last_level.reads",
        "l2.cache.data.read_misses",
        "memory.data_reads.bytes",
        "memory.metadata_reads.bytes",
        "protection.counters.misses",
        "protection.mac_operations",
    ] {
        let of_instruction = part(path) / part("instructions");
        assert!((of_instruction - 1.0).abs() < 0.02, "{path}: {of_instruction}");
    }
}

/// If all windows are measured, the sample is the run: each instruction once, and no interval.
#[test]
fn a_sample_of_everything_is_the_run() {
    let all = (INSTRUCTIONS - WARMUP) / 100_000;
    let sets =
        [format!("run.sample_windows={all}"), "run.sample_window_instructions=100000".into()];
    let results = results(&[config("aise+bmt", &[]), config("aise+bmt", &sets)]);
    let [whole, sample] = results.as_slice() else { panic!("two runs") };
    let (whole, sample) = (whole.as_ref().expect("it runs"), sample.as_ref().expect("it runs"));
    let cycles = |of: &Value| of["statistics"]["cycles"].as_f64().expect("cycles");
    assert_eq!(whole["statistics"]["instructions"], sample["statistics"]["instructions"]);
    // The warm-up took no time, so the first window begins a little otherwise.
    assert!((cycles(whole) / cycles(sample) - 1.0).abs() < 0.002);
    let sampling = Sampling::read(sample).expect("it is sampled");
    assert_eq!(sampling.cpi.and_then(|cpi| cpi.half_width), Some(0.0));
    assert_eq!(sample["samples"].as_array().map(Vec::len), Some(all as usize));
    assert_eq!(BusTime::of(&sample["config"]), BusTime::of(&whole["config"]));
}

#[test]
fn what_cannot_be_sampled_says_why() {
    let too_many = config("none", &["run.sample_windows=1000".to_owned()]);
    let refused = results(&[too_many]).remove(0).expect_err("there are 140");
    assert!(refused.contains("1000") && refused.contains("140 windows of 20000"), "{refused}");
    let limits = Limits::of(&config("none", &["run.sample_windows=3".to_owned()]), None);
    let refused = limits.sampling.expect("it is sampled").places().expect_err("it has no end");
    assert!(refused.to_string().contains("run.length_instructions"), "{refused}");
}
