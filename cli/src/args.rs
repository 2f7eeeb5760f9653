//! The flag table. Parser, help, man page and completions all come from here.

use std::ffi::OsString;
use std::path::PathBuf;

use casemate_keeper::config::DEFAULT_NODE_CACHE_BYTES;
use casemate_keeper::{Bound, ClearSize, Config, OnViolation};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::load::LoadArgs;
use crate::certified::args::{CertifyArgs, VerifyCertificateArgs};
use crate::distribution::args::{OpenImageArgs, ProcessorKeyArgs, SealImageArgs};
use crate::exit_codes;
use crate::plot::PlotArgs;
use crate::reproduce::ReproduceArgs;
use crate::sim::SimArgs;
use crate::size::{Clear, Size};
use crate::trace::TraceArgs;

/// Keeps a program's memory encrypted and tamper-evident, all but a bounded working set.
#[derive(Debug, Parser)]
#[command(name = "casemate", version, arg_required_else_help = true, after_help = exit_codes::HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program with its memory encrypted and verified
    Run(RunArgs),
    /// Say whether this machine and user can protect programs, and what to do if not
    Doctor(DoctorArgs),
    /// Let ordinary users run protected programs (needs root)
    Setup(SetupArgs),
    /// Attack a live run's untrusted memory (--pid), or the engine's schemes one by one (--scheme)
    Attack(AttackArgs),
    /// Print what each scheme costs in memory, beside what its paper says
    Storage(StorageArgs),
    /// Print which services of an operating system each kind of seeds can live with, as executed
    Seeds(SeedsArgs),
    /// Measure, beside what it is compared with
    Bench(BenchArgs),
    /// Record, convert and look at traces of programs' memory references
    Trace(TraceArgs),
    /// Run traces on simulated machines, with and without protection, and compare
    Sim(SimArgs),
    /// Draw results of `sim` as bars or lines, in SVG or PNG
    Plot(PlotArgs),
    /// Reproduce the hardware papers' figures and claims on our workloads, with a verdict on every claim
    Reproduce(ReproduceArgs),
    /// Make a processor's key pair: FILE for the processor alone, FILE.pub for everybody
    ProcessorKey(ProcessorKeyArgs),
    /// Encrypt a program so that one processor alone can run it
    SealImage(SealImageArgs),
    /// Run a sealed program on the processor that it was sealed for, or write it out
    OpenImage(OpenImageArgs),
    /// Run a small program in untrusted memory, and certify its result unless the memory was tampered with
    Certify(CertifyArgs),
    /// Say what a certificate proves
    VerifyCertificate(VerifyCertificateArgs),
    /// Print the man page
    Man,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The program that `bench` measures
    #[command(hide = true)]
    BenchLoad(LoadArgs),
}

/// Where JSON goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonTo {
    /// The command's own stream: stderr for `run`, stdout for all others.
    Stream,
    /// A file, replaced in one step.
    File(PathBuf),
}

impl From<OsString> for JsonTo {
    fn from(value: OsString) -> Self {
        if value.is_empty() { JsonTo::Stream } else { JsonTo::File(value.into()) }
    }
}

/// `casemate run`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::HELP)]
pub struct RunArgs {
    /// Most plaintext to keep in memory: a size (64M, 1.5G) or a share of the program's memory (10%), 2M or
    /// more [default: 25%, but at least 64M; on machines below 256M a quarter of the machine]
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub clear: Option<Clear>,
    /// When to begin to hold calls for more memory until that can be kept within --clear [default: strict up to 32M,
    /// else lazy]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub bound: Option<When>,
    /// Most ciphertext to keep in memory; needs --swap for what does not fit
    #[arg(long, value_name = "SIZE")]
    pub crypt_limit: Option<Size>,
    /// File to create for ciphertext that does not fit (must not exist; has no name once it is open)
    #[arg(long, value_name = "FILE")]
    pub swap: Option<PathBuf>,
    /// Trusted memory for verified tree nodes [default: 256K]
    #[arg(long, value_name = "SIZE")]
    pub node_cache: Option<Size>,
    /// What becomes of the program when its memory was tampered with
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Policy::Kill)]
    pub on_violation: Policy,
    /// Let `casemate attack` reach this run's untrusted memory (a demonstration)
    #[arg(long)]
    pub attackable: bool,
    /// Run also what cannot be protected (setuid, 32-bit), without protection
    #[arg(long)]
    pub allow_unprotected: bool,
    /// Report as JSON, on stderr or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
    /// No summary at the end and no notes
    #[arg(long, short)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// The policy on the Clear's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// From the program's first instruction
    Strict,
    /// Once the Clear is nearly full: a program that fits pays nothing, but a single call may pass the bound
    Lazy,
}

