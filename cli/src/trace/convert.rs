//! `casemate trace convert`.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result};
use casemate_sim::trace::format::{Totals, Writer};
use casemate_sim::trace::{Instruction, Source};

use super::args::ConvertArgs;
use super::input::Input;
use super::replace::replace;
use crate::failure::Failure;
use crate::output;
use crate::progress::Meter;

/// Reads one trace and writes the other.
pub fn convert(args: &ConvertArgs) -> Result<u8> {
    let mut input = Input::open(&args.input)?;
    let totals = replace(&args.output, |file| copy(&mut input, file, args))?;
    for complaint in input.complaints(&args.input.file) {
        output::stderr(&format!("casemate: {complaint}\n"));
    }
    output::stdout(&format!(
        "{}: {} instructions, {} loads, {} stores\n",
        args.output.display(),
        totals.instructions,
        totals.loads,
        totals.stores
    ))?;
    Ok(0)
}

fn copy(input: &mut Input, file: File, args: &ConvertArgs) -> Result<Totals> {
    let name = || args.input.file.display().to_string();
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer::new(out, input.header())?;
    let mut record = Instruction::default();
    let mut instructions = 0_u64;
    let mut meter = Meter::new(total(args), true);
    while args.length.is_none_or(|length| instructions < length)
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
    out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    Ok(totals)
}

/// Instructions that will be read, as far as that is known: `--length`, or all that there are.
fn total(args: &ConvertArgs) -> Option<u64> {
    match (args.length, args.input.instructions()) {
        (Some(length), Some(all)) => Some(length.min(all)),
        (length, all) => length.or(all),
    }
}
