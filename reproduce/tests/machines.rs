//! Every value of a paper's machine is the paper's, or an assumption that is varied, or makes no
//! difference.
//!
//! `papers/*/config.toml` says which, behind each value. Here that is held to be true.

use std::collections::BTreeSet;

use casemate_reproduce::assumption::Assumption;
use casemate_reproduce::papers::{Folder, PAPERS};
use casemate_reproduce::spec::Spec;
use casemate_sim::config::keys::{self, Key};
use casemate_sim::config::value::{Kind, Value};
use casemate_sim::config::{Layer, Preset, Resolved};
use casemate_sim::experiment::feed::share;
use casemate_sim::experiment::run::{Limits, measure};
use casemate_sim::experiment::simulated::build;
use casemate_sim::results::statistics::Statistics;
use casemate_sim::trace::synthetic::{Mix, Synthetic};

/// What a comment behind a value begins with.
const PLACES: [&str; 5] = ["section ", "sections ", "Table ", "Figure ", "Algorithm "];
const ASSUMED: &str = "not said";
const UNUSED: &str = "not used";
const ELSEWHERE: &str = "figures.toml";

/// The machines of papers; `modern` is of none.
fn papers() -> impl Iterator<Item = (Folder, Spec, Preset)> {
    PAPERS.into_iter().filter(|folder| folder.slug != "modern").map(|folder| {
        let (spec, _) = folder.read().unwrap_or_else(|error| panic!("{error:#}"));
        let preset = Preset::of_name(&spec.preset).expect("a paper has a machine");
        (folder, spec, preset)
    })
}

/// Every key with its value and what is said behind it.
fn lines(preset: Preset) -> Vec<(String, String, String)> {
    let (mut section, mut lines) = ("", Vec::new());
    for line in preset.text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, rest)) = line.split_once(" = ") {
            let (value, origin) = rest.split_once(" # ").unwrap_or((rest, ""));
            let value = value.trim_matches('"').to_owned();
            lines.push((format!("{section}.{key}"), value, origin.to_owned()));
        }
    }
    assert_eq!(lines.len(), keys::all().count(), "{}: a line for each key", preset.name);
    lines
}

fn keys_that_are(what: &str, preset: Preset) -> BTreeSet<String> {
    let are = |(key, _, origin): (String, String, String)| origin.starts_with(what).then_some(key);
    lines(preset).into_iter().filter_map(are).collect()
}

#[test]
fn every_value_says_where_it_is_from() {
    for (folder, _, preset) in papers() {
        for (key, _, origin) in lines(preset) {
            let is_known = PLACES.iter().chain(&[ASSUMED, UNUSED, ELSEWHERE]);
            let mut is_known = is_known.filter(|known| origin.starts_with(**known));
            assert!(is_known.next().is_some(), "{}: {key}: {origin:?}", folder.slug);
        }
    }
}

/// Whether a half is half, the figures' file is checked for when it is read.
#[test]
fn every_assumption_is_varied() {
    for (folder, spec, preset) in papers() {
        for key in keys_that_are(ASSUMED, preset) {
            let is_varied = spec.assumptions.iter().any(|assumption| assumption.key == key);
            assert!(is_varied, "{}: {key} is not varied", folder.slug);
        }
    }
}

/// README lists assumptions as they are.
#[test]
fn every_assumption_is_in_its_readme() {
    for (folder, spec, preset) in papers() {
        let path = format!("{}/../papers/{}/README.md", env!("CARGO_MANIFEST_DIR"), folder.slug);
        let readme =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let rows = spec.assumptions.iter().map(|assumption| row(assumption, preset));
        let missing: String = rows.filter(|row| !readme.contains(row)).collect();
        assert!(missing.is_empty(), "{path} does not say:\n{missing}");
    }
}

/// The key, its value as config.toml has it, what else is tried, and why it is so.
fn row(assumption: &Assumption, preset: Preset) -> String {
    let values = lines(preset).into_iter();
    let value = values.filter(|(key, ..)| *key == assumption.key).map(|(_, value, _)| value).next();
    let own = format!("{} = ", assumption.key);
    let variants = assumption.variants().into_iter().map(|point| {
        let (value, with) = match point.name.split_once(", ") {
            Some((value, with)) => (value, format!(" (with {with})")),
            None => (&*point.name, String::new()),
        };
        format!("{}{with}", value.trim_start_matches(&own))
    });
    let variants: Vec<String> = variants.collect();
    format!(
        "| `{}` | {} | {} | {} |\n",
        assumption.key,
        value.unwrap_or_default(),
        variants.join("; "),
        assumption.why
    )
}

