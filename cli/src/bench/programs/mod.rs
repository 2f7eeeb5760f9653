//! `casemate bench programs`: real programs at a part of the memory that they take, under Casemate
//! and under a Linux that swaps, unencrypted, with a cgroup of the same size.
//!
//! A program's memory is what it takes when it has plenty: anonymous pages at most, by the kernel's
//! count. The Clear is a part of that. A cgroup counts files' pages as well, but only those that
//! were not in memory before: its limit is the Clear and what it is charged for of them. Systems
//! take turns, and each run's result is compared with the first.

mod catalogue;
mod guest;
mod start;
mod table;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use casemate_keeper::ClearSize;
use clap::ValueEnum;
use serde::Serialize;

use super::WRONG;
use super::args::{Home, ProgramsArgs};
use super::folder::Folder;
use super::numbers::Spread;
use super::results::{Header, notes};
use super::targets::{Target, target};
use crate::failure::{Failure, sentence};
use crate::output;
use crate::progress;
use crate::sys::signals;

use catalogue::{GUEST, PROGRAMS, Program};
use start::{Bench, Needs, Outcome, Share};

pub use start::Run;

/// Each program's time over zram's.
const MOST_OF_ZRAM: f64 = 1.0;
/// The geometric mean of these.
const MOST_ON_AVERAGE: f64 = 0.8;
/// The guest's time with half its memory over its time without a limit.
const MOST_OF_PLAIN: f64 = 1.3;

/// All of it.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten)]
    header: Header,
    longest_s: u64,
    programs: Vec<Needed>,
    /// A row for each program and part of its memory.
    pub rows: Vec<Row>,
    targets: Vec<Target>,
    /// What was not measured, and why.
    pub notes: Vec<String>,
}

/// A program, and what it takes.
#[derive(Serialize)]
pub struct Needed {
    name: &'static str,
    what: &'static str,
    anonymous_bytes: u64,
    file_bytes: u64,
    charged_bytes: u64,
}

/// A program with a part of its memory.
#[derive(Serialize)]
pub struct Row {
    /// Which.
    pub program: &'static str,
    /// The memory is divided by this.
    part: u64,
    clear_bytes: u64,
    limit_bytes: u64,
    /// What each run took.
    pub systems: BTreeMap<Home, Cell>,
}

/// Its runs under one system.
#[derive(Default, Serialize)]
pub struct Cell {
    seconds: Option<Spread>,
    user_s: Option<Spread>,
    system_s: Option<Spread>,
    page_ins: Option<Spread>,
    /// Why there are no times: it took too long, or was killed for want of memory.
    ended: Option<&'static str>,
    /// Each run, in their order, if all of them ended well.
    #[serde(skip)]
    pub runs: Vec<Run>,
}

impl Row {
    fn seconds(&self, home: Home) -> Option<f64> {
        Some(self.systems.get(&home)?.seconds?.median)
    }

    /// Casemate's time over another's.
    fn over(&self, home: Home) -> Option<f64> {
        Some(self.seconds(Home::Casemate)? / self.seconds(home)?)
    }
}

/// Measures and prints.
pub fn programs(args: &ProgramsArgs) -> Result<u8> {
    let report = measured(args)?;
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&table::table(&report))?,
    }
    Ok(0)
}

/// Measures.
///
/// # Errors
/// There is no such program, one came to another result, or a signal asks to stop.
pub fn measured(args: &ProgramsArgs) -> Result<Report> {
    let chosen = chosen(&args.only)?;
    signals::remember_stop().context("cannot catch signals")?;
    let mut report = Report {
        header: Header::new(args.runs),
        longest_s: args.longest,
        programs: Vec::new(),
        rows: Vec::new(),
        targets: Vec::new(),
        notes: notes(),
    };
    for program in chosen {
        if !program.is_here() {
            report.notes.push(format!("{}: not installed here", program.name));
            continue;
        }
        if let Err(error) = measure(args, program, &mut report) {
            if signals::stop_wanted() {
                return Err(error);
            }
            report.notes.push(format!("{}: {}", program.name, sentence(&error)));
        }
    }
    report.targets = targets(&report.rows);
    super::refuse_wrong(&report.notes)?;
    if report.rows.is_empty() {
        anyhow::bail!("nothing was measured: {}", report.notes.join("; "));
    }
    Ok(report)
}

/// The programs of these names; all if there are none.
///
/// # Errors
/// There is none of a name.
pub fn chosen(only: &[String]) -> Result<Vec<&'static Program>> {
    if only.is_empty() {
        return Ok(PROGRAMS.iter().collect());
    }
    let find = |name: &String| {
        PROGRAMS.iter().find(|program| program.name == name).ok_or_else(|| {
            let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
            Failure::own(format!("there is no program {name}; choose from {}", names.join(", ")))
        })
    };
    Ok(only.iter().map(find).collect::<Result<_, _>>()?)
}

