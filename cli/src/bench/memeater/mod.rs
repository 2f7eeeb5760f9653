//! `casemate bench memeater`: Cryptkeeper's microbenchmark (section V.A) in growing memory, for its
//! Figures 3 to 5: plain, under `casemate run`, and under a Linux that swaps, unencrypted, with a
//! cgroup of the Clear's size.
//!
//! Systems take turns within a run, and runs go over all numbers of pages, so that a slow minute of
//! the machine hits all systems. A run has the same seed under each of them.

pub mod points;
pub mod program;
pub mod start;
mod table;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use casemate_keeper::PAGE_BYTES;
use serde::{Deserialize, Serialize};

use super::args::{MemeaterArgs, Mode};
use super::checked_clear;
use super::numbers::Spread;
use super::results::{Header, notes};
use crate::failure::{Failure, sentence};
use crate::output;
use crate::progress;
use crate::sys::{memory, signals};

use program::Times;
use start::{Bench, Outcome};

/// What memeater runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Linux without a limit.
    Plain,
    /// `casemate run`, which has a handler for each processor.
    Casemate,
    /// The same on one processor, which program and keeper share.
    OneHandler,
    /// Linux swapping to zram, unencrypted, under a memory cgroup.
    Zram,
    /// Linux swapping to a file, unencrypted, under a memory cgroup.
    SwapFile,
    /// The same with as much memory as the Clear and the ciphertext together have: a Linux with the
    /// whole RAM of the paper's machine.
    Linux,
}

impl System {
    /// Those of `bench memeater`.
    const ALL: [System; 5] =
        [System::Plain, System::Casemate, System::OneHandler, System::Zram, System::SwapFile];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            System::Plain => "plain",
            System::Casemate => "casemate",
            System::OneHandler => "one handler",
            System::Zram => "zram",
            System::SwapFile => "swap file",
            System::Linux => "linux",
        }
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Step {
    #[serde(rename = "allocate_us_per_page")]
    Allocate,
    #[serde(rename = "write_us_per_page")]
    Write,
    #[serde(rename = "read_us_per_page")]
    Read,
    #[serde(rename = "free_us_per_page")]
    Free,
    #[serde(rename = "total_s")]
    Total,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 5] = [Step::Allocate, Step::Write, Step::Read, Step::Free, Step::Total];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Step::Allocate => "allocate",
            Step::Write => "write",
            Step::Read => "read",
            Step::Free => "free",
            Step::Total => "total",
        }
    }

    /// In its unit: microseconds a page, or seconds in all.
    pub fn of(self, times: &Times, pages: u64) -> f64 {
        let us_per_page = |seconds: f64| seconds * 1e6 / pages as f64;
        match self {
            Step::Allocate => us_per_page(times.allocate_s),
            Step::Write => us_per_page(times.write_s),
            Step::Read => us_per_page(times.read_s),
            Step::Free => us_per_page(times.free_s),
            Step::Total => times.total_s,
        }
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    header: Header,
    mode: Mode,
    /// The Clear, and the limit of a Linux that swaps.
    clear_bytes: u64,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// A number of pages.
#[derive(Serialize)]
pub struct Row {
    /// How many.
    pub pages: u64,
    bytes: u64,
    /// What they took under each system.
    pub systems: BTreeMap<System, Cell>,
}

/// Its runs under one system.
#[derive(Default, Serialize)]
pub struct Cell {
    steps: BTreeMap<Step, Figure>,
    /// Why there are no times: `killed`, by the kernel for want of memory in its cgroup.
    pub ended: Option<&'static str>,
    /// What each run took.
    #[serde(skip)]
    pub runs: Vec<Times>,
}

/// What a step took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Figure {
    #[serde(flatten)]
    spread: Spread,
    /// The median over that of the plain runs.
    over_plain: Option<f64>,
}

/// Numbers of pages with one Clear, read in one order.
pub struct Sweep {
    /// How they are run.
    pub bench: Bench,
    /// The numbers.
    pub rows: Vec<Row>,
}

impl Row {
    /// Not measured yet.
    pub fn new(pages: u64, systems: &[System]) -> Self {
        let systems = systems.iter().map(|system| (*system, Cell::default())).collect();
        Row { pages, bytes: pages * PAGE_BYTES as u64, systems }
    }

