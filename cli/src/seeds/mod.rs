//! `casemate seeds`: AISE/BMT's Table 1, executed.

pub mod args;

use anyhow::Result;
use casemate_lab::virtual_memory::table_1::{Outcome, Row, Service, table_1};
use serde::Serialize;

use crate::exit_codes;
use crate::output::{self, SCHEMA};

use args::SeedsArgs;

#[derive(Serialize)]
struct Cell {
    service: &'static str,
    holds: bool,
    reads_right_as_it_is: bool,
    pads_used_twice_as_it_is: u64,
    /// Absent if the service cannot be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    reencrypted_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pads_used_twice: Option<u64>,
}

#[derive(Serialize)]
struct Paper {
    column: &'static str,
    ipc_support: &'static str,
    other_issues: &'static str,
}

#[derive(Serialize)]
struct Overflow {
    reencrypted_blocks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter_bits_in_its_place: Option<u32>,
}

#[derive(Serialize)]
struct Line {
    seeds: &'static str,
    services: Vec<Cell>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow: Option<Overflow>,
    paper: Paper,
    agrees: bool,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    agrees: bool,
    rows: Vec<Line>,
}

/// Runs the table and prints it. The exit code says whether it came out as the paper has it.
pub fn seeds(args: &SeedsArgs) -> Result<u8> {
    let rows = table_1()?;
    let agrees = rows.iter().all(Row::agrees);
    match &args.json.to {
        Some(to) => {
            let rows = rows.iter().map(line).collect();
            output::json(to, &Report { schema: SCHEMA, agrees, rows })?;
        }
        None => output::stdout(&text(&rows))?,
    }
    Ok(if agrees { 0 } else { exit_codes::NO })
}

fn line(row: &Row) -> Line {
    let services = Service::ALL.into_iter().map(|service| {
        let outcome = row.outcome(service);
        Cell {
            service: service.name(),
            holds: outcome.holds(),
            reads_right_as_it_is: outcome.as_it_is.right,
            pads_used_twice_as_it_is: outcome.as_it_is.pads_used_twice,
            reencrypted_blocks: outcome.careful.map(|careful| careful.reencrypted_blocks),
            pads_used_twice: outcome.careful.map(|careful| careful.pads_used_twice),
        }
    });
    let overflow = row.overflow.map(|overflow| Overflow {
        reencrypted_blocks: overflow.reencrypted_blocks,
        counter_bits_in_its_place: row.overflow_stands_in,
    });
    let paper = Paper {
        column: row.paper.column,
        ipc_support: row.paper.ipc_support,
        other_issues: row.paper.other_issues,
    };
    Line { seeds: row.seeds, services: services.collect(), overflow, paper, agrees: row.agrees() }
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from("AISE/BMT, Table 1, executed\n\n");
    text += "Does it hold with ciphertext as it is? If not: blocks encrypted anew for it\n";
    text += &table(rows, holds, Some(overflow));
    text += "\nPads used twice: with ciphertext as it is / with what is encrypted anew\n";
    text += &table(rows, pads, None);
    text += "\nThe paper: column, IPC Support, Other Issues\n";
    for row in rows {
        let paper = row.paper;
        let cells =
            format!("{:<20} {:<21} {}", paper.column, paper.ipc_support, paper.other_issues);
        let mark = if row.agrees() { "" } else { "   ! came out otherwise" };
        text += &format!("{:<40} {cells}{mark}\n", row.seeds);
    }
    text + "\nyes       read right, and no pad used twice\n\
            unsafe    read right, but pads were used twice\n\
            no        read wrong; the number of blocks, or refused where that does not help\n\
            overflow  blocks encrypted anew when a counter ends: in a page, or * in memory and on disk,\n\
            \u{20}         shown with 14 bits in place of 32; - not in 2^15 writes of a block\n"
}

/// A column for each service, and perhaps one more.
fn table(rows: &[Row], cell: fn(Outcome) -> String, last: Option<fn(&Row) -> String>) -> String {
    let mut text = format!("{:40}", "");
    for service in Service::ALL {
        text += &format!(" {:<13}", service.name());
    }
    if last.is_some() {
        text += " overflow";
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for row in rows {
        text += &format!("{:<40}", row.seeds);
        for service in Service::ALL {
            text += &format!(" {:<13}", cell(row.outcome(service)));
        }
        if let Some(last) = last {
            text += &format!(" {}", last(row));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn holds(outcome: Outcome) -> String {
    let word = match (outcome.as_it_is.right, outcome.holds()) {
        (_, true) => "yes",
        (true, false) => "unsafe",
        (false, false) => "no",
    };
    match outcome.careful.map(|careful| careful.reencrypted_blocks) {
        None => format!("{word}, refused"),
        Some(0) => word.to_owned(),
        Some(blocks) => format!("{word}, {blocks}"),
    }
}

fn pads(outcome: Outcome) -> String {
    let careful = outcome.careful.map(|careful| careful.pads_used_twice.to_string());
    let careful = careful.unwrap_or_else(|| "-".to_owned());
    format!("{} / {careful}", outcome.as_it_is.pads_used_twice)
}

fn overflow(row: &Row) -> String {
    let mark = if row.overflow_stands_in.is_some() { "*" } else { "" };
    row.overflow.map_or("-".to_owned(), |overflow| format!("{}{mark}", overflow.reencrypted_blocks))
}
