//! `casemate advise`: how large a program's Clear should be, from the pages that it refers to.

pub mod args;

use std::path::Path;

use anyhow::{Context, Result};
use casemate_core::PAGE_BYTES;
use casemate_keeper::ClearSize;
use casemate_plot::Series;
use casemate_plot::chart::{self, Form, Words};
use casemate_sim::paging::{Advice, Costs, PageNumbers, Point};
use casemate_sim::trace::live::{Live, Options};
use casemate_sim::trace::{Instruction, Source};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::plot;
use crate::progress::Meter;
use crate::size;
use crate::sys::signals;
use crate::trace::args::{InputArgs, limit};
use args::AdviseArgs;

/// What a program may be slower by.
const SLOWER: [f64; 4] = [0.01, 0.05, 0.20, 1.0];
/// Sizes of the Clear in the drawing.
const SIZES: usize = 16;

#[derive(Serialize)]
struct Report {
    schema: u32,
    program: String,
    instructions: u64,
    /// Casemate was asked to stop before the program, or its trace, ended.
    stopped_by_signal: bool,
    stored_to_bytes: u64,
    instructions_per_ns: f64,
    page_in_ns: u32,
    advice: Vec<Advised>,
    curve: Vec<OfClear>,
}

/// The least Clear with which a program is no slower.
#[derive(Serialize)]
struct Advised {
    slower_by: f64,
    #[serde(flatten)]
    clear: OfClear,
}

/// A Clear and what it costs.
#[derive(Clone, Copy, Serialize)]
struct OfClear {
    clear_bytes: u64,
    page_ins: u64,
    slowdown: f64,
}

/// Pages of a Clear that hold none of the program's: copies of pages of its files, the agent's.
const OTHER_PAGES: usize = 64;
/// One part of so many of a Clear is kept free: the keeper's low watermark (SPEC.md, section 10).
const FREE_PART: usize = 32;

/// Pages of a program that a Clear of so many pages holds.
fn capacity(clear_pages: usize) -> usize {
    (clear_pages.saturating_sub(OTHER_PAGES) * FREE_PART / (FREE_PART + 1)).max(1)
}

/// Pages of the least Clear that holds so many of a program's.
fn clear_for(capacity_pages: usize) -> usize {
    (capacity_pages * (FREE_PART + 1)).div_ceil(FREE_PART) + OTHER_PAGES
}

/// Runs the program, or reads its trace, and says what its Clear should be.
pub fn advise(args: &AdviseArgs) -> Result<u8> {
    if let Some(plot) = &args.plot {
        plot.apart_from(&args.json)?;
    }
    let drawn = args.plot.as_ref().map(plot::format_of).transpose()?;
    signals::remember_stop()
        .and_then(|()| signals::end_children_on_stop(libc::SIGKILL))
        .context("signals cannot be handled")?;
    let (program, advice) = match &args.trace {
        Some(file) => (file.display().to_string(), of_trace(args, file)?),
        None if args.command.is_empty() => {
            let sentence = "name a program after --, or a trace of it with --trace";
            return Err(Failure::own(sentence).into());
        }
        None => of_program(args)?,
    };
    if advice.pages() == 0 {
        return Err(Failure::no(format!("{program}: none of its instructions stores")).into());
    }
    let report = report(args, program, &advice);
    if let (Some(file), Some(drawn)) = (&args.plot, drawn) {
        let scene = chart::draw(&[series(&report.curve)], Form::Lines, &words(&report));
        file.write(&drawn(&scene)?)?;
    }
    match (&args.json.to, &args.plot) {
        (Some(to), _) => output::json(to, &report)?,
        (None, Some(plot)) => plot.say(&text(&report))?,
        (None, None) => output::stdout(&text(&report))?,
    }
    Ok(0)
}

fn of_trace(args: &AdviseArgs, file: &Path) -> Result<Advice> {
    let input = InputArgs { file: file.to_owned(), from: args.from, salvage: false };
    let mut trace = input.open()?;
    let meter = input.meter(limit(args.length));
    take(&mut trace, args, meter).with_context(|| file.display().to_string())
}

fn of_program(args: &AdviseArgs) -> Result<(String, Advice)> {
    let (command, length) = (args.command.clone(), limit(args.length));
    let mut live = Live::start(&Options { command, skip: 0, length, values: false, with: None })?;
    output::stderr(&format!("casemate: looking at what runs: {}\n", live.tracer()));
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok((words.join(" "), take(&mut live, args, Meter::new(length, true))?))
}

