//! Results: the same in all formats, found again by what they depend on, and the same bytes every
//! time.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use casemate_schemes::catalogue::SCHEMES;
use casemate_sim::config::{Layer, Preset, Resolved};
use casemate_sim::experiment::batch::{Batch, Listener, Opened, Run};
use casemate_sim::experiment::run::{Limits, Measured, RunError};
use casemate_sim::experiment::store::{self, Store, StoreError};
use casemate_sim::experiment::{simulated, sweep};
use casemate_sim::results::derived::{BusTime, Derived};
use casemate_sim::results::document::{self, Document};
use casemate_sim::results::parquet;
use casemate_sim::results::provenance::{Casemate, Provenance, TraceIdentity};
use casemate_sim::results::table::{Cell, Table};
use casemate_sim::results::tree::{columns, count, flatten};
use casemate_sim::trace::{Header, Instruction, Reference, Source, TraceError};
use serde_json::Value;

/// A program that walks through memory; or breaks off after so many instructions.
struct Walk {
    next: u64,
    end: u64,
    breaks_off: bool,
}

impl Source for Walk {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.next == self.end {
            let broken = TraceError::Truncated { offset: 77, what: "a block" };
            return if self.breaks_off { Err(broken) } else { Ok(false) };
        }
        into.clear();
        into.pc = 0x40_0000 + self.next % 64 * 4;
        into.length_bytes = 4;
        let address = 0x10_0000 + self.next * 24 % (4 << 20);
        match self.next % 4 {
            0 => into.references.push(Reference::load(address, 8)),
            1 => into.references.push(Reference::store(address, 8)),
            _ => {}
        }
        self.next += 1;
        Ok(true)
    }
}

/// Keeps what runs come to.
#[derive(Default)]
struct Outcomes {
    done: Mutex<Vec<(usize, Result<Measured, String>)>>,
    broken: Mutex<Vec<(Vec<usize>, String)>>,
}

impl Listener for Outcomes {
    fn decoded(&self, _instructions: u64, _runs: usize) {}

    fn done(&self, id: usize, outcome: Result<Measured, RunError>) {
        let outcome = outcome.map_err(|error| error.to_string());
        self.done.lock().expect("no thread panics").push((id, outcome));
    }

    fn broken(&self, ids: &[usize], error: Box<dyn std::error::Error + Send + Sync>) {
        self.broken.lock().expect("no thread panics").push((ids.to_vec(), error.to_string()));
    }
}

fn config(sets: &[&str]) -> Resolved {
    let base = Preset::of_name("lhash").and_then(|preset| preset.layer()).expect("it is whole");
    let mut layers = vec![base];
    for set in ["run.scheme=none", "run.seed=1"].iter().chain(sets) {
        layers.push(Layer::assignment("--set", set).expect("the key takes it"));
    }
    Resolved::new(&layers).expect("every key has a value")
}

fn batch(ids: std::ops::Range<usize>, limits: Limits, end: u64, breaks_off: bool) -> Batch {
    batch_on(&config(&[]), ids, limits, end, breaks_off)
}

fn batch_on(
    config: &Resolved,
    ids: std::ops::Range<usize>,
    limits: Limits,
    end: u64,
    breaks_off: bool,
) -> Batch {
    let run = |id| {
        let config = config.clone();
        Run { id, limits: limits.clone(), build: Box::new(move || simulated::build(&config)) }
    };
    Batch {
        open: Box::new(move || {
            Ok(Opened { source: Box::new(Walk { next: 0, end, breaks_off }), first: 0 })
        }),
        runs: ids.map(run).collect(),
    }
}

fn measured(limits: Limits, end: u64) -> Measured {
    measured_on(&config(&[]), limits, end)
}

fn measured_on(config: &Resolved, limits: Limits, end: u64) -> Measured {
    let outcomes = Outcomes::default();
    let batch = batch_on(config, 0..1, limits, end, false);
    sweep::run(vec![batch], 1, &AtomicBool::new(false), &outcomes);
    let mut done = outcomes.done.into_inner().expect("no thread panics");
    done.pop().expect("one run").1.expect("it runs")
}

