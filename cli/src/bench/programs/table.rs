//! The table that people read.

use std::fmt::Write;

use clap::ValueEnum;

use super::{Cell, Home, Report, Row};
use crate::bench::targets;
use crate::size;

/// Width of a cell with median and spread.
const CELL: usize = 21;

/// All of it.
pub fn table(report: &Report) -> String {
    let mut text = format!(
        "Programs at a part of their memory, {} runs. {}.\nSeconds: median (least-greatest). \
         Page-ins: median.\nkilled: by the kernel, for want of memory in its \
         cgroup.\n\n{:<14}{:>11}{:>11}  what it does\n",
        report.header.runs, report.header.machine, "program", "anonymous", "files"
    );
    for program in &report.programs {
        let _ = writeln!(
            text,
            "{:<14}{:>11}{:>11}  {}",
            program.name,
            size::format(program.anonymous_bytes),
            size::format(program.file_bytes),
            program.what
        );
    }
    rows(&mut text, report);
    if !report.targets.is_empty() {
        text.push_str("\nTargets\n");
        text.push_str(&targets::list(&report.targets));
    }
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

fn rows(text: &mut String, report: &Report) {
    let measured = |home: &Home| report.rows.iter().any(|row| row.systems.contains_key(home));
    let homes: Vec<Home> = Home::value_variants().iter().copied().filter(measured).collect();
    let _ = write!(text, "\n{:<14}{:>5}{:>10}", "program", "part", "Clear");
    for home in &homes {
        let _ = write!(text, "{:>CELL$}", name(*home));
    }
    let _ = write!(text, "{:>8}", "/zram");
    for home in homes.iter().filter(|home| **home != Home::Plain) {
        let _ = write!(text, "{:>14}", format!("{} in", name(*home)));
    }
    text.push('\n');
    for row in &report.rows {
        line(text, report, row, &homes);
    }
}

fn line(text: &mut String, report: &Report, row: &Row, homes: &[Home]) {
    let part = format!("1/{}", row.part);
    let clear = size::format(row.clear_bytes);
    let _ = write!(text, "{:<14}{part:>5}{clear:>10}", row.program);
    for home in homes {
        let shown = row.systems.get(home).map_or_else(
            || "-".to_owned(),
            |cell| {
                let ended = || match cell.ended {
                    Some("too long") => format!("> {}", report.longest_s),
                    other => other.unwrap_or("-").to_owned(),
                };
                cell.seconds.map_or_else(ended, |spread| spread.show())
            },
        );
        let _ = write!(text, "{shown:>CELL$}");
    }
    let ratio = row.over(Home::Zram).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"));
    let _ = write!(text, "{ratio:>8}");
    for home in homes.iter().filter(|home| **home != Home::Plain) {
        let page_ins = |cell: &Cell| cell.page_ins.map(|spread| format!("{:.0}", spread.median));
        let shown = row.systems.get(home).and_then(page_ins).unwrap_or_else(|| "-".to_owned());
        let _ = write!(text, "{shown:>14}");
    }
    text.push('\n');
}

fn name(home: Home) -> String {
    home.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
