//! `casemate trace info`.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use anyhow::{Context, Result};
use casemate_sim::trace::any::AnyTrace;
use casemate_sim::trace::format::Totals;
use casemate_sim::trace::{Instruction, Kind, Source, TraceError};
use serde::Serialize;

use super::args::InfoArgs;
use super::input::complaints;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::progress::Meter;

#[derive(Serialize)]
struct Report {
    schema: u32,
    format: &'static str,
    version: Option<u16>,
    recorded_by: String,
    program: String,
    arguments: Vec<String>,
    blake3: Option<String>,
    skipped_instructions: u64,
    instructions: u64,
    records: u64,
    loads: u64,
    stores: u64,
    file_bytes: u64,
    /// Of the file, for each load and store.
    bytes_per_reference: Option<f64>,
    damages: Vec<String>,
}

/// Prints what a trace is.
pub fn info(args: &InfoArgs) -> Result<u8> {
    let file = &args.input.file;
    if fs::metadata(file).is_ok_and(|kind| kind.file_type().is_fifo()) {
        let file = file.display();
        let sentence =
            format!("{file}: a pipe has no size and no index; write the trace to a file");
        return Err(Failure::no(sentence).into());
    }
    let mut input = args.input.open()?;
    let name = || args.input.file.display().to_string();
    let by_index = !args.check && !args.input.salvage;
    let totals = match &mut input {
        AnyTrace::Own(own) if by_index => own.totals().with_context(name)?,
        input => count(input, args.input.meter(None)).with_context(name)?,
    };
    let file_bytes = fs::metadata(&args.input.file).with_context(name)?.len();
    let report = report(args, &input, &totals, file_bytes);
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&text(&report))?,
    }
    if report.instructions == 0 && !report.damages.is_empty() {
        let sentence = format!("{}: nothing of the trace is whole", args.input.file.display());
        return Err(Failure::no(sentence).into());
    }
    Ok(0)
}

fn count(input: &mut AnyTrace, mut meter: Meter) -> Result<Totals, TraceError> {
    let mut totals = Totals::default();
    let mut record = Instruction::default();
    while input.next(&mut record)? {
        meter.add(record.instructions());
        totals.records += 1;
        totals.instructions = totals.instructions.saturating_add(record.instructions());
        let loads = record.references.iter().filter(|r| r.kind == Kind::Load).count();
        totals.loads += loads as u64;
        totals.stores += (record.references.len() - loads) as u64;
    }
    Ok(totals)
}

fn report(args: &InfoArgs, input: &AnyTrace, totals: &Totals, file_bytes: u64) -> Report {
    let header = input.header();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let hex = |hash: [u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let references = totals.loads + totals.stores;
    Report {
        schema: SCHEMA,
        format: input.format(),
        version: input.version(),
        recorded_by: header.recorded_by.clone(),
        program: text(&header.program),
        arguments: header.arguments.iter().map(|argument| text(argument)).collect(),
        blake3: header.hash.map(hex),
        skipped_instructions: header.skipped_instructions,
        instructions: totals.instructions,
        records: totals.records,
        loads: totals.loads,
        stores: totals.stores,
        file_bytes,
        bytes_per_reference: (references > 0).then(|| file_bytes as f64 / references as f64),
        damages: complaints(input.damages(), &args.input.file),
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:<14} {value}\n");
    let version = report.version.map_or(String::new(), |version| format!(" {version}"));
    line("format", &format!("{}{version}", report.format));
    line("recorded by", &report.recorded_by);
    if !report.program.is_empty() {
        let words: Vec<String> =
            [&report.program].into_iter().chain(&report.arguments).map(|w| quoted(w)).collect();
        line("program", &words.join(" "));
    }
    if let Some(hash) = &report.blake3 {
        line("BLAKE3", hash);
    }
    line("skipped", &format!("{} instructions", report.skipped_instructions));
    line("instructions", &report.instructions.to_string());
    line("records", &report.records.to_string());
    line("loads", &report.loads.to_string());
    line("stores", &report.stores.to_string());
    line("file", &format!("{} bytes", report.file_bytes));
    if let Some(bytes) = report.bytes_per_reference {
        line("a reference", &format!("{bytes:.3} bytes"));
    }
    for damage in &report.damages {
        line("DAMAGED", damage);
    }
    text
}

/// A word as a shell would take it, or escaped if it cannot be printed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("{word:?}")
}
