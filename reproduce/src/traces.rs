//! The traces that papers' runs need: those that are there, and the others recorded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use casemate_sim::experiment::trace_file::TraceFile;
use casemate_workloads::programs::{Options, Recorder, find_workload};

use crate::job::Job;

// What is recorded with an older format is recorded again.
const _: () = assert!(casemate_workloads::programs::FORMAT == casemate_sim::trace::format::VERSION);

/// Traces by the programs' names.
pub type Traces = BTreeMap<String, TraceFile>;

/// All of them, in `folder`, recorded with `casemate` where they are missing. `told` hears what is
/// being recorded. `None` if `stop` was set meanwhile.
///
/// # Errors
/// A program cannot be recorded, or a trace not be read.
pub fn ensure(
    jobs: &[Job],
    casemate: &Path,
    folder: &Path,
    stop: &AtomicBool,
    told: &mut dyn FnMut(&str),
) -> Result<Option<Traces>> {
    let mut traces = Traces::new();
    let wanted = wanted(jobs);
    if wanted.is_empty() {
        return Ok(Some(traces));
    }
    let workload = find_workload(casemate)?;
    let (casemate, folder) = (casemate.to_owned(), folder.to_owned());
    let recorder = Recorder::new(Options { casemate, workload, folder })?;
    let is_quick = jobs.iter().any(|job| job.wanted.quick);
    for (name, instructions) in wanted {
        // Longer ones are for all: full runs want what programs.toml says.
        let instructions = is_quick.then_some(instructions);
        // A terminal's Ctrl-C ends what is being recorded, too.
        let all = recorder.ensure(&[name], instructions, told);
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        for recorded in all? {
            traces.insert(recorded.name, TraceFile::look_at(&recorded.path, None)?);
        }
    }
    Ok(Some(traces))
}

/// The programs that run, each with the most instructions that any run takes of it.
fn wanted(jobs: &[Job]) -> BTreeMap<&str, u64> {
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for run in jobs.iter().flat_map(|job| &job.plan.runs) {
        let number = |key: &str| run.config.number(key);
        let length = number("run.warmup_instructions") + number("run.length_instructions");
        let most = wanted.entry(&run.workload).or_default();
        *most = (*most).max(length);
    }
    wanted
}
