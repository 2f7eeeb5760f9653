//! Flags of `casemate bench`.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::memeater::points::Points;
use crate::output::Json;
use crate::size::Size;

/// `casemate bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub what: BenchWhat,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchWhat {
    /// The pager: time per page beside the userfaultfd floor, plain Linux, and swapping to zram
    Pager(PagerArgs),
    /// Real programs at a part of their memory: casemate beside swapping to zram and to a file
    Programs(ProgramsArgs),
    /// Cryptkeeper's microbenchmark: what allocating, writing, reading and freeing n pages takes
    Memeater(MemeaterArgs),
    /// The engine's schemes on real bytes: time per 64-byte block, beside the bare cryptography
    Schemes(SchemesArgs),
    /// The simulator: instructions per second by stage, and what each scheme adds to them
    Sim(SimBenchArgs),
    /// The DDR model beside DRAMsim3, the core beside ChampSim, caches beside cachegrind
    Accuracy(AccuracyArgs),
}

/// `casemate bench accuracy`.
#[derive(Clone, Debug, Args)]
pub struct AccuracyArgs {
    /// Run six of this machine's programs under Valgrind, instead of printing what was recorded
    #[arg(long)]
    pub cachegrind: bool,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate bench sim`.
#[derive(Clone, Debug, Args)]
pub struct SimBenchArgs {
    /// Measure only these schemes (`casemate sim --list` names them)
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub only: Vec<String>,
    /// Instructions of each program; a tenth of that for each scheme
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(10_000..=10_000_000_000))]
    pub instructions: u64,
    /// Runs over everything; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate bench schemes`.
#[derive(Clone, Debug, Args)]
pub struct SchemesArgs {
    /// Measure only these schemes (`casemate sim --list` names them)
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub only: Vec<String>,
    /// Runs over all schemes; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate bench programs`.
#[derive(Clone, Debug, Args)]
pub struct ProgramsArgs {
    /// Measure only these programs (the table names them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Measure only these systems
    #[arg(long, value_name = "SYSTEM", value_enum, value_delimiter = ',')]
    pub systems: Vec<Home>,
    /// Give each program this part of its memory: 2 is a half
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 3, 6], value_parser = clap::value_parser!(u64).range(1..=64))]
    pub parts: Vec<u64>,
    /// Runs of every system; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Stop a program that runs longer than this; it is not run again with so little memory
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub longest: u64,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// Where a program's memory is when it does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Home {
    /// Linux without a limit
    Plain,
    /// `casemate run`
    Casemate,
    /// Linux swapping to zram, unencrypted, under a memory cgroup (root)
    Zram,
    /// Linux swapping to a file, unencrypted, under a memory cgroup (root)
    SwapFile,
}

/// `casemate bench memeater`.
#[derive(Clone, Debug, Args)]
pub struct MemeaterArgs {
    /// In which order pages are read
    #[arg(long, value_enum, default_value_t = Mode::Stripe)]
    pub mode: Mode,
    /// Numbers of pages: from FROM to TO at most, STEP apart, at most 64 of them
    #[arg(long, value_name = "FROM:TO:STEP", default_value = "8192:40960:8192")]
    pub pages: Points,
    /// The Clear, and the memory limit of Linux that swaps
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub clear: Size,
    /// Runs of every system with every number; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// The order in which memeater reads (Cryptkeeper, section V.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// From the oldest page to the youngest, each once: the worst case
    Stripe,
    /// As many reads as there are pages, each of one chosen at random; the run's number is the seed
    Random,
}

/// `casemate bench pager`.
#[derive(Clone, Debug, Args)]
pub struct PagerArgs {
    /// The Clear, and the memory limit of the others; the region is three times as large
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub clear: Size,
    /// Runs of every system; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Measure only these
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub only: Vec<Part>,
    /// What pages are filled with
    #[arg(long, value_enum, default_value_t = Content::Half)]
    pub content: Content,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// The parts of the pager benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// `casemate run`
    Casemate,
    /// A bare userfaultfd handler that copies a ready page, on the same CPU
    Floor,
    /// Linux without a limit
    Plain,
    /// Linux swapping to zram under a memory cgroup (root)
    Zram,
    /// Where the time of a page goes: the keeper's own account
    Profile,
    /// A program that fits the Clear, against a plain run
    Fits,
    /// Page encryption through the engine, against the library alone
    Crypto,
}

/// Page contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Content {
    /// Half of every 64 bytes is random, half zero: zram compresses to 60 % (the faster case for
    /// it)
    Half,
    /// All random: zram tries to compress in vain and keeps pages as they are
    Random,
}
