//! `casemate trace misses`.

use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::{Context, Error, Result};
use casemate_sim::config::{self, ConfigurationError};
use casemate_sim::machine::core::CoreConfig;
use casemate_sim::machine::hierarchy::{CacheLevelConfig, HierarchyConfig};
use casemate_sim::machine::memory::FlatBus;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::processor::RunError;
use casemate_sim::machine::{ProcessorConfig, Timeline};
use casemate_sim::misses::Misses;
use casemate_sim::trace::any::hash;
use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::{CopyError, Header};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::args::{InputArgs, limit};
use super::caches::CacheArg;
use super::input::{Metered, complaints, with_name};
use crate::count::count;
use crate::failure::Failure;
use crate::out::{self, Out};
use crate::output::{self, Json, SCHEMA};
use crate::sim::machine;
use crate::size::{self, Size};

/// Options that say in short what a configuration says in full.
const CACHE_OPTIONS: [&str; 5] = ["l1i", "l1d", "l2", "cores", "memory"];
/// The machine that values are set on if no other is named.
const PRESET: &str = "lhash";

/// `casemate trace misses`.
#[derive(Debug, Args)]
pub struct MissesArgs {
    /// What to run.
    #[command(flatten)]
    pub input: InputArgs,
    /// Where to: a file, replaced in one step; - is standard output
    #[arg(long, short, alias = "output", value_name = "FILE")]
    pub out: Out,
    /// How to write it
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = To::Casemate)]
    pub format: To,
    /// End after so many instructions; 0 is all of them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub length: u64,
    /// A paper's machine instead of LHash's with the caches below (`casemate sim --list` explains
    /// them)
    #[arg(long, value_name = "NAME", conflicts_with_all = CACHE_OPTIONS)]
    pub preset: Option<String>,
    /// A machine from a file, over the preset; its keys of run and protection have no effect here
    #[arg(long, value_name = "FILE", conflicts_with_all = CACHE_OPTIONS)]
    pub config: Option<PathBuf>,
    /// One value of the machine, over both
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = CACHE_OPTIONS)]
    pub set: Vec<String>,
    /// First level for instructions, of each core
    #[arg(long, value_name = "SIZE,WAYS,LINE", default_value = "32K,8,64")]
    pub l1i: CacheArg,
    /// First level for data, of each core
    #[arg(long, value_name = "SIZE,WAYS,LINE", default_value = "32K,8,64")]
    pub l1d: CacheArg,
    /// Second and last level, of all cores
    #[arg(long, value_name = "SIZE,WAYS,LINE", default_value = "1M,8,64")]
    pub l2: CacheArg,
    /// Cores, 1 to 8; thread t runs on core t modulo N
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cores: u64,
    /// Memory for the program's pages
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub memory: Size,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// Formats that hold requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// Casemate's own, with cycles
    Casemate,
    /// Ramulator 2, LoadStoreTrace, without cycles
    RamulatorLs,
    /// DRAMsim3, with cycles of the core
    Dramsim3,
}

#[derive(Serialize)]
struct Report {
    schema: u32,
    file: String,
    instructions: u64,
    cycles: u64,
    reads: u64,
    writes: u64,
    clean_evictions: u64,
}

