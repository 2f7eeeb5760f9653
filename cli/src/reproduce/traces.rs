//! The traces that are needed: those that are there, and the others recorded.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use casemate_workloads::programs::{Options, Recorder, find_workload};

use super::args::ReproduceArgs;
use super::{Job, stopped};
use crate::progress;
use crate::sim::traces::{Trace, look_at};
use crate::sys::signals;

/// All of them, by the programs' names.
pub fn ensure(args: &ReproduceArgs, jobs: &[Job]) -> Result<BTreeMap<String, Trace>> {
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for run in jobs.iter().flat_map(|job| &job.plan.runs) {
        let number = |key: &str| run.config.number(key);
        let length = number("run.warmup_instructions") + number("run.length_instructions");
        let most = wanted.entry(&run.workload).or_default();
        *most = (*most).max(length);
    }
    let mut traces = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(traces);
    }
    let casemate = std::env::current_exe().context("this program's file cannot be named")?;
    let workload = find_workload(&casemate)?;
    let recorder = Recorder::new(Options { casemate, workload, folder: args.traces.clone() })?;
    let told = &mut |line: &str| progress::stage(line);
    for (name, instructions) in wanted {
        // Longer ones are for all: full runs want what programs.toml says.
        let instructions = args.quick.then_some(instructions);
        // A terminal's Ctrl-C ends what is being recorded, too.
        let all = recorder.ensure(&[name], instructions, told);
        if signals::stop_wanted() {
            return Err(stopped());
        }
        for recorded in all? {
            traces.insert(recorded.name, look_at(&recorded.path, None)?);
        }
    }
    Ok(traces)
}
