//! `casemate trace merge`.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result};
use casemate_sim::trace::any::{AnyTrace, instructions_of};
use casemate_sim::trace::format::{Totals, Writer};
use casemate_sim::trace::turns::Turns;
use casemate_sim::trace::{self, CopyError, Header, Instruction, Source};
use serde::Serialize;

use super::args::{From, MergeArgs, limit};
use crate::failure::Failure;
use crate::out;
use crate::output::{self, SCHEMA};
use crate::progress::Meter;

#[derive(Serialize)]
struct Report {
    schema: u32,
    file: String,
    processes: usize,
    instructions: u64,
    loads: u64,
    stores: u64,
    switches: u64,
}

/// Reads some traces and writes one.
pub fn merge(args: &MergeArgs) -> Result<u8> {
    args.out.apart_from(&args.json)?;
    args.files.iter().try_for_each(|file| args.out.apart_from_input(file))?;
    let format = args.from.map(From::format);
    let open = |path| AnyTrace::open(path, format);
    let traces = args.files.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let header = header(args);
    let mut turns =
        Turns::new(traces, args.every).map_err(|error| Failure::own(error.to_string()))?;
    let totals = args.out.fill(|file| copy(&mut turns, file, &header, args))?;
    let Totals { instructions, loads, stores, .. } = totals;
    let (file, processes, switches) = (args.out.to_string(), args.files.len(), turns.switches());
    match &args.json.to {
        Some(to) => {
            let report =
                Report { schema: SCHEMA, file, processes, instructions, loads, stores, switches };
            output::json(to, &report)?;
        }
        None => args.out.say(&format!(
            "{file}: {instructions} instructions of {processes} processes, {switches} switches, \
             {loads} loads, {stores} stores\n"
        ))?,
    }
    Ok(0)
}

/// The names of all, and how they were put together.
fn header(args: &MergeArgs) -> Header {
    let names: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
    Header {
        recorded_by: format!("casemate trace merge, turns of {} instructions", args.every),
        program: names.join("+").into_bytes(),
        arguments: names.into_iter().map(String::into_bytes).collect(),
        ..Header::default()
    }
}

fn copy(
    turns: &mut Turns<AnyTrace>,
    file: File,
    header: &Header,
    args: &MergeArgs,
) -> Result<Totals> {
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer::new(out, header)?;
    let length = limit(args.length);
    let all = args.files.iter().map(|path| instructions_of(path)).sum::<Option<u64>>();
    let total = match (length, all) {
        (Some(length), Some(all)) => Some(length.min(all)),
        (length, all) => length.or(all),
    };
    let (mut instructions, mut meter) = (0_u64, Meter::new(total, true));
    let mut is_request = false;
    let next = |record: &mut Instruction| {
        let read = turns.next(record);
        is_request |= record.arrival_cycle.is_some();
        read
    };
    let goes_on = |record: &Instruction| {
        instructions += record.instructions();
        meter.add(record.instructions());
        record.arrival_cycle.is_none() && length.is_none_or(|length| instructions < length)
    };
    let copied = trace::copy::copy(next, |record| writer.write(record), goes_on);
    drop(meter);
    let name = || args.files[turns.running()].display().to_string();
    copied.map_err(|error| match error {
        CopyError::Read(error) => anyhow::Error::from(error).context(name()),
        CopyError::Write(error) => anyhow::Error::from(error).context(args.out.to_string()),
    })?;
    if is_request {
        let sentence = "a trace of requests to memory runs on no core, and takes no turns there";
        return Err(Failure::no(format!("{}: {sentence}", name())).into());
    }
    let written = || args.out.to_string();
    let (totals, out) = writer.finish().with_context(written)?;
    let file = out.into_inner().map_err(|error| error.into_error()).with_context(written)?;
    out::sync(&file).with_context(written)?;
    Ok(totals)
}