/// Measures one program with each part of its memory.
fn measure(args: &ProgramsArgs, program: &Program, report: &mut Report) -> Result<()> {
    let folder = Folder::new()?;
    let words = program.prepare(&folder.0).context("cannot write its input")?;
    let bench = Bench { folder: &folder, program, words: &words, longest: args.longest };
    progress::stage(&format!("{}: how much memory it takes", program.name));
    let (needs, result) = bench.needs()?;
    report.programs.push(Needed {
        name: program.name,
        what: program.what,
        anonymous_bytes: needs.anonymous_bytes,
        file_bytes: needs.file_bytes,
        charged_bytes: needs.charged_bytes,
    });
    for part in &args.parts {
        let clear_bytes = (needs.anonymous_bytes / part).max(ClearSize::FLOOR_BYTES) & !0xfff;
        let limit_bytes = clear_bytes + needs.charged_bytes;
        let share = Share { clear_bytes, limit_bytes };
        let systems = turns(args, &bench, *part, (share, needs, result), &mut report.notes)?;
        report.rows.push(Row {
            program: program.name,
            part: *part,
            clear_bytes,
            limit_bytes,
            systems,
        });
    }
    Ok(())
}

/// Runs the program under all systems in turns.
fn turns(
    args: &ProgramsArgs,
    bench: &Bench<'_>,
    part: u64,
    (share, needs, result): (Share, Needs, u64),
    notes: &mut Vec<String>,
) -> Result<BTreeMap<Home, Cell>> {
    let all: &[Home] = if args.systems.is_empty() { Home::value_variants() } else { &args.systems };
    let name = bench.program.name;
    let mut cells: BTreeMap<Home, Cell> = all.iter().map(|home| (*home, Cell::default())).collect();
    for run in 0..args.runs {
        for home in all {
            let Some(cell) = cells.get_mut(home).filter(|cell| cell.ended.is_none()) else {
                continue;
            };
            progress::stage(&format!(
                "{name}, 1/{part} of its memory, run {} of {}: {home:?}",
                run + 1,
                args.runs
            ));
            match bench.run(*home, share, needs) {
                Ok(Outcome::Done(run)) if run.result == result => cell.runs.push(run),
                Ok(Outcome::Done(_)) => bail!("{WRONG}: another result under {home:?}"),
                Ok(Outcome::TooLong) => cell.ended = Some("too long"),
                Ok(Outcome::Killed) => cell.ended = Some("killed"),
                Err(error) if signals::stop_wanted() => return Err(error),
                Err(error) => {
                    notes.push(format!("{name}, {home:?}: {}", sentence(&error)));
                    cells.remove(home);
                }
            }
        }
    }
    cells.values_mut().for_each(Cell::sum_up);
    Ok(cells)
}

impl Cell {
    fn sum_up(&mut self) {
        if self.ended.is_some() {
            self.runs.clear();
        } else {
            let spread =
                |pick: fn(&Run) -> f64| Spread::of(&self.runs.iter().map(pick).collect::<Vec<_>>());
            self.seconds = Some(spread(|run| run.seconds));
            self.user_s = Some(spread(|run| run.user_s));
            self.system_s = Some(spread(|run| run.system_s));
            self.page_ins = Some(spread(|run| run.page_ins as f64));
        }
    }
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let ratios: Vec<f64> = rows.iter().filter_map(|row| row.over(Home::Zram)).collect();
    let worst = ratios.iter().copied().reduce(f64::max);
    let mean = (!ratios.is_empty())
        .then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp());
    let guest = rows.iter().find(|row| row.program == GUEST && row.part == 2);
    let guest = guest.and_then(|row| row.over(Home::Plain));
    [
        target("guest at a half / plain", guest, MOST_OF_PLAIN, false),
        target("slowest program / zram", worst, MOST_OF_ZRAM, false),
        target("geometric mean / zram", mean, MOST_ON_AVERAGE, false),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::targets::Verdict;

    fn row(casemate: f64, zram: Option<f64>) -> Row {
        let cell = |seconds: Option<f64>| Cell {
            seconds: seconds.map(|seconds| Spread::of(&[seconds])),
            ..Cell::default()
        };
        let systems = [(Home::Casemate, cell(Some(casemate))), (Home::Zram, cell(zram))]
            .into_iter()
            .collect();
        Row { program: "p", part: 2, clear_bytes: 0, limit_bytes: 0, systems }
    }

    #[test]
    fn targets_are_the_worst_and_the_geometric_mean() {
        let found = targets(&[row(2.0, Some(1.0)), row(1.0, Some(2.0)), row(9.0, None)]);
        let found: Vec<_> = found.iter().map(|target| (target.value, target.verdict)).collect();
        assert_eq!(
            found,
            [(2.0, Verdict::Missed), (1.0, Verdict::Missed)],
            "what took too long has no ratio"
        );
        assert!(targets(&[row(1.0, None)]).is_empty());
        assert!(
            targets(&[row(0.7, Some(1.0))]).iter().all(|target| target.verdict == Verdict::Reached)
        );
    }

    #[test]
    fn a_name_that_there_is_not_is_told_with_those_that_there_are() {
        let Err(error) = chosen(&["lua".to_owned()]) else { panic!("there is none") };
        assert!(sentence(&error).contains("lua-sort"));
        let two = chosen(&["zstd".to_owned(), "cc1".to_owned()]).expect("both");
        assert_eq!(two.iter().map(|program| program.name).collect::<Vec<_>>(), ["zstd", "cc1"]);
    }
}