/// The policy on integrity violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Kill every process of the run
    Kill,
    /// Send SIGBUS to each thread that touches the page
    Sigbus,
}

/// The least that the trusted node cache may be.
const NODE_CACHE_FLOOR: u64 = 16 * 1024;
/// The most: trusted memory is small by design.
const NODE_CACHE_CEILING: u64 = 1 << 30;

impl RunArgs {
    /// The keeper's configuration.
    ///
    /// # Errors
    /// A sentence about flags that do not go together.
    pub fn config(&self) -> Result<Config, String> {
        let node_cache = self.node_cache.map_or(DEFAULT_NODE_CACHE_BYTES as u64, |size| size.0);
        if !(NODE_CACHE_FLOOR..=NODE_CACHE_CEILING).contains(&node_cache) {
            return Err(format!(
                "--node-cache is {node_cache} bytes; choose from 16K to 1G (256K is the default)"
            ));
        }
        if self.command.first().is_some_and(|name| name.is_empty()) {
            return Err("the command is an empty string; name a program after --".to_owned());
        }
        Ok(Config {
            clear: self.clear.map_or_else(ClearSize::default, |clear| clear.0),
            bound: self.bound.map(|when| match when {
                When::Strict => Bound::Strict,
                When::Lazy => Bound::Lazy,
            }),
            crypt_limit_bytes: self.crypt_limit.map(|size| size.0),
            swap: self.swap.clone(),
            node_cache_bytes: node_cache as usize,
            on_violation: match self.on_violation {
                Policy::Kill => OnViolation::Kill,
                Policy::Sigbus => OnViolation::Sigbus,
            },
            attackable: self.attackable,
            allow_unprotected: self.allow_unprotected,
            command: self.command.clone(),
        })
    }
}

/// `casemate doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// `casemate setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Take everything back that setup did
    #[arg(long)]
    pub undo: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// User to add to the group casemate [default: who called sudo]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Work on the system installed in DIR instead of the running one (for images)
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// `casemate attack`.
#[derive(Debug, Args)]
pub struct AttackArgs {
    /// Process id of the keeper of a run that was started with --attackable
    #[arg(long, value_name = "KEEPER", requires = "kind", conflicts_with = "scheme", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub pid: Option<u32>,
    /// What to do to the untrusted memory of that run
    #[arg(long, value_enum, requires = "pid")]
    pub kind: Option<AttackKind>,
    /// Scheme of the engine to attack: a name, ENCRYPTION/INTEGRITY, or all (as without --pid)
    #[arg(long, value_name = "NAME|all")]
    pub scheme: Option<String>,
    /// Attack on the scheme: a name, or all
    #[arg(long, value_name = "NAME|all", default_value = "all", conflicts_with = "pid")]
    pub attack: String,
    /// Operations of random traffic for each scheme and attack, with strikes at random points
    #[arg(long, value_name = "N", default_value_t = 10_000, conflicts_with = "pid", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rounds: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// `casemate storage`.
#[derive(Debug, Args)]
pub struct StorageArgs {
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// `casemate seeds`.
#[derive(Debug, Args)]
pub struct SeedsArgs {
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// The attacks on a live run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttackKind {
    /// Flip one bit of a ciphertext page
    Flip,
    /// Put an old content of a page back
    Replay,
    /// Swap two ciphertext pages
    Splice,
    /// Put everything, metadata too, back to an earlier state
    Rollback,
    /// Flip one bit of the metadata
    Metadata,
}

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
    /// The engine's schemes on real bytes: time per 64-byte block, beside the bare cryptography
    Schemes(SchemesArgs),
    /// The simulator: instructions per second by stage, and what each scheme adds to them
    Sim(SimBenchArgs),
}

/// `casemate bench sim`.
#[derive(Clone, Debug, Args)]
pub struct SimBenchArgs {
    /// Measure only these schemes (`casemate attack --scheme all` names them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Instructions of each program; a tenth of that for each scheme
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(10_000..=10_000_000_000))]
    pub instructions: u64,
    /// Runs over everything; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
}

/// `casemate bench schemes`.
#[derive(Clone, Debug, Args)]
pub struct SchemesArgs {
    /// Measure only these schemes (`casemate attack --scheme all` names them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Runs over all schemes; the table shows median, min and max
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
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
    /// Report as JSON, on stdout or in FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub json: Option<JsonTo>,
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
    /// Half of every 64 bytes is random, half zero: zram compresses to 60 % (the faster case for it)
    Half,
    /// All random: zram tries to compress in vain and keeps pages as they are
    Random,
}