/// All values that are said to make no difference are changed at once.
#[test]
fn what_is_not_used_makes_no_difference() {
    for (folder, spec, preset) in papers() {
        let machine = small(&resolved(preset));
        let unused = keys_that_are(UNUSED, preset);
        assert!(!unused.is_empty(), "{}", folder.slug);
        for scheme in schemes(&spec) {
            let machine = with(&machine, "run.scheme", &scheme);
            let expected = statistics(&machine);
            let changed =
                unused.iter().fold(machine.clone(), |machine, key| changed(&machine, key));
            if statistics(&changed) != expected {
                let differs = |key: &&String| statistics(&self::changed(&machine, key)) != expected;
                let which: Vec<&String> = unused.iter().filter(differs).collect();
                panic!("{}, {scheme}: these are used: {which:?}", folder.slug);
            }
        }
    }
}

/// The comparison sees what is used.
#[test]
fn what_is_used_makes_a_difference() {
    for (folder, spec, preset) in papers() {
        let machine = with(&small(&resolved(preset)), "run.scheme", &schemes(&spec)[0]);
        let slower = changed(&machine, "core.issue_width");
        assert_ne!(statistics(&machine), statistics(&slower), "{}", folder.slug);
    }
}

fn resolved(preset: Preset) -> Resolved {
    Resolved::new(&[preset.layer().expect("it is right")]).expect("it says every key")
}

fn with(machine: &Resolved, key: &str, value: &str) -> Resolved {
    let layer = Layer::assignment("test", &format!("{key}={value}"));
    machine.with(&layer.expect("it is admitted")).expect("every key has a value")
}

/// Caches that a short trace fills.
fn small(machine: &Resolved) -> Resolved {
    let sizes =
        ["l1d.size_bytes=4K", "l2.size_bytes=32K", "l3.size_bytes=64K", "memory.size_bytes=512M"];
    let is_there =
        |set: &&&str| set.split_once('=').is_some_and(|(key, _)| machine.number(key) > 0);
    sizes.iter().filter(is_there).fold(machine.clone(), |machine, set| {
        machine.with(&Layer::assignment("test", set).expect("it is right")).expect("it is whole")
    })
}

/// Schemes of the paper's figures.
fn schemes(spec: &Spec) -> Vec<String> {
    let all = spec.figures.iter().flat_map(|figure| &figure.series);
    let all: BTreeSet<String> = all.map(|series| series.scheme.clone()).collect();
    all.into_iter().collect()
}

/// The machine with another value of a key.
fn changed(machine: &Resolved, key: &str) -> Resolved {
    let kind = keys::all().find(|(section, k)| format!("{}.{}", section.name, k.name) == key);
    let (_, Key { kind, .. }) = kind.expect("there is such a key");
    let value = machine.value(key).expect("every key has a value");
    let others: Vec<String> = match (kind, value) {
        (_, Value::Number(number)) => {
            [2 * number, number / 2, number + 1, 64].iter().map(u64::to_string).collect()
        }
        (_, Value::Flag(flag)) => vec![(!flag).to_string()],
        (Kind::Name(names), _) => names.iter().map(|name| (*name).to_owned()).collect(),
        _ => ["random", "fifo", "1000-1fff"].map(str::to_owned).to_vec(),
    };
    let other = |text: &String| {
        let layer = Layer::assignment("test", &format!("{key}={text}")).ok()?;
        let other = machine.with(&layer).ok()?;
        (other.check().is_ok() && other.value(key) != Some(value)).then_some(other)
    };
    others.iter().find_map(other).unwrap_or_else(|| panic!("{key} can have no other value"))
}

/// Everything that is counted on a short program with many misses.
fn statistics(machine: &Resolved) -> Statistics {
    const INSTRUCTIONS: u64 = 40_000;
    let (decoder, mut feeds) = share(1);
    let mut trace = Synthetic::new(Mix::HEAVY_WITH_STORES, 1, INSTRUCTIONS);
    // All of it fits into a run's queue.
    decoder.decode(&mut trace, 0, || true, |_| {}).expect("it can be made up");
    let mut built = build(machine).unwrap_or_else(|error| panic!("{error}"));
    let measured = measure(&mut *built, &mut feeds[0], &Limits::default());
    let region = measured.unwrap_or_else(|error| panic!("{error}")).region;
    assert_eq!(region.machine.instructions, INSTRUCTIONS, "{region:?}");
    region
}
