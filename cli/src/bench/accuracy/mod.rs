//! `casemate bench accuracy`: the DDR model beside DRAMsim3, stream by stream, a core with its
//! caches and memory beside ChampSim, and caches alone beside cachegrind, program by program.

mod caches;
mod cores;
mod dram;
mod policy;
mod valgrind;

use anyhow::Result;
use casemate_sim::cores::accuracy as cores_accuracy;
use casemate_sim::dram::accuracy as dram_accuracy;
use casemate_sim::dram::exchange::exchange_all;
use serde::Serialize;

use super::args::AccuracyArgs;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};

#[derive(Serialize)]
struct Report {
    schema: u32,
    reference: &'static str,
    dram: Vec<dram::Row>,
    policy: Vec<policy::Policy>,
    exchanged: Vec<policy::Steps>,
    cores_reference: &'static str,
    cores: Vec<cores::Program>,
    caches_reference: String,
    caches: Vec<caches::Caches>,
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
    let dram = compared.iter().map(dram::row).collect();
    let exchanged = exchange_all().map_err(|why| Failure::own(why.to_string()))?;
    let exchanged = exchanged.iter().map(|one| policy::steps(one, &compared)).collect();
    let policy = compared.iter().map(policy::policy).collect();
    let compared = cores_accuracy::compare_all().map_err(|why| Failure::own(why.to_string()))?;
    let cores = compared.iter().map(cores::program).collect();
    let (caches_reference, caches) = caches::compare(args.cachegrind)?;
    let report = Report {
        schema: SCHEMA,
        reference: "DRAMsim3",
        dram,
        policy,
        exchanged,
        cores_reference: "ChampSim",
        cores,
        caches_reference,
        caches,
    };
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&tables(&report))?,
    }
    Ok(0)
}

fn tables(report: &Report) -> String {
    dram::table(&report.dram)
        + &policy::table(&report.policy)
        + &policy::sequences_table(&report.policy)
        + &policy::steps_table(&report.exchanged)
        + &cores::table(&report.cores)
        + &caches::table(&report.caches_reference, &report.caches)
}
