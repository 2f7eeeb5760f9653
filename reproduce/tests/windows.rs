//! What the simulated claims are measured by: values with intervals, of traces that are long
//! enough.

use std::collections::{BTreeMap, BTreeSet};

use casemate_reproduce::papers::{Folder, PAPERS};
use casemate_reproduce::plan::{Plan, Run, Wanted};
use casemate_reproduce::spec::Spec;

const PROGRAMS: &str = include_str!("../../tools/workloads/programs.toml");

/// The papers that are simulated, with all of their runs.
fn papers() -> impl Iterator<Item = (Folder, Spec, Plan)> {
    PAPERS.into_iter().map(|folder| {
        let (spec, _) = folder.read().unwrap_or_else(|error| panic!("{error:#}"));
        let plan = spec.plan(&Wanted::default()).expect("it can be planned");
        (folder, spec, plan)
    })
}

fn number(run: &Run, key: &str) -> u64 {
    run.config.number(&format!("run.{key}"))
}

/// Windows or stretches: of one there is no interval.
fn parts(run: &Run) -> u64 {
    match (number(run, "sample_windows"), number(run, "every_instructions")) {
        (0, 0) => 1,
        (0, every) => number(run, "length_instructions").div_ceil(every),
        (windows, _) => windows,
    }
}

/// A figure, and those that it is computed of.
fn simulated<'a>(spec: &'a Spec, id: &'a str) -> impl Iterator<Item = usize> + 'a {
    let figure = spec.figures.iter().find(|figure| figure.id == id).expect("claims name figures");
    let is_of = move |other: &str| other == id || figure.needs.iter().any(|need| need == other);
    let places = spec.figures.iter().enumerate();
    places.filter(move |(_, other)| is_of(&other.id)).map(|(at, _)| at)
}

#[test]
fn no_claim_and_no_experiment_is_measured_without_an_interval() {
    for (folder, spec, plan) in papers() {
        let (_, claims) = folder.read().expect("it was read before");
        let named: BTreeSet<&str> = claims.cells().map(|(_, cell)| &*cell.figure).collect();
        let figures = named.iter().flat_map(|id| simulated(&spec, id));
        for figure in figures.filter_map(|at| plan.figures.get(&at)) {
            for cell in &figure.cells {
                for run in [Some(cell.run), cell.baseline].into_iter().flatten() {
                    let (run, slug) = (&plan.runs[run], folder.slug);
                    assert!(parts(run) > 1, "{slug}: {} is in one piece", run.workload);
                }
            }
        }
    }
}

/// A shorter one at the end would be no harm, and no use.
#[test]
fn stretches_are_of_one_length() {
    for (folder, _, plan) in papers() {
        for run in plan.runs.iter().filter(|run| number(run, "sample_windows") == 0) {
            let (length, every) =
                (number(run, "length_instructions"), number(run, "every_instructions"));
            assert!(every > 0 && length % every == 0, "{}: {length} in {every}", folder.slug);
        }
    }
}

/// A region that reaches over the end of its trace is a shorter one: `stability`, with twice the
/// length, would say less than it says.
#[test]
fn every_region_is_in_its_trace() {
    let programs: toml::Table = toml::from_str(PROGRAMS).expect("it is TOML");
    let programs = programs["program"].as_array().expect("a list");
    let recorded: BTreeMap<&str, u64> = programs
        .iter()
        .map(|program| {
            let length = program["length"].as_integer().expect("a number");
            (program["name"].as_str().expect("a name"), length.unsigned_abs())
        })
        .collect();
    for (folder, _, plan) in papers() {
        for run in &plan.runs {
            let wanted = number(run, "warmup_instructions") + number(run, "length_instructions");
            let (slug, name) = (folder.slug, &*run.workload);
            let recorded = recorded[name];
            assert!(
                wanted <= recorded,
                "{slug}: {wanted} of {name}, of which {recorded} are there"
            );
        }
    }
}
