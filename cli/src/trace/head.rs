//! `casemate trace head`.

use std::fmt::Write;

use anyhow::{Context, Result};
use casemate_sim::trace::any::AnyTrace;
use casemate_sim::trace::{Branch, Extent, Instruction, Kind, Operation, Reference, Source};
use serde_json::{Value, json};

use super::args::HeadArgs;
use super::input::{Metered, complaints};
use crate::failure::Failure;
use crate::output::{self, JsonTo};

/// Prints records.
pub fn head(args: &HeadArgs) -> Result<u8> {
    let mut input = Metered::open(&args.input, Some(args.at.saturating_add(args.records)))?;
    let name = || args.input.file.display().to_string();
    let mut record = Instruction::default();
    let (mut number, mut text) = (0_u64, String::new());
    if let (AnyTrace::Own(own), true) = (&mut input.trace, args.at > 0 && !args.input.salvage) {
        number = own.seek(args.at).with_context(name)?;
    }
    let (mut left, mut printed) = (args.records, false);
    while left > 0 && input.next(&mut record).with_context(name)? {
        let last = number + record.instructions() - 1;
        if last >= args.at {
            match args.json {
                Some(_) => writeln!(text, "{}", object(last, &record))?,
                None => writeln!(text, "{}", line(last, &record))?,
            }
            (left, printed) = (left - 1, true);
        }
        number = last + 1;
    }
    if args.at > 0 && args.records > 0 && !printed {
        let sentence = format!("{}: --at {} is past its {number} instructions", name(), args.at);
        return Err(Failure::no(sentence).into());
    }
    match &args.json {
        Some(JsonTo::File(path)) => output::replace(path, text.as_bytes())
            .with_context(|| format!("cannot write the records to {}", path.display()))?,
        _ => output::stdout(&text)?,
    }
    for complaint in complaints(input.trace.damages(), &args.input.file) {
        output::stderr(&format!("casemate: {complaint}\n"));
    }
    Ok(0)
}

/// Number, thread, address, length, then what it did.
fn line(number: u64, record: &Instruction) -> String {
    let Instruction { thread, pc, length_bytes, unrecorded_before, .. } = record;
    let mut line = format!("{number:>10} t{thread} {pc:#014x} +{length_bytes:<2}");
    match record.branch {
        Branch::No => {}
        Branch::NotTaken => line += " not-taken",
        Branch::Taken => line += " taken",
    }
    if record.operation != Operation::Simple {
        line += &format!(" {}", record.operation.name());
    }
    if *unrecorded_before > 0 {
        line += &format!(" after={unrecorded_before}");
    }
    if let Some(cycle) = record.arrival_cycle {
        line += &format!(" cycle={cycle}");
    }
    for Reference { kind, size_bytes, address, value } in &record.references {
        let kind = if *kind == Kind::Load { 'L' } else { 'S' };
        line += &format!(" {kind}{size_bytes}@{address:#x}");
        if let Some(value) = value {
            line += &format!("={value:#x}");
        }
    }
    for Extent { address, size_bytes } in &record.changed {
        line += &format!(" changed={size_bytes}@{address:#x}");
    }
    line
}

fn object(number: u64, record: &Instruction) -> Value {
    let reference = |r: &Reference| {
        let kind = if r.kind == Kind::Load { "load" } else { "store" };
        json!({"kind": kind, "address": r.address, "size_bytes": r.size_bytes, "value": r.value})
    };
    let extent = |e: &Extent| json!({"address": e.address, "size_bytes": e.size_bytes});
    let branch = match record.branch {
        Branch::No => None,
        Branch::NotTaken => Some("not taken"),
        Branch::Taken => Some("taken"),
    };
    json!({
        "instruction": number,
        "thread": record.thread,
        "pc": record.pc,
        "length_bytes": record.length_bytes,
        "operation": record.operation.name(),
        "unrecorded_before": record.unrecorded_before,
        "branch": branch,
        "registers_read": record.registers.read.iter().filter(|r| **r > 0).collect::<Vec<_>>(),
        "registers_written": record.registers.written.iter().filter(|r| **r > 0).collect::<Vec<_>>(),
        "arrival_cycle": record.arrival_cycle,
        "references": record.references.iter().map(reference).collect::<Vec<_>>(),
        "changed": record.changed.iter().map(extent).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_an_object_say_what_an_instruction_computes() {
        let plain = Instruction { pc: 0x40, length_bytes: 4, ..Instruction::default() };
        assert_eq!(line(7, &plain), "         7 t0 0x000000000040 +4 ");
        let sum = Instruction {
            operation: Operation::FloatAdd,
            references: vec![Reference::load(0x1000, 8)],
            ..plain.clone()
        };
        assert_eq!(line(7, &sum), "         7 t0 0x000000000040 +4  float-add L8@0x1000");
        assert_eq!(object(7, &sum)["operation"], "float-add");
        assert_eq!(object(7, &plain)["operation"], "simple");
    }
}
