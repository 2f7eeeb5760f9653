//! `casemate trace pages`.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use casemate_core::PAGE_BYTES;
use casemate_sim::paging::{Cell, Costs, FaultSets, ReferenceString, study};
use clap::Args;
use serde::Serialize;

use super::args::{From, InputArgs, limit};
use super::input::Metered;
use crate::count::count;
use crate::failure::Failure;
use crate::output::{self, Json, SCHEMA};
use crate::progress;
use crate::size;

/// `casemate trace pages`.
#[derive(Debug, Args)]
pub struct PagesArgs {
    /// The traces
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Format of other tools' traces (gz and xz are unpacked) [default: by their content]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub from: Option<From>,
    /// Sizes of memory: parts of the pages that a program stores to, or bytes (12M)
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "1/2,1/4,1/8,1/16")]
    pub memory: Vec<MemoryArg>,
    /// End after so many instructions; 0 is all of them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub length: u64,
    /// Nanoseconds of a hard fault, of a soft fault, to look at an accessed bit, and to clear one
    #[arg(long, value_name = "HARD,SOFT,LOOK,CLEAR", default_value = "18000,9000,9,1200")]
    pub costs: CostsArg,
    /// The access that faults leaves the accessed bit clear, as most papers have it; processors
    /// set it
    #[arg(long)]
    pub clear_bits: bool,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// How much memory a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryArg {
    /// One part of so many of its pages.
    Part(u32),
    /// So many bytes.
    Bytes(u64),
}

impl MemoryArg {
    fn pages(self, of: u32) -> usize {
        let pages = match self {
            MemoryArg::Part(parts) => u64::from(of / parts),
            MemoryArg::Bytes(bytes) => bytes / PAGE_BYTES as u64,
        };
        usize::try_from(pages).unwrap_or(usize::MAX).max(1)
    }
}

impl FromStr for MemoryArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().strip_prefix("1/").map(str::parse) {
            Some(Ok(parts)) if parts > 0 => Ok(MemoryArg::Part(parts)),
            Some(_) => Err("write a part as 1/2 or 1/16".to_owned()),
            None if text.contains('/') => {
                Err(format!("{text:?} is no part that is known; write a part as 1/2 or 1/16"))
            }
            None => size::parse(text).map(MemoryArg::Bytes),
        }
    }
}

impl fmt::Display for MemoryArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MemoryArg::Part(parts) => write!(f, "1/{parts}"),
            MemoryArg::Bytes(bytes) => f.write_str(&size::format(bytes)),
        }
    }
}

/// Four times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CostsArg(pub Costs);

impl FromStr for CostsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| word.trim().parse::<u32>().map(u64::from);
        let numbers: Result<Vec<u64>, _> = text.split(',').map(number).collect();
        match numbers.as_deref() {
            Ok(&[hard_ns, soft_ns, read_ns, clear_ns]) if hard_ns > 0 => {
                Ok(CostsArg(Costs { hard_ns, soft_ns, read_ns, clear_ns }))
            }
            _ => Err("write four times in nanoseconds, for example 18000,9000,9,1200".to_owned()),
        }
    }
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    costs: Costs,
    faults_set_accessed_bits: bool,
    traces: Vec<Of>,
    /// Geometric means over all traces.
    means: Vec<Mean>,
}

/// What a trace's pages make of policies.
#[derive(Serialize)]
struct Of {
    file: PathBuf,
    pages: u32,
    page_changes: usize,
    cells: Vec<Cell>,
}

/// A policy's time over the optimum's.
#[derive(Serialize)]
struct Mean {
    policy: &'static str,
    memory: String,
    times_optimum: f64,
}

/// Prints them.
pub fn pages(args: &PagesArgs) -> Result<u8> {
    let fault_sets = if args.clear_bits { FaultSets::Nothing } else { FaultSets::TheBit };
    let mut traces = Vec::new();
    for file in &args.files {
        let string = string(file, args)?;
        if string.pages() == 0 {
            let sentence = format!("{}: none of its instructions stores", file.display());
            return Err(Failure::no(sentence).into());
        }
        let capacities: Vec<usize> =
            args.memory.iter().map(|memory| memory.pages(string.pages())).collect();
        let name = file.display();
        let cells = study(&string, &capacities, &args.costs.0, fault_sets, |policy, pages| {
            progress::stage(&format!("{name}: {policy} with {pages} pages"));
        });
        progress::clear();
        let (pages, page_changes) = (string.pages(), string.references().len());
        traces.push(Of { file: file.clone(), pages, page_changes, cells });
    }
    let report = Report {
        schema: SCHEMA,
        costs: args.costs.0,
        faults_set_accessed_bits: !args.clear_bits,
        means: means(&traces, &args.memory),
        traces,
    };
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&text(&report, &args.memory))?,
    }
    Ok(0)
}

fn string(file: &Path, args: &PagesArgs) -> Result<ReferenceString> {
    let input = InputArgs { file: file.to_owned(), from: args.from, salvage: false };
    let mut trace = Metered::open(&input, limit(args.length))?;
    ReferenceString::read(&mut trace, limit(args.length))
        .with_context(|| file.display().to_string())
}

/// A policy's time over the optimum's. Cells are in the order of policies, then of sizes.
fn ratio(of: &Of, policy: usize, size: usize, sizes: usize) -> f64 {
    let time = |policy: usize| of.cells[policy * sizes + size].time_ns as f64;
    time(policy) / time(0)
}

fn means(traces: &[Of], sizes: &[MemoryArg]) -> Vec<Mean> {
    let policies = traces[0].cells.len() / sizes.len();
    let cells = (0..policies).flat_map(|policy| (0..sizes.len()).map(move |size| (policy, size)));
    let mean = |(policy, size): (usize, usize)| {
        let logs = traces.iter().map(|of| ratio(of, policy, size, sizes.len()).ln());
        Mean {
            policy: traces[0].cells[policy * sizes.len()].policy,
            memory: sizes[size].to_string(),
            times_optimum: (logs.sum::<f64>() / traces.len() as f64).exp(),
        }
    };
    cells.map(mean).collect()
}

fn text(report: &Report, sizes: &[MemoryArg]) -> String {
    let mut text = String::new();
    for of in &report.traces {
        let bytes = u64::from(of.pages) * PAGE_BYTES as u64;
        let (file, pages) = (of.file.display(), of.pages);
        let _ = writeln!(text, "{file}: {pages} pages that it stores to ({})", size::format(bytes));
        heading(&mut text, "page-ins, time", sizes);
        for (policy, row) in of.cells.chunks(sizes.len()).enumerate() {
            let _ = write!(text, "{:<14}", row[0].policy);
            for (size, cell) in row.iter().enumerate() {
                let ratio = ratio(of, policy, size, sizes.len());
                let _ = write!(text, "{:>11} {ratio:>6.2}", cell.counts.page_ins);
            }
            text.push('\n');
        }
        text.push('\n');
    }
    if report.traces.len() > 1 {
        let _ = writeln!(text, "Geometric means of {} traces", report.traces.len());
        heading(&mut text, "time", sizes);
        for row in report.means.chunks(sizes.len()) {
            let _ = write!(text, "{:<14}", row[0].policy);
            for mean in row {
                let _ = write!(text, "{:>18.2}", mean.times_optimum);
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text + "time: of all faults and looks, over the optimum's faults\n"
}

fn heading(text: &mut String, what: &str, sizes: &[MemoryArg]) {
    let _ = write!(text, "{what:<14}");
    for size in sizes {
        let _ = write!(text, "{:>18}", size.to_string());
    }
    text.push('\n');
}
