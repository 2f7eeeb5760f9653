//! Mixes: against the same programs alone, and against runs that know nothing of mixes.

#[path = "common/machine.rs"]
mod machine;

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use casemate_sim::config::{Layer, Preset, Resolved};
use casemate_sim::experiment::configurations::Configuration;
use casemate_sim::experiment::session::{self, Outcome, Session};
use casemate_sim::experiment::trace_file::TraceFile;
use casemate_sim::machine::processor::mix::Program;
use casemate_sim::results::mix::Mix;
use casemate_sim::trace::format::Writer;
use casemate_sim::trace::synthetic::{Mix as Kind, Synthetic};
use casemate_sim::trace::{Header, Instruction, Reference, Source, TraceError};
use machine::{FLAT, Listed, load, machine as build, plain, small};
use serde::Deserialize;

/// A program that pauses somewhere.
struct Pausing<'a>(Listed<'a>, u64);

impl Source for Pausing<'_> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        self.0.next(into)
    }
}

impl Program for Pausing<'_> {
    fn pause_after(&self) -> u64 {
        self.1
    }
}

fn made_up(kind: Kind, instructions: u64) -> Vec<Instruction> {
    let (mut source, mut one) = (Synthetic::new(kind, 7, instructions), Instruction::default());
    let mut all = Vec::new();
    while source.next(&mut one).expect("it is made up") {
        all.push(one.clone());
    }
    all
}

/// A program on a core of its own, with nothing beside it, is the program that runs straight from
/// its trace: on a machine of one core and on one of three.
#[test]
fn a_mix_of_one_is_the_program_alone() {
    let mut config = small();
    config.hierarchy.memory_bytes = 256 << 20;
    let kind = Kind { walk_bytes: 1 << 16, random_bytes: 1 << 16, ..Kind::HEAVY_WITH_STORES };
    let program = made_up(kind, 20_000);
    for cores in [1, 3] {
        config.core.cores = cores;
        let mut straight = build(&config, FLAT);
        straight.run_until_instructions(&mut Listed::new(&program), 15_000).expect("it runs");
        let mut mixed = build(&config, FLAT);
        mixed.run_programs(&mut [Pausing(Listed::new(&program), 15_000)]).expect("it runs");
        assert_eq!(mixed.progress(0).instructions, 15_000);
        let (one, other) = (straight.statistics(), mixed.statistics());
        assert!(one.last_level.reads > 500, "{}", one.last_level.reads);
        assert_eq!(one, other, "{cores}");
    }
}

/// Two cores, each two wide: eight instructions of one and four of the other take four cycles and
/// two. Each pauses by itself, and goes on if it is asked to.
#[test]
fn each_program_pauses_after_its_own_instructions() {
    let mut config = small();
    config.core.cores = 2;
    let programs = [vec![plain(); 8], vec![plain(); 4]];
    let mut mixed = build(&config, FLAT);
    let mut sources =
        [Pausing(Listed::new(&programs[0]), u64::MAX), Pausing(Listed::new(&programs[1]), 2)];
    mixed.run_programs(&mut sources).expect("it runs");
    let paused = mixed.progress(1);
    assert_eq!((paused.instructions, paused.cycles), (2, 0));
    sources[1].1 = u64::MAX;
    mixed.run_programs(&mut sources).expect("it runs");
    mixed.finish().expect("it ends");
    assert_eq!([0, 1].map(|core| mixed.progress(core).cycles), [4, 2]);
}

struct Traces {
    folder: PathBuf,
    traces: Vec<TraceFile>,
}