fn limits(warmup: u64, length: u64, every: u64) -> Limits {
    let some = |number| (number > 0).then_some(number);
    Limits {
        warmup_instructions: warmup,
        length_instructions: some(length),
        every_instructions: some(every),
        sampling: None,
    }
}

fn result() -> Document {
    result_on(&config(&[]), limits(1000, 5000, 2000), 10_000)
}

fn result_on(config: &Resolved, limits: Limits, end: u64) -> Document {
    let trace = TraceIdentity::of("walk, \"far\"", "casemate", Some([7; 32]), &Header::default());
    let casemate = Casemate { version: "0".into(), sources: "unknown".into() };
    let provenance = Provenance { casemate, trace, config: config.json() };
    Document::new(config.text("run.scheme"), provenance, measured_on(config, limits, end))
}

fn write(store: &Store, document: &Document, toml: &str) -> Result<PathBuf, StoreError> {
    store.write(&document.scheme, &document.provenance, &document.json(), toml)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("casemate-results-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The cells of a CSV text, by a reader that knows quotes.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                cell.push(letters.next().expect("it was seen"))
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    rows
}

#[test]
fn json_csv_and_parquet_agree_value_by_value() {
    let folder = Folder::new("formats");
    let store = Store::open(&folder.0).expect("a folder");
    let place = write(&store, &result(), &config(&[]).toml()).expect("it is written");
    let json: Value =
        serde_json::from_slice(&fs::read(place.join("result.json")).expect("it is there"))
            .expect("it is JSON");
    let mut bare = json.clone();
    bare.as_object_mut().expect("an object").remove("samples");
    let rows = csv(&fs::read_to_string(place.join("result.csv")).expect("it is there"));
    assert_eq!(rows.len(), 2);
    let file = fs::File::open(place.join("result.parquet")).expect("it is there");
    let reader = SerializedFileReader::new(file).expect("it is Parquet");
    let row =
        reader.get_row_iter(None).expect("it has rows").next().expect("one").expect("it is read");
    let fields: Vec<(&String, &Field)> = row.get_column_iter().collect();
    let leaves = columns(&bare);
    assert!(leaves.len() > 150, "{} leaves", leaves.len());
    assert!(leaves.iter().any(|(_, leaf)| leaf.is_array()), "no histogram");
    assert_eq!((rows[0].len(), fields.len()), (leaves.len(), leaves.len()));
    for (i, (name, leaf)) in leaves.iter().enumerate() {
        assert_eq!((&rows[0][i], fields[i].0), (name, name));
        let (text, field) = (rows[1][i].as_str(), fields[i].1);
        match leaf {
            Value::Null => {
                assert!(text.is_empty() && *field == Field::Null, "{name}: {text} {field}")
            }
            Value::Bool(flag) => {
                assert_eq!(
                    (text, field),
                    (flag.to_string().as_str(), &Field::Bool(*flag)),
                    "{name}"
                );
            }
            Value::String(string) => {
                assert_eq!((text, field), (string.as_str(), &Field::Str(string.clone())), "{name}");
            }
            Value::Array(_) => {
                let Field::ListInternal(list) = field else { panic!("{name}: {field}") };
                let count = |field: &Field| match field {
                    Field::ULong(count) => Value::from(*count),
                    other => panic!("{name}: {other}"),
                };
                let list: Vec<Value> = list.elements().iter().map(count).collect();
                assert_eq!((text, &Value::Array(list)), (leaf.to_string().as_str(), leaf));
            }
            Value::Number(number) if number.is_u64() => {
                let number = number.as_u64().expect("it was asked");
                assert_eq!((text.parse(), field), (Ok(number), &Field::ULong(number)), "{name}");
            }
            other => {
                let real = other.as_f64().expect("the only kind left");
                assert_eq!((text.parse(), field), (Ok(real), &Field::Double(real)), "{name}");
            }
        }
    }
}

#[test]
fn samples_add_up_to_the_region_and_warm_up_is_apart() {
    let measured = measured(limits(1000, 5000, 2000), 10_000);
    assert!(measured.whole);
    let ends: Vec<u64> = measured.samples.iter().map(|sample| sample.end_instructions).collect();
    assert_eq!(ends, [2000, 4000, 5000]);
    assert_eq!(measured.warmup.machine.instructions, 1000);
    assert_eq!(measured.region.machine.instructions, 5000);
    let samples: Vec<Value> = measured.samples.iter().map(|one| one.statistics.tree()).collect();
    for (name, whole) in flatten(&measured.region.tree()) {
        let parts: u64 = samples.iter().map(|sample| count(sample, &name)).sum();
        assert_eq!(whole.as_u64().unwrap_or(0), parts, "{name}");
    }
    // One instruction of four loads, whatever the warm-up was.
    assert_eq!(measured.region.machine.cores[0].loads, 1250);
}

#[test]
fn a_trace_that_ends_early_is_said_to() {
    let measured = measured(limits(0, 0, 0), 3000);
    assert!(!measured.whole);
    assert_eq!(measured.region.machine.instructions, 3000);
    let outcomes = Outcomes::default();
    let batches = vec![batch(0..1, limits(4000, 0, 0), 3000, false)];
    sweep::run(batches, 1, &AtomicBool::new(false), &outcomes);
    let done = outcomes.done.into_inner().expect("no thread panics");
    let sentence = done[0].1.as_ref().expect_err("the warm-up is longer than the trace");
    assert!(
        sentence.contains("3000") && sentence.contains("run.warmup_instructions"),
        "{sentence}"
    );
}

#[test]
fn the_same_inputs_give_the_same_bytes_whatever_runs_beside() {
    let lonely = result().json().to_string();
    let limits = limits(1000, 5000, 2000);
    let outcomes = Outcomes::default();
    let batches =
        vec![batch(0..3, limits.clone(), 10_000, false), batch(3..4, limits, 10_000, false)];
    sweep::run(batches, 2, &AtomicBool::new(false), &outcomes);
    let done = outcomes.done.into_inner().expect("no thread panics");
    assert_eq!(done.len(), 4);
    for (_, outcome) in done {
        let mut document = result();
        let measured = outcome.expect("it runs");
        document.statistics = measured.region;
        document.samples = measured.samples;
        let bus = BusTime::of(&document.provenance.config);
        document.derived = Derived::of(&document.statistics, &bus);
        assert_eq!(document.json().to_string(), lonely);
    }
    let table = |document: &Document| {
        parquet::bytes(&document::table([&document.json()])).expect("it is made")
    };
    assert_eq!(table(&result()), table(&result()));
}

/// A number that changes is a change of the simulated machine: of published results too.
#[test]
fn results_of_all_schemes_are_those_on_record() {
    let mut found = String::new();
    for scheme in SCHEMES.iter().map(|named| &*named.name) {
        for memory in ["flat", "ddr"] {
            let sets = [format!("run.scheme={scheme}"), format!("memory.kind={memory}")];
            let config = config(&[&sets[0], &sets[1], "l2.size_bytes=64K"]);
            let mut json = result_on(&config, limits(2000, 20_000, 8000), 18_000).json();
            let members = json.as_object_mut().expect("an object");
            // What goes in is not what came out, and grows with every key.
            members.retain(|name, _| !["config", "inputs_blake3"].contains(&name.as_str()));
            let hash = blake3::hash(serde_json::to_string_pretty(&json).expect("JSON").as_bytes());
            let cycles = &json["statistics"]["cycles"];
            found += &format!("{scheme} {memory} {cycles} {}\n", &hash.to_hex()[..16]);
        }
    }
    assert_eq!(found, include_str!("results.record"), "results differ; now they are:\n{found}");
}

/// OTP/SNC, section 4.3: sequence numbers that were flushed have to come again; tagged ones stay,
/// and that the machine stops for a switch is not to be seen.
#[test]
fn a_switch_of_processes_costs_what_a_flush_costs() {
    let statistics = |sets: &[&str]| {
        let config = config(&[&["run.scheme=otp-lru", "l2.size_bytes=64K"], sets].concat());
        result_on(&config, limits(2000, 20_000, 8000), 18_000).json()["statistics"].clone()
    };
    let every = "protection.switch_interval_instructions=3000";
    let never = statistics(&[]);
    assert_eq!(statistics(&[every, "protection.snc_on_switch=tag"]), never);
    let flushed = statistics(&[every, "protection.snc_on_switch=flush"]);
    let cycles = |statistics: &serde_json::Value| statistics["cycles"].as_u64();
    assert!(cycles(&flushed) > cycles(&never), "{flushed} {never}");
}

#[test]
fn a_trace_that_breaks_off_gives_no_results_but_those_that_were_whole_before() {
    let outcomes = Outcomes::default();
    // The first run has all it wants before the trace breaks off; the second would go on.
    let mut both = batch(0..2, limits(0, 2000, 0), 50_000, true);
    both.runs[1].limits.length_instructions = None;
    sweep::run(vec![both], 2, &AtomicBool::new(false), &outcomes);
    let done = outcomes.done.into_inner().expect("no thread panics");
    assert_eq!(done.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0]);
    let broken = outcomes.broken.into_inner().expect("no thread panics");
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].0, [1]);
    assert!(broken[0].1.contains("byte 77"), "{broken:?}");
}

