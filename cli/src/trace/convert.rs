//! `casemate trace convert`.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result};
use casemate_sim::trace::any::AnyTrace;
use casemate_sim::trace::format::{Totals, Writer};
use casemate_sim::trace::{self, Instruction, Source};
use serde::Serialize;

use super::args::{ConvertArgs, limit};
use super::input::{complaints, with_name};
use crate::failure::Failure;
use crate::out;
use crate::output::{self, SCHEMA};

#[derive(Serialize)]
struct Report {
    schema: u32,
    file: String,
    instructions: u64,
    loads: u64,
    stores: u64,
}

/// Reads one trace and writes the other.
pub fn convert(args: &ConvertArgs) -> Result<u8> {
    args.out.apart_from(&args.json)?;
    args.out.apart_from_input(&args.input.file)?;
    let mut input = args.input.open()?;
    let totals = args.out.fill(|file| copy(&mut input, file, args))?;
    for complaint in complaints(input.damages(), &args.input.file) {
        output::stderr(&format!("casemate: {complaint}\n"));
    }
    let Totals { instructions, loads, stores, .. } = totals;
    let file = args.out.to_string();
    match &args.json.to {
        Some(to) => {
            output::json(to, &Report { schema: SCHEMA, file, instructions, loads, stores })?;
        }
        None => args.out.say(&format!(
            "{file}: {instructions} instructions, {loads} loads, {stores} stores\n"
        ))?,
    }
    Ok(0)
}

fn copy(input: &mut AnyTrace, file: File, args: &ConvertArgs) -> Result<Totals> {
    let header = input.header().clone();
    // Nothing is written of what is no trace.
    let mut first = Instruction::default();
    let read = input.next(&mut first).with_context(|| args.input.file.display().to_string())?;
    let mut first = Some((read, first));
    let next = |record: &mut Instruction| match first.take() {
        Some((read, first)) => {
            *record = first;
            Ok(read)
        }
        None => input.next(record),
    };
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer::new(out, &header)?;
    let mut instructions = 0_u64;
    let mut meter = args.input.meter(limit(args.length));
    let goes_on = |record: &Instruction| {
        instructions += record.instructions();
        meter.add(record.instructions());
        limit(args.length).is_none_or(|length| instructions < length)
    };
    trace::copy::copy(next, |record| writer.write(record), goes_on)
        .map_err(|error| with_name(error, &args.input, &args.out))?;
    drop(meter);
    if instructions == 0 && !input.damages().is_empty() {
        let sentence = format!("{}: nothing of the trace is whole", args.input.file.display());
        return Err(Failure::no(sentence).into());
    }
    let name = || args.out.to_string();
    let (totals, out) = writer.finish().with_context(name)?;
    let file = out.into_inner().map_err(|error| error.into_error()).with_context(name)?;
    out::sync(&file).with_context(name)?;
    Ok(totals)
}