impl Traces {
    fn new(name: &str, programs: &[(&str, Vec<Instruction>)]) -> Traces {
        let name = format!("casemate-mix-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let write = |(name, program): &(&str, Vec<Instruction>)| {
            let path = folder.join(format!("{name}.casetrace"));
            let file = File::create(&path).expect("the folder is ours");
            let mut writer = Writer::new(file, &Header::default()).expect("it is written");
            program.iter().for_each(|one| writer.write(one).expect("it is written"));
            writer.finish().expect("it is written");
            TraceFile::look_at(&path, None).expect("it is a trace")
        };
        let traces = programs.iter().map(write).collect();
        Traces { folder, traces }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Silent;

impl session::Progress for Silent {
    fn decoded(&self, _: u64) {}
    fn run_done(&self) {}
}

fn configuration(sets: &[&str]) -> Configuration {
    let preset = Preset::of_name("aise-bmt").and_then(|preset| preset.layer()).expect("whole");
    let mut resolved = Resolved::new(&[preset]).expect("every key has a value");
    for set in [&["memory.size_bytes=256M", "run.scheme=none"], sets].concat() {
        let layer = Layer::assignment("--set", set).expect("the key takes it");
        resolved = resolved.with(&layer).expect("every key has a value");
    }
    resolved.into()
}

fn outcome(traces: &Traces, programs: &[usize], sets: &[&str]) -> Outcome {
    let stop = AtomicBool::new(false);
    let session =
        Session { store: None, jobs: Some(2), force: false, leaves_results: false, stop: &stop };
    let configurations = [configuration(sets)];
    session.run_mix(&traces.traces, programs, &configurations, |_| Silent).expect("it is a mix")
}

fn mix(traces: &Traces, programs: &[usize], sets: &[&str]) -> Mix {
    let outcome = outcome(traces, programs, sets);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    let result = outcome.entries[0].result.as_ref().expect("it has a result");
    Mix::deserialize(&result["mix"]).expect("it is of a mix")
}

/// A walk through so many bytes, one load in three instructions.
fn walk(bytes: u64, step_bytes: u64, loads: u64) -> Vec<Instruction> {
    let one = |i: u64| [load(0x10_0000 + i * step_bytes % bytes), plain(), plain()];
    (0..loads).flat_map(one).collect()
}

/// What fits the first levels is disturbed by nothing, whatever is beside it; but a region begins
/// and ends within a cycle, of which either counts as a whole.
#[test]
fn programs_that_share_nothing_are_as_fast_as_alone() {
    let traces =
        Traces::new("small", &[("a", walk(8 << 10, 8, 20_000)), ("b", walk(16 << 10, 16, 20_000))]);
    let sets = ["run.warmup_instructions=10000", "run.length_instructions=30000"];
    for scheme in ["run.scheme=none", "run.scheme=aise+bmt"] {
        let mix = mix(&traces, &[0, 1, 0, 1], &[&sets[..], &[scheme]].concat());
        assert_eq!(mix.programs, ["a", "b", "a", "b"]);
        assert_eq!(mix.instructions, [30_000; 4]);
        for (cycles, alone) in mix.cycles.iter().zip(&mix.alone_cycles) {
            assert!(cycles.abs_diff(*alone) <= 1 && *alone >= 10_000, "{mix:?}");
        }
        assert!((mix.weighted_speedup - 4.0).abs() < 1e-3, "{mix:?}");
        assert!(mix.harmonic_mean_speedup > 0.999 && mix.fairness > 0.999, "{mix:?}");
    }
}

/// Each of two walks through 3/4 of the second level: alone it hits, together they push each other
/// out. In a level of twice the size they do not.
#[test]
fn programs_that_share_a_cache_push_each_other_out() {
    let traces = Traces::new("pushing", &[("a", walk(192 << 10, 64, 12_000))]);
    let sets = ["run.warmup_instructions=12000", "l2.ways=16"];
    let of = |size, others: &[&str]| {
        mix(&traces, &[0, 0], &[&sets[..], &[size], others].concat()).speedup
    };
    let small = of("l2.size_bytes=256K", &[]);
    assert!(small.iter().all(|speedup| *speedup < 0.6), "{small:?}");
    let large = of("l2.size_bytes=512K", &[]);
    assert!(large.iter().all(|speedup| *speedup > 0.99), "{large:?}");
    let protected = of("l2.size_bytes=256K", &["run.scheme=aise+bmt"]);
    assert!(protected.iter().all(|speedup| *speedup < 0.6), "{protected:?}");
}

/// Two programs in one order and the other: each has its cycles, but for who goes first where both
/// want the bus in a cycle.
#[test]
fn the_order_of_programs_does_not_matter() {
    let kind = |random_bytes| Kind { walk_bytes: 1 << 20, random_bytes, ..Kind::HEAVY_WITH_STORES };
    let traces = Traces::new(
        "order",
        &[("a", made_up(kind(1 << 20), 40_000)), ("b", made_up(kind(4 << 20), 40_000))],
    );
    let sets = ["run.length_instructions=30000", "run.scheme=aise+bmt"];
    let (one, other) = (mix(&traces, &[0, 1], &sets), mix(&traces, &[1, 0], &sets));
    assert_eq!(one.alone_cycles, [other.alone_cycles[1], other.alone_cycles[0]]);
    for (a, b) in [(one.cycles[0], other.cycles[1]), (one.cycles[1], other.cycles[0])] {
        assert!(a.abs_diff(b) * 100 <= a, "{one:?} {other:?}");
    }
    assert!(one.speedup.iter().all(|speedup| *speedup < 1.0), "{one:?}");
    // The same again is the same.
    assert_eq!(mix(&traces, &[0, 1], &sets), one);
}

/// A program of 3,000 instructions beside one of 60,000: it runs on until that was measured, so the
/// machine does some twenty times its instructions; it is measured once, over its trace.
#[test]
fn a_short_program_goes_on_beside_a_long_one() {
    let traces = Traces::new(
        "long",
        &[("short", walk(1 << 20, 64, 1000)), ("long", walk(1 << 20, 64, 20_000))],
    );
    let found = outcome(&traces, &[0, 1], &[]);
    let result = found.entries[0].result.as_ref().expect("it has a result");
    let mix = Mix::deserialize(&result["mix"]).expect("it is of a mix");
    assert_eq!(mix.instructions, [3000, 60_000]);
    let all = result["statistics"]["instructions"].as_u64().expect("a number");
    assert!(all > 63_000 + 20_000, "{all}");
    assert_eq!(result["trace_ended"], true);
    assert_eq!(result["trace"]["name"], "short+long");
}

/// Parts of a trace: the region is what is left after what is skipped and the warm-up.
#[test]
fn limits_are_of_each_program() {
    let traces = Traces::new("limits", &[("a", walk(1 << 16, 8, 5000))]);
    let sets =
        |skip| ["run.warmup_instructions=3000".to_owned(), format!("run.skip_instructions={skip}")];
    let of = |skip| {
        let sets = sets(skip);
        outcome(&traces, &[0, 0], &[&sets[0], &sets[1]])
    };
    let result = of(6000).entries[0].result.clone().expect("it has a result");
    assert_eq!(result["mix"]["instructions"], serde_json::json!([6000, 6000]));
    let sentence = |outcome: Outcome| outcome.failures[0].to_string();
    assert!(sentence(of(12_000)).contains("run.warmup_instructions is 3000"));
    let nothing = sentence(of(15_000));
    assert!(
        nothing.contains("has no instructions behind run.skip_instructions = 15000"),
        "{nothing}"
    );
}

#[test]
fn requests_are_no_program() {
    let request = Instruction { arrival_cycle: Some(5), ..load(0) };
    let traces = Traces::new("requests", &[("a", vec![request])]);
    let failures = outcome(&traces, &[0], &[]).failures;
    assert!(failures[0].to_string().contains("cannot be a program of a mix"), "{failures:?}");
}

/// Addresses of the kernel, in the highest half, are each program's own too.
#[test]
fn programs_have_memory_of_their_own() {
    let high = |i: u64| Instruction {
        references: vec![Reference::store(0xffff_8000_0000_0000 + i % 64 * 4096, 8)],
        ..plain()
    };
    let low =
        |i: u64| Instruction { references: vec![Reference::load(i % 64 * 4096, 8)], ..plain() };
    let traces = Traces::new(
        "spaces",
        &[("high", (0..2000).map(high).collect()), ("low", (0..2000).map(low).collect())],
    );
    let found = outcome(&traces, &[0, 1, 0], &["run.scheme=otp-lru", TAGGED]);
    let result = found.entries[0].result.as_ref().expect("it has a result");
    // From cycle 0 on, since there is no warm-up.
    assert_eq!(result["statistics"]["pages_touched"], 3 * 64);
    let coherence = &result["statistics"]["last_level"]["coherence_misses"];
    assert_eq!(coherence, 0, "nothing is shared");
}

/// A Sequence Number Cache that knows which process an entry is of.
const TAGGED: &str = "protection.snc_on_switch=tag";

/// The same program twice stores to twice as many lines, which have twice as many sequence numbers,
/// though their virtual addresses are the same: each is missed once, with its first write-back.
#[test]
fn programs_have_sequence_numbers_of_their_own() {
    let stores = |i: u64| Instruction {
        references: vec![Reference::store(0x10_0000 + i * 64 % (4 << 20), 8)],
        ..plain()
    };
    let traces = Traces::new("numbers", &[("stores", (0..150_000).map(stores).collect())]);
    let sets = ["run.scheme=otp-lru", TAGGED, "protection.sequence_numbers_bytes=2M"];
    let numbers = |programs: &[usize]| {
        let found = outcome(&traces, programs, &sets);
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        let result = found.entries[0].result.as_ref().expect("it has a result");
        let unit = &result["statistics"]["protection"];
        let of = |name: &str| unit[name].as_u64().expect("it is counted");
        (of("sequence_number_misses"), of("pages_touched"))
    };
    let (alone, pages) = numbers(&[0]);
    assert!(alone > 10_000 && pages == 1024, "{alone} misses, {pages} pages");
    let (both, pages) = numbers(&[0, 0]);
    assert_eq!(pages, 2048);
    // Of all lines that were written back once; when the last have been, the mix ends.
    let ratio = both as f64 / alone as f64;
    assert!((1.9..=2.1).contains(&ratio), "{both} of two, {alone} of one");
}

/// What cannot be is said before anything is run.
#[test]
fn a_sequence_number_cache_without_tags_serves_one_program() {
    let traces = Traces::new("tags", &[("walk", walk(4096, 64, 100))]);
    let stop = AtomicBool::new(false);
    let session =
        Session { store: None, jobs: Some(1), force: false, leaves_results: false, stop: &stop };
    let refused = |programs: &[usize], sets: &[&str]| {
        let configurations = [configuration(sets)];
        let found = session.run_mix(&traces.traces, programs, &configurations, |_| Silent);
        found.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&[0], &["run.scheme=otp-lru"]), "");
    let sentence = refused(&[0, 0], &["run.scheme=otp-lru"]);
    assert!(sentence.contains("snc_on_switch"), "{sentence}");
    let switches = "protection.switch_interval_instructions=50";
    let sentence = refused(&[0, 0], &["run.scheme=aise+bmt", switches]);
    assert!(sentence.contains("switch_interval_instructions"), "{sentence}");
}
