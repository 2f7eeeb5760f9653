//! Flags of the commands for sealed programs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::exit_codes;
use crate::out::Out;
use crate::output::{Json, JsonTo};

/// `casemate processor-key`.
#[derive(Debug, Args)]
pub struct ProcessorKeyArgs {
    /// File to create for the private key, readable by you alone; the public key goes to FILE.pub
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}

/// `casemate seal-image`.
#[derive(Debug, Args)]
pub struct SealImageArgs {
    /// Public key of the processor that is to run it
    #[arg(long = "for", value_name = "PUBLIC-KEY")]
    pub processor: PathBuf,
    /// File to create for the image; - is standard output
    #[arg(long, short, value_name = "FILE")]
    pub out: Out,
    /// The report.
    #[command(flatten)]
    pub json: Json,
    /// The program: an executable or a script, at most 1 GiB
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
}

/// `casemate open-image`.
#[derive(Debug, Args)]
#[command(after_help = exit_codes::OPEN_IMAGE_HELP)]
pub struct OpenImageArgs {
    /// Private key of this processor
    #[arg(long, value_name = "PRIVATE-KEY")]
    pub key: PathBuf,
    /// File to create for the program, instead of running it; - is standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "arguments")]
    pub out: Option<Out>,
    /// Report as JSON, on stdout or in FILE; only with --out, since standard output is the
    /// program's
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "out")]
    pub json: Option<JsonTo>,
    /// The sealed image
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// Arguments of the program
    #[arg(value_name = "ARGS", last = true)]
    pub arguments: Vec<OsString>,
}
