//! `casemate sim`: traces, or a running program, on simulated machines with and without protection.

pub mod args;
pub mod execute;
mod list;
mod live;
pub mod plan;
mod table;
pub mod traces;

use anyhow::Result;

use args::SimArgs;

/// Simulates.
pub fn sim(args: &SimArgs) -> Result<u8> {
    if args.list {
        return list::list(args);
    }
    let configurations = plan::configurations(args)?;
    execute::execute(args, &configurations)
}
