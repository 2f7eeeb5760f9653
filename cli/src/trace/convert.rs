//! `casemate trace convert`.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result};
use casemate_sim::trace::any::AnyTrace;
use casemate_sim::trace::format::{Totals, Writer};
use casemate_sim::trace::{Instruction, Source};
use serde::Serialize;

use super::args::{ConvertArgs, limit};
use super::input::complaints;
use crate::failure::Failure;
use crate::out;
use crate::output::{self, SCHEMA};
use crate::progress::Meter;

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
    let name = || args.input.file.display().to_string();
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer::new(out, input.header())?;
    let mut record = Instruction::default();
    let mut instructions = 0_u64;
    let mut meter = Meter::new(total(args), true);
    while limit(args.length).is_none_or(|length| instructions < length)
        && input.next(&mut record).with_context(name)?
    {
        writer.write(&record).with_context(name)?;
        instructions += record.instructions();
        meter.add(record.instructions());
    }
    drop(meter);
    if instructions == 0 && !input.damages().is_empty() {
        let sentence = format!("{}: nothing of the trace is whole", name());
        return Err(Failure::no(sentence).into());
    }
    let (totals, out) = writer.finish()?;
    out::sync(&out.into_inner().map_err(|error| error.into_error())?)?;
    Ok(totals)
}

/// Instructions that will be read, as far as that is known: `--length`, or all that there are.
fn total(args: &ConvertArgs) -> Option<u64> {
    match (limit(args.length), args.input.instructions()) {
        (Some(length), Some(all)) => Some(length.min(all)),
        (length, all) => length.or(all),
    }
}