#[test]
fn who_is_stopped_tells_nothing_of_what_is_not_whole() {
    let outcomes = Outcomes::default();
    let stop = AtomicBool::new(true);
    sweep::run(vec![batch(0..2, limits(0, 0, 0), 1000, false)], 2, &stop, &outcomes);
    assert!(outcomes.done.lock().expect("no thread panics").is_empty());
    assert!(stop.load(Ordering::Relaxed));
}

#[test]
fn a_result_is_found_by_everything_that_it_depends_on() {
    let folder = Folder::new("found");
    let store = Store::open(&folder.0).expect("a folder");
    let result = result();
    assert!(store.find("none", &result.provenance).is_none());
    let place = write(&store, &result, "").expect("it is written");
    let (found, at) = store.find("none", &result.provenance).expect("it is there");
    assert!(found == result.json() && at == place);
    let changes: [fn(&mut Provenance); 4] = [
        |p| p.casemate.version.push('1'),
        |p| p.casemate.sources.push('1'),
        |p| p.trace.blake3 = Some("00".repeat(32)),
        |p| p.config["l2"]["ways"] = Value::from(16),
    ];
    for change in changes {
        let mut other = result.provenance.clone();
        change(&mut other);
        assert!(store.find("none", &other).is_none(), "{other:?}");
    }
    // A writer that was interrupted before the last file left nothing that counts.
    fs::remove_file(place.join("result.json")).expect("it is there");
    assert!(store.find("none", &result.provenance).is_none());
    assert!(store::results(&folder.0).is_err());
}

