//! `casemate bench accuracy`: the DDR model beside DRAMsim3, stream by stream, and a core with its
//! caches and memory beside ChampSim, program by program.

mod cores;
mod dram;

use anyhow::Result;
use casemate_sim::cores::accuracy as cores_accuracy;
use casemate_sim::dram::accuracy as dram_accuracy;
use serde::Serialize;

use super::args::AccuracyArgs;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};

#[derive(Serialize)]
struct Report {
    schema: u32,
    reference: &'static str,
    dram: Vec<dram::Row>,
    cores_reference: &'static str,
    cores: Vec<cores::Program>,
}

/// A number of both.
#[derive(Serialize)]
struct Pair<T> {
    ours: T,
    theirs: T,
}

fn pair<T>(ours: T, theirs: T) -> Pair<T> {
    Pair { ours, theirs }
}

fn both(pair: &Pair<u64>) -> String {
    format!("{} / {}", pair.ours, pair.theirs)
}

/// Compares and prints.
pub fn accuracy(args: &AccuracyArgs) -> Result<u8> {
    let compared = dram_accuracy::compare_all().map_err(|why| Failure::own(why.to_string()))?;
    let dram: Vec<dram::Row> = compared.iter().map(dram::row).collect();
    let compared = cores_accuracy::compare_all().map_err(|why| Failure::own(why.to_string()))?;
    let cores: Vec<cores::Program> = compared.iter().map(cores::program).collect();
    let report =
        Report { schema: SCHEMA, reference: "DRAMsim3", dram, cores_reference: "ChampSim", cores };
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&(dram::table(&report.dram) + &cores::table(&report.cores)))?,
    }
    Ok(0)
}
