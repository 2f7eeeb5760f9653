//! `casemate trace caches`.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use casemate_sim::locality::geometry::lru;
use casemate_sim::locality::{Counts, Geometry, References, Rules, Survey};
use casemate_sim::machine::cache::CacheConfig;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::args::InputArgs;
use super::input::{Metered, complaints};
use crate::count::count;
use crate::failure::Failure;
use crate::output::{self, Json, SCHEMA};
use crate::size::{self, format as size};

/// `casemate trace caches`.
#[derive(Debug, Args)]
pub struct CachesArgs {
    /// What to look at.
    #[command(flatten)]
    pub input: InputArgs,
    /// First level for instructions, of each core
    #[arg(long, value_name = "SIZE,WAYS,LINE", default_value = "32K,8,64")]
    pub l1i: CacheArg,
    /// First level for data, of each core
    #[arg(long, value_name = "SIZE,WAYS,LINE", default_value = "32K,8,64")]
    pub l1d: CacheArg,
    /// Last level, of all cores
    #[arg(long, value_name = "SIZE,WAYS,LINE", default_value = "1M,8,64")]
    pub l2: CacheArg,
    /// Cores; thread t runs on core t modulo N
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cores: usize,
    /// What a reference does to caches
    #[arg(long, value_enum, default_value_t = RulesName::WriteBack)]
    pub rules: RulesName,
    /// Instructions that warm the caches up before anything is counted
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub warmup: u64,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// Size, ways and line of a cache with LRU.
#[derive(Clone, Copy, Debug)]
pub struct CacheArg(pub CacheConfig);

impl FromStr for CacheArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let [all, ways, line] = parts[..] else {
            return Err("write size, ways and line, for example 1M,8,64".to_owned());
        };
        let number =
            |word: &str| word.trim().parse().map_err(|_| format!("{word:?} is no number of ways"));
        Ok(CacheArg(lru(size::parse(all)?, number(ways)?, size::parse(line)?)))
    }
}

/// The rules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RulesName {
    /// Write-back and write-allocate at both levels, as the simulated machine
    WriteBack,
    /// Those of Valgrind's cachegrind
    Cachegrind,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    file: PathBuf,
    instructions: u64,
    fetches: Kind,
    loads: Kind,
    stores: Kind,
    write_backs: u64,
    first_level_mpki: Option<f64>,
    last_level_mpki: Option<f64>,
    store_share: Option<f64>,
    write_back_share: Option<f64>,
    instruction_footprint_bytes: u64,
    data_footprint_bytes: u64,
}

#[derive(Serialize)]
struct Kind {
    references: u64,
    first_level_misses: u64,
    last_level_misses: u64,
}

impl From<References> for Kind {
    fn from(counts: References) -> Self {
        let References { references, first_level_misses, last_level_misses } = counts;
        Kind { references, first_level_misses, last_level_misses }
    }
}

/// Prints what caches make of a trace.
pub fn caches(args: &CachesArgs) -> Result<u8> {
    let geometry =
        Geometry { instruction: args.l1i.0, data: args.l1d.0, last: args.l2.0, cores: args.cores };
    let rules = match args.rules {
        RulesName::WriteBack => Rules::WriteBack,
        RulesName::Cachegrind => Rules::Cachegrind,
    };
    let mut survey = Survey::new(&geometry, rules)
        .map_err(|error| Failure::own(format!("these caches cannot be built: {error}")))?;
    let mut input = Metered::open(&args.input, None)?;
    let name = || args.input.file.display().to_string();
    let all = survey.take_all(&mut input, args.warmup).with_context(name)?;
    if args.warmup > 0 && args.warmup >= all {
        let (name, warmup) = (name(), args.warmup);
        let sentence =
            format!("{name}: --warmup {warmup} leaves nothing of its {all} instructions");
        return Err(Failure::no(sentence).into());
    }
    let report = report(args, &survey);
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => output::stdout(&text(&report))?,
    }
    for complaint in complaints(input.trace.damages(), &args.input.file) {
        output::stderr(&format!("casemate: {complaint}\n"));
    }
    Ok(0)
}

fn report(args: &CachesArgs, survey: &Survey) -> Report {
    let counts = survey.counts();
    let Counts { instructions, fetches, loads, stores, write_backs } = counts;
    Report {
        schema: SCHEMA,
        file: args.input.file.clone(),
        instructions,
        fetches: fetches.into(),
        loads: loads.into(),
        stores: stores.into(),
        write_backs,
        first_level_mpki: counts.first_level_mpki(),
        last_level_mpki: counts.last_level_mpki(),
        store_share: counts.store_share(),
        write_back_share: counts.write_back_share(),
        instruction_footprint_bytes: survey.footprint().instruction_bytes(),
        data_footprint_bytes: survey.footprint().data_bytes(),
    }
}

fn text(report: &Report) -> String {
    let mut text = format!("{:<14} {}\n", "instructions", report.instructions);
    text +=
        &format!("{:<14} {:>13} {:>13} {:>13}\n", "", "references", "first misses", "last misses");
    let kinds =
        [("fetches", &report.fetches), ("loads", &report.loads), ("stores", &report.stores)];
    for (name, kind) in kinds {
        let Kind { references, first_level_misses, last_level_misses } = kind;
        text += &format!(
            "{name:<14} {references:>13} {first_level_misses:>13} {last_level_misses:>13}\n"
        );
    }
    let mut line = |name: &str, value: String| text += &format!("{name:<14} {value}\n");
    line("write-backs", report.write_backs.to_string());
    if let (Some(first), Some(last)) = (report.first_level_mpki, report.last_level_mpki) {
        line("misses", format!("{first:.2} and {last:.2} for 1,000 instructions"));
    }
    if let Some(share) = report.store_share {
        line("stores", format!("{:.1} % of loads and stores", 100.0 * share));
    }
    if let Some(share) = report.write_back_share {
        line("bus", format!("{:.1} % of lines are written back", 100.0 * share));
    }
    line(
        "footprint",
        format!(
            "{} of instructions, {} of data",
            size(report.instruction_footprint_bytes),
            size(report.data_footprint_bytes)
        ),
    );
    text
}
