//! Flags of `casemate trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::live::Which;
use clap::{Args, Subcommand, ValueEnum};

use super::caches::CachesArgs;
use super::misses::MissesArgs;
use super::pages::PagesArgs;
use crate::count::count;
use crate::out::Out;
use crate::output::{Json, JsonTo};

/// `casemate trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: TraceWhat,
}

/// What can be done with traces.
#[derive(Debug, Subcommand)]
pub enum TraceWhat {
    /// Record what a program fetches, loads and stores, with QEMU or, where that takes no plugins,
    /// Valgrind
    Record(RecordArgs),
    /// Make a trace of Casemate's out of another tool's, or out of what is whole of a damaged one
    Convert(ConvertArgs),
    /// Let programs take turns on one processor: one trace of several processes out of their traces
    Merge(MergeArgs),
    /// Say which program a trace is of, and how much it holds
    Info(InfoArgs),
    /// Print instructions with their loads and stores
    Head(HeadArgs),
    /// Count what misses in two levels of caches, and how much memory is touched
    Caches(CachesArgs),
    /// Run a trace through a machine, and write down what its last-level cache asks of memory, with
    /// cycles
    Misses(MissesArgs),
    /// Run the pages of traces through replacement policies, in parts of their memory
    Pages(PagesArgs),
}

/// `casemate trace record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Leave out so many instructions at the start
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub skip: u64,
    /// End after so many instructions, when the program is killed; 0 is all of them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub length: u64,
    /// The trace to write [default: the program's name, with .casetrace]
    #[arg(long, short, alias = "output", value_name = "FILE")]
    pub out: Option<Out>,
    /// Tracer to use [default: the fastest that works here]
    #[arg(long, value_name = "TRACER", value_enum)]
    pub with: Option<With>,
    /// No values of loads and stores: faster, and a smaller trace
    #[arg(long)]
    pub no_values: bool,
    /// The report.
    #[command(flatten)]
    pub json: Json,
    /// No summary at the end, no notes, and no progress on a terminal
    #[arg(long, short)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// The tracers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum With {
    /// QEMU's user mode with Casemate's plugin: fast, with values and threads
    Qemu,
    /// Valgrind's tool lackey: slow, addresses only
    Valgrind,
}

impl With {
    /// The library's name of it.
    pub fn which(self) -> Which {
        match self {
            With::Qemu => Which::Qemu,
            With::Valgrind => Which::Valgrind,
        }
    }
}

/// A trace that is read.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// The trace
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Format of another tool's trace (gz and xz are unpacked) [default: by its content]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub from: Option<From>,
    /// Read what is whole of a damaged trace, and say what is missing
    #[arg(long, conflicts_with = "from")]
    pub salvage: bool,
}

/// The formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// ChampSim: 64 bytes an instruction
    Champsim,
    /// Ramulator 2, LoadStoreTrace
    RamulatorLs,
    /// Ramulator 2, SimpleO3
    RamulatorO3,
    /// DRAMsim3
    Dramsim3,
}

impl From {
    /// The library's name of it.
    pub fn format(self) -> Format {
        match self {
            From::Champsim => Format::ChampSim,
            From::RamulatorLs => Format::RamulatorLoadStore,
            From::RamulatorO3 => Format::RamulatorSimpleO3,
            From::Dramsim3 => Format::Dramsim3,
        }
    }
}

/// `casemate trace convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// What to convert.
    #[command(flatten)]
    pub input: InputArgs,
    /// The trace to write, replaced in one step; - is standard output
    #[arg(long, short, alias = "output", value_name = "FILE")]
    pub out: Out,
    /// End after so many instructions; 0 is all of them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub length: u64,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate trace merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The programs' traces, 2 to 8, in the order of their turns; one may be named several times
    #[arg(value_name = "FILE", required = true, num_args = 2..=8)]
    pub files: Vec<PathBuf>,
    /// Format of other tools' traces (gz and xz are unpacked) [default: by their content]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub from: Option<From>,
    /// Instructions of a turn
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = count)]
    pub every: u64,
    /// The trace to write, replaced in one step; - is standard output
    #[arg(long, short, alias = "output", value_name = "FILE")]
    pub out: Out,
    /// End after so many instructions; 0 is all of them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub length: u64,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate trace info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// What to look at.
    #[command(flatten)]
    pub input: InputArgs,
    /// Read everything and verify it, instead of header and index only
    #[arg(long)]
    pub check: bool,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate trace head`.
#[derive(Debug, Args)]
pub struct HeadArgs {
    /// What to look at.
    #[command(flatten)]
    pub input: InputArgs,
    /// How many records
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub records: u64,
    /// Begin with this instruction, from 0
    #[arg(long, value_name = "INSTRUCTION", default_value_t = 0)]
    pub at: u64,
    /// One JSON object a line, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// What `--length` says: so many instructions, or all of them for 0.
pub fn limit(length: u64) -> Option<u64> {
    (length > 0).then_some(length)
}
