//! Flags of `casemate exposure`.

use clap::Args;

use crate::out::Out;
use crate::output::Json;
use crate::size::Size;

/// `casemate exposure`.
#[derive(Debug, Args)]
pub struct ExposureArgs {
    /// How much memory a key is spread over, from 4K to 1G
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "4K,64K,1M,16M")]
    pub memory: Vec<Size>,
    /// The attacker tries 2^BITS candidates
    #[arg(long, value_name = "BITS", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(0..=256))]
    pub search_bits: u32,
    /// Where the curves go, for `casemate plot`: FILE.csv, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<Out>,
    /// Also let this many small memories decay and search them, beside what is computed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub trials: Option<u32>,
    /// What --trials draws
    #[arg(long, value_name = "N", default_value_t = 1, requires = "trials")]
    pub seed: u64,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
