//! Flags of `casemate attack`.

use clap::{Args, ValueEnum};

use crate::output::Json;
use crate::pid;

/// `casemate attack`.
#[derive(Debug, Args)]
pub struct AttackArgs {
    /// Process id of the keeper of a run that was started with --attackable
    #[arg(long, value_name = "KEEPER", requires = "kind", conflicts_with = "scheme", value_parser = pid::parse)]
    pub pid: Option<u32>,
    /// What to do to the untrusted memory of that run
    #[arg(long, value_enum, requires = "pid", conflicts_with_all = ["scheme", "attack", "rounds"])]
    pub kind: Option<AttackKind>,
    /// Bits to flip, each of a random page; only with --kind flip [default: 1]
    #[arg(long, value_name = "N", requires = "pid", conflicts_with_all = ["scheme", "attack", "rounds"], value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub flips: Option<u64>,
    /// Scheme of the engine to attack: a name, ENCRYPTION/INTEGRITY, or all (as without --pid)
    #[arg(long, value_name = "NAME|all")]
    pub scheme: Option<String>,
    /// Attack on the scheme: a name, or all
    #[arg(long, value_name = "NAME|all", default_value = "all", conflicts_with = "pid")]
    pub attack: String,
    /// Operations of random traffic for each scheme and attack, at least; more until there were 8
    /// strikes, or 32 tries
    #[arg(long, value_name = "N", default_value_t = 10_000, conflicts_with = "pid", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rounds: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// The attacks on a live run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttackKind {
    /// Flip bits of ciphertext pages, one unless --flips says more
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
