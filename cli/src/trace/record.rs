//! `casemate trace record`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use casemate_sim::trace::format::{Totals, Writer};
use casemate_sim::trace::live::{Ending, Live, Options};
use casemate_sim::trace::{self, CopyError, Instruction, Source, TraceError};
use serde::Serialize;

use super::args::{RecordArgs, limit};
use crate::failure::Failure;
use crate::out::Out;
use crate::output::{self, SCHEMA};
use crate::progress::Meter;
use crate::sys::signals;

#[derive(Serialize)]
struct Report {
    schema: u32,
    file: String,
    tracer: String,
    values: bool,
    ending: String,
    skipped_instructions: u64,
    instructions: u64,
    loads: u64,
    stores: u64,
    seconds: f64,
    instructions_per_second: f64,
    references_per_second: f64,
    file_bytes: u64,
    /// Of the file, for each load and store.
    bytes_per_reference: Option<f64>,
}

/// Records a program into a file.
pub fn record(args: &RecordArgs) -> Result<u8> {
    let options = Options {
        command: args.command.clone(),
        skip: args.skip,
        length: limit(args.length),
        values: !args.no_values,
        with: args.with.map(super::args::With::which),
    };
    let path = match &args.out {
        None => default_name(&args.command),
        Some(Out::File(path)) => path.clone(),
        Some(Out::Standard) => {
            let sentence = "-o -: standard output is the program's; name a file for the trace";
            return Err(Failure::own(sentence).into());
        }
    };
    // What was recorded before an interrupt is a whole trace.
    signals::remember_stop()
        .and_then(|()| signals::end_children_on_stop(libc::SIGKILL))
        .context("signals cannot be handled")?;
    let start = Instant::now();
    let mut live = Live::start(&options)?;
    if !args.quiet {
        let values = if has_values(args, &live) { "with values" } else { "without values" };
        let tracer = live.tracer();
        output::stderr(&format!(
            "casemate: recording into {}, {values}: {tracer}\n",
            path.display()
        ));
    }
    let meter = Meter::new(limit(args.length), !args.quiet);
    if args.skip > 0 {
        meter.waits(&format!("leaving out {} instructions", args.skip));
    }
    let totals = write(&mut live, &path, meter)?;
    let report = report(args, &live, &totals, &path, start.elapsed().as_secs_f64())?;
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None if args.quiet => {}
        None => output::stderr(&summary(&report)),
    }
    Ok(0)
}

/// In the folder where the command was given.
fn default_name(command: &[OsString]) -> PathBuf {
    let name = command.first().and_then(|name| Path::new(name).file_name());
    let mut name = name.unwrap_or_default().to_owned();
    name.push(".casetrace");
    name.into()
}

fn has_values(args: &RecordArgs, live: &Live) -> bool {
    !args.no_values && live.tracer().has_values()
}

/// A trace that is there is replaced in one step. Where none is, the new one is written straight
/// into its file: if this machine stops, salvage reads what is there.
fn write(live: &mut Live, path: &Path, meter: Meter) -> Result<Totals> {
    let name = || format!("{}: the trace cannot be written", path.display());
    let ended = match path.is_file() {
        true => {
            let cannot = |error| Err(error).with_context(name);
            output::replace_with(path, |file| fill(live, file, path, meter), cannot)
        }
        false => File::create(path).with_context(name).and_then(|f| fill(live, f, path, meter)),
    };
    let (totals, ended) = ended?;
    ended.with_context(|| format!("{}: the recording broke off", path.display()))?;
    Ok(totals)
}

/// Fills the file of a trace, and says how the recording ended.
fn fill(
    live: &mut Live,
    file: File,
    path: &Path,
    mut meter: Meter,
) -> Result<(Totals, Result<(), TraceError>)> {
    let name = || format!("{}: the trace cannot be written", path.display());
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer::new(out, live.header()).with_context(name)?;
    let goes_on = |record: &Instruction| {
        meter.add(record.instructions());
        !signals::stop_wanted()
    };
    let ended =
        trace::copy::copy(|record| live.next(record), |record| writer.write(record), goes_on);
    drop(meter);
    let ended = match ended {
        Err(CopyError::Write(error)) => return Err(error).with_context(name),
        Err(CopyError::Read(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    // However it ended, what came before is a whole trace.
    let (totals, _) = writer.finish().with_context(name)?;
    Ok((totals, ended))
}

fn report(
    args: &RecordArgs,
    live: &Live,
    totals: &Totals,
    path: &Path,
    seconds: f64,
) -> Result<Report> {
    let file_bytes = fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let references = totals.loads + totals.stores;
    Ok(Report {
        schema: SCHEMA,
        file: path.display().to_string(),
        tracer: live.tracer().to_string(),
        values: has_values(args, live),
        // After a signal to us it is one of ours that ended the program.
        ending: match live.ending().filter(|_| !signals::stop_wanted()) {
            Some(Ending::Exited(status)) => status.to_string(),
            Some(Ending::Stopped) => "stopped after --length instructions".to_owned(),
            Some(Ending::BrokeOff(status)) => format!(
                "not recorded to its end, since it was killed or replaced itself; then {status}"
            ),
            None => "stopped by a signal to casemate".to_owned(),
        },
        skipped_instructions: args.skip,
        instructions: totals.instructions,
        loads: totals.loads,
        stores: totals.stores,
        seconds,
        instructions_per_second: totals.instructions as f64 / seconds,
        references_per_second: references as f64 / seconds,
        file_bytes,
        bytes_per_reference: (references > 0).then(|| file_bytes as f64 / references as f64),
    })
}

fn summary(report: &Report) -> String {
    let millions = |count: f64| format!("{:.1} million", count / 1e6);
    let of_each =
        report.bytes_per_reference.map_or(String::new(), |b| format!(", {b:.3} a reference"));
    format!(
        "casemate: {} instructions, {} loads and {} stores in {:.1} s ({} instructions and {} references a second)\n\
         casemate: {} bytes{of_each}; the program: {}\n",
        report.instructions,
        report.loads,
        report.stores,
        report.seconds,
        millions(report.instructions_per_second),
        millions(report.references_per_second),
        report.file_bytes,
        report.ending,
    )
}
