//! Flags of the commands for certified execution.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::exit_codes;
use crate::out::Out;
use crate::output::Json;
use crate::size::Size;

/// `casemate certify`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::CERTIFY_HELP)]
pub struct CertifyArgs {
    /// Private key of this processor
    #[arg(long, value_name = "PRIVATE-KEY")]
    pub key: PathBuf,
    /// The program's input: numbers from 0 to 2^64 - 1 between blanks
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// File to create for the certificate; - is standard output, the result then on standard error
    #[arg(long, short, value_name = "FILE")]
    pub out: Out,
    /// The report.
    #[command(flatten)]
    pub json: Json,
    /// Untrusted memory of the machine, 4K to 64M, in whole pages of 4K
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub memory: Size,
    /// Instructions after which the program is given up
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    pub steps: u64,
    /// Flip a bit of untrusted memory after N blocks were read (a demonstration)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub tamper: Option<u64>,
    /// The program in assembly (see examples/certified)
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
}

/// `casemate verify-certificate`.
#[derive(Debug, Args)]
pub struct VerifyCertificateArgs {
    /// Public key of the processor that is said to have issued it
    #[arg(long, value_name = "KEY")]
    pub key: PathBuf,
    /// The program that should have run: assembly, or for a run the file
    #[arg(long, value_name = "FILE")]
    pub program: PathBuf,
    /// The input that it should have had
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// What the program should have written to its standard output; only for a run
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The certificate
    #[arg(value_name = "CERTIFICATE")]
    pub certificate: PathBuf,
    /// The arguments that the program should have had; only for a run
    #[arg(value_name = "ARG", last = true)]
    pub arguments: Vec<OsString>,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