    /// Makes figures of the runs.
    fn sum_up(&mut self) {
        self.systems.retain(|_, cell| cell.ended.is_some() || !cell.runs.is_empty());
        let spread = |cell: &Cell, step: Step| {
            let of = |times: &Times| step.of(times, self.pages);
            Spread::of(&cell.runs.iter().map(of).collect::<Vec<_>>())
        };
        let plain: Option<Vec<f64>> = self
            .systems
            .get(&System::Plain)
            .map(|cell| Step::ALL.iter().map(|step| spread(cell, *step).median).collect());
        for (system, cell) in &mut self.systems {
            if cell.ended.is_some() {
                continue;
            }
            for (i, step) in Step::ALL.into_iter().enumerate() {
                let spread = spread(cell, step);
                let over = plain.as_ref().filter(|_| *system != System::Plain);
                let over_plain = over.map(|plain| spread.median / plain[i]);
                cell.steps.insert(step, Figure { spread, over_plain });
            }
        }
    }
}

/// Measures and prints.
pub fn memeater(args: &MemeaterArgs) -> Result<u8> {
    let clear_bytes = checked_clear(args.clear)?;
    if let Some(available) = memory::available_bytes() {
        args.pages.check_fit(clear_bytes, available)?;
    }
    signals::remember_stop().context("cannot catch signals")?;
    let bench = Bench::new(clear_bytes, None, args.mode)?;
    let rows = args.pages.iter().map(|pages| Row::new(pages, &System::ALL)).collect();
    let mut sweeps = [Sweep { bench, rows }];
    let mut broken = Broken::new();
    for run in 1..=args.runs {
        let named = |what: &str| progress::stage(&format!("run {run} of {}: {what}", args.runs));
        round(&mut sweeps, u64::from(run), &mut broken, named)?;
    }
    let mut report = Report {
        header: Header::new(args.runs),
        mode: args.mode,
        clear_bytes,
        rows: sweeps.into_iter().flat_map(|sweep| sweep.rows).collect(),
        notes: notes().into_iter().chain(reasons(&broken)).collect(),
    };
    report.rows.iter_mut().for_each(Row::sum_up);
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&table::table(&report))?,
    }
    Ok(0)
}

/// Systems that cannot be set up, and why.
pub type Broken = BTreeMap<System, String>;

/// Runs everything once, in turns. What cannot be set up once is not tried again.
///
/// # Errors
/// A page was not what was written, or a signal asks to stop.
pub fn round(
    sweeps: &mut [Sweep],
    seed: u64,
    broken: &mut Broken,
    named: impl Fn(&str),
) -> Result<()> {
    for Sweep { bench, rows } in sweeps {
        for row in rows {
            for (system, cell) in &mut row.systems {
                if broken.contains_key(system) || cell.ended.is_some() {
                    continue;
                }
                let what = format!("{} pages, {}", row.pages, system.name());
                named(&what);
                match bench.run(*system, row.pages, seed) {
                    Ok(Outcome::Done(times)) => cell.runs.push(times),
                    Ok(Outcome::Killed) => cell.ended = Some("killed"),
                    Ok(Outcome::Wrong(said)) => {
                        return Err(Failure::no(format!("{what}: {said}")).into());
                    }
                    Err(error) if signals::stop_wanted() => return Err(error),
                    Err(error) => {
                        broken.insert(*system, sentence(&error));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Why systems were not measured, each reason once.
pub fn reasons(broken: &Broken) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for (system, why) in broken {
        match said.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(system.name()),
            None => said.push((why, vec![system.name()])),
        }
    }
    said.into_iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_several_systems_share_is_said_once() {
        let because = |system, why: &str| (system, why.to_owned());
        let broken = BTreeMap::from([
            because(System::Casemate, "cannot protect"),
            because(System::OneHandler, "cannot protect"),
            because(System::Zram, "in use"),
        ]);
        assert_eq!(reasons(&broken), ["casemate, one handler: cannot protect", "zram: in use"]);
        assert!(reasons(&BTreeMap::new()).is_empty());
    }
}