/// Writes it.
pub fn misses(args: &MissesArgs) -> Result<u8> {
    args.out.apart_from(&args.json)?;
    args.out.apart_from_input(&args.input.file)?;
    let input = Metered::open(&args.input, limit(args.length))?;
    let header = Header {
        recorded_by: "casemate trace misses".to_owned(),
        hash: Some(hash(&args.input.file)?),
        ..input.trace.header().clone()
    };
    let (machine, timeline) = machine(args)?;
    let misses = Misses::new(&machine, timeline, input, limit(args.length));
    let mut misses =
        misses.map_err(|error| Failure::own(format!("this machine cannot be built: {error}")))?;
    args.out.fill(|file| {
        let out = BufWriter::with_capacity(1 << 20, file);
        let out = match args.format {
            To::Casemate => misses.write_trace(&header, out),
            To::RamulatorLs => misses.write_foreign(Format::RamulatorLoadStore, out),
            To::Dramsim3 => misses.write_foreign(Format::Dramsim3, out),
        };
        let out = out.map_err(|error| broken_off(error, args))?;
        let name = || args.out.to_string();
        let file = out.into_inner().map_err(|error| error.into_error()).with_context(name)?;
        out::sync(&file).with_context(name)
    })?;
    let statistics = misses.statistics();
    let (reads, writes) = misses.requests();
    let report = Report {
        schema: SCHEMA,
        file: args.out.to_string(),
        instructions: statistics.instructions,
        cycles: statistics.cycles,
        reads,
        writes,
        clean_evictions: misses.clean_evictions(),
    };
    for complaint in complaints(misses.source().trace.damages(), &args.input.file) {
        output::stderr(&format!("casemate: {complaint}\n"));
    }
    match &args.json.to {
        Some(to) => output::json(to, &report)?,
        None => args.out.say(&format!(
            "{}: {} instructions in {} cycles, {reads} misses, {writes} write-backs ({} lines left unchanged)\n",
            report.file,
            report.instructions,
            report.cycles,
            report.clean_evictions
        ))?,
    }
    Ok(0)
}

/// Why it broke off. Who has named no machine says with a flag how much memory there is.
fn broken_off(error: CopyError<RunError>, args: &MissesArgs) -> Error {
    let is_of_memory = matches!(error, CopyError::Read(RunError::OutOfFrames(_)));
    if !is_of_memory || is_configured(args) {
        return with_name(error, &args.input, &args.out);
    }
    let (file, memory) = (args.input.file.display(), size::format(args.memory.0));
    Failure::no(format!("{file}: the program touches more than {memory}; give more with --memory"))
        .into()
}

/// Whether a machine is named, of which values are said with --set.
fn is_configured(args: &MissesArgs) -> bool {
    args.preset.is_some() || args.config.is_some() || !args.set.is_empty()
}

/// The machine that is configured; if none is, that of LHash's Table 2 with the caches that are
/// named.
fn machine(args: &MissesArgs) -> Result<(ProcessorConfig, Timeline)> {
    if !is_configured(args) {
        let memory = FlatBus::new(FlatBusConfig::LHASH).context("this memory cannot be built")?;
        return Ok((lhash(args), Timeline::new(memory.into())));
    }
    let preset = args.preset.as_deref().unwrap_or(PRESET);
    machine::set_once(&args.set)?;
    let set = [args.set.clone(), vec![LEAST_LINE.to_owned()]].concat();
    let resolved = machine::one(preset, args.config.as_deref(), &set)?;
    if let Some(text) = args.set.iter().find(|text| says_nothing_here(machine::key(text))) {
        let sentence = format!(
            "--set {text}: this command runs the whole trace without protection, so keys of run and \
             protection have no effect; --length ends it earlier"
        );
        return Err(Failure::own(sentence).into());
    }
    let usage = |error: ConfigurationError| Failure::own(error.to_string());
    let processor = config::machine::processor(&resolved).map_err(usage)?;
    Ok((processor, config::memory::timeline(&resolved).map_err(usage)?))
}

/// No lines of the machine are too small here, where there is no protection unit: a preset's would
/// refuse them.
const LEAST_LINE: &str = "protection.line_bytes=64";

/// Whether a key is of what is not done here. Random replacement has the seed of runs.
fn says_nothing_here(key: &str) -> bool {
    (key.starts_with("run.") && key != "run.seed") || key.starts_with("protection.")
}

/// The machine of LHash's Table 2, with these caches.
fn lhash(args: &MissesArgs) -> ProcessorConfig {
    let shaped = |CacheArg(shape): CacheArg, level: CacheLevelConfig| CacheLevelConfig {
        size_bytes: shape.size_bytes,
        ways: shape.ways,
        block_bytes: shape.block_bytes,
        ..level
    };
    let lhash = HierarchyConfig::LHASH;
    let hierarchy = HierarchyConfig {
        l1i: shaped(args.l1i, lhash.l1i),
        l1d: shaped(args.l1d, lhash.l1d),
        l2: shaped(args.l2, lhash.l2),
        memory_bytes: args.memory.0,
        ..lhash
    };
    ProcessorConfig { core: CoreConfig { cores: args.cores, ..CoreConfig::LHASH }, hierarchy }
}