/// Takes instructions to the end, to `--length`, or until a signal asks to stop.
fn take(source: &mut impl Source, args: &AdviseArgs, mut meter: Meter) -> Result<Advice> {
    let (mut advice, mut numbers) = (Advice::default(), PageNumbers::default());
    let mut record = Instruction::default();
    let most = limit(args.length);
    while most.is_none_or(|most| advice.instructions() < most)
        && !signals::stop_wanted()
        && source.next(&mut record)?
    {
        meter.add(record.instructions());
        advice.take(&record, &mut numbers);
    }
    Ok(advice)
}

fn report(args: &AdviseArgs, program: String, advice: &Advice) -> Report {
    let costs = Costs { hard_ns: args.page_in_ns.into(), ..Costs::MEASURED };
    let instruction_ns = 1.0 / args.instructions_per_ns;
    let of_clear = |clear_pages: usize| {
        let Point { page_ins, slowdown, .. } =
            advice.point(capacity(clear_pages), &costs, instruction_ns);
        OfClear { clear_bytes: (clear_pages * PAGE_BYTES) as u64, page_ins, slowdown }
    };
    let floor = (ClearSize::FLOOR_BYTES / PAGE_BYTES as u64) as usize;
    let most = clear_for(advice.pages() as usize).max(floor);
    let advised = |slower_by: f64| {
        let least = advice.least(slower_by, &costs, instruction_ns);
        Advised { slower_by, clear: of_clear(clear_for(least.capacity_pages).max(floor)) }
    };
    let at = |step: usize| of_clear(floor + (most - floor) * step / (SIZES - 1));
    let mut curve: Vec<OfClear> = (0..SIZES).map(at).collect();
    curve.dedup_by_key(|point| point.clear_bytes);
    Report {
        schema: SCHEMA,
        program,
        instructions: advice.instructions(),
        stopped_by_signal: signals::stop_wanted(),
        stored_to_bytes: u64::from(advice.pages()) * PAGE_BYTES as u64,
        instructions_per_ns: args.instructions_per_ns,
        page_in_ns: args.page_in_ns,
        advice: SLOWER.map(advised).into(),
        curve,
    }
}

fn series(curve: &[OfClear]) -> Series {
    let point = |of: &OfClear| (size::format(of.clear_bytes), of.page_ins as f64);
    Series {
        name: "page-ins".to_owned(),
        points: curve.iter().map(point).collect(),
        ..Series::default()
    }
}

fn words(report: &Report) -> Words {
    Words {
        title: format!("Modelled: page-ins of {}", report.program),
        upright: "pages that come in again, by LRU".to_owned(),
        level: "Clear".to_owned(),
        ..Words::default()
    }
}

fn text(report: &Report) -> String {
    let seconds = report.instructions as f64 / report.instructions_per_ns / 1e9;
    let mut text = format!(
        "{}: {} instructions, {seconds:.3} s of its own; it stores to {}\n\n{:<10} {:>10} {:>12}\n",
        report.program,
        report.instructions,
        size::format(report.stored_to_bytes),
        "slower by",
        "--clear",
        "page-ins"
    );
    if report.stopped_by_signal {
        text.insert_str(0, "Stopped by a signal: what follows is of what ran until then.\n");
    }
    for Advised { slower_by, clear } in &report.advice {
        let (percent, clear_bytes) = (100.0 * slower_by, size::format(clear.clear_bytes));
        text +=
            &format!("{:<10} {clear_bytes:>10} {:>12}\n", format!("{percent} %"), clear.page_ins);
    }
    text += &format!("\n{:>10} {:>10}\n", "Clear", "page-ins");
    let most = report.curve.iter().map(|of| of.page_ins).max().unwrap_or(0).max(1);
    for of in &report.curve {
        let bar = "#".repeat((of.page_ins * 50).div_ceil(most) as usize);
        text += &format!("{:>10} {:>10} {bar}\n", size::format(of.clear_bytes), of.page_ins);
    }
    text + "\nModelled by LRU; a Clear that holds all of a program leaves all of it in plaintext.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Clear that was made for so many pages holds them, and one page less does not.
    #[test]
    fn a_clear_holds_what_it_is_for() {
        for pages in [1, 2, 31, 32, 33, 1000, 12_345, 1 << 22] {
            assert!(capacity(clear_for(pages)) >= pages, "{pages}");
            assert!(pages == 1 || capacity(clear_for(pages) - 1) < pages, "{pages}");
        }
    }
}
