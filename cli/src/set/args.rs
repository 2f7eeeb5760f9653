//! Flags of `casemate set`.

use clap::{ArgGroup, Args};

use crate::output::Json;
use crate::pid;
use crate::size::Clear;

/// `casemate set`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").required(true).multiple(true).args(["clear", "rotate"])))]
pub struct SetArgs {
    /// Process id of `casemate run`, or of a process that it protects
    #[arg(value_name = "PID", value_parser = pid::parse)]
    pub pid: u32,
    /// Most plaintext to keep in memory from now on, but not auto; when this command ends with 0,
    /// no more is there
    #[arg(long, value_name = "SIZE|PERCENT", allow_negative_numbers = true)]
    pub clear: Option<Clear>,
    /// Give all pages new keys, as `run --rotate` does; when this command ends with 0, those before
    /// are destroyed
    #[arg(long)]
    pub rotate: bool,
    #[command(flatten)]
    pub json: Json,
}