#[test]
fn odd_cells_survive_all_formats() {
    let row = serde_json::json!({
        "most": u64::MAX, "text": "a\n\"b\",c", "none": null, "real": 0.1, "yes": true, "list": []
    });
    let table = Table::of([&row, &serde_json::json!({"most": 0, "list": [3, u64::MAX, 4]}), &row]);
    assert_eq!(
        table.columns.iter().find(|c| c.name == "most").expect("a column").cells[0],
        Cell::Count(u64::MAX)
    );
    let rows = csv(&table.csv());
    let at = |name: &str| rows[0].iter().position(|known| known == name).expect("a column");
    assert_eq!(rows[1][at("text")], "a\n\"b\",c");
    assert_eq!(rows[1][at("most")], u64::MAX.to_string());
    let bytes = parquet::bytes(&table).expect("it is made");
    let folder = Folder::new("odd");
    fs::create_dir_all(&folder.0).expect("a folder");
    fs::write(folder.0.join("odd"), bytes).expect("it is written");
    let file = fs::File::open(folder.0.join("odd")).expect("it is there");
    let reader = SerializedFileReader::new(file).expect("it is Parquet");
    let rows: Vec<_> =
        reader.get_row_iter(None).expect("rows").map(|row| row.expect("it is read")).collect();
    let field = |row: usize, name: &str| {
        rows[row].get_column_iter().find(|(known, _)| *known == name).expect("a column").1.clone()
    };
    assert_eq!(field(0, "most"), Field::ULong(u64::MAX));
    assert_eq!(field(0, "text"), Field::Str("a\n\"b\",c".into()));
    let lists: Vec<String> = (0..3).map(|row| field(row, "list").to_string()).collect();
    assert_eq!(lists, ["[]", "[3, 18446744073709551615, 4]", "[]"]);
    assert_eq!(
        (field(1, "text"), field(0, "none"), field(0, "yes")),
        (Field::Null, Field::Null, Field::Bool(true))
    );
}
