//! `casemate sim`: traces, or a running program, on simulated machines with and without protection.

pub mod args;
mod execute;
mod list;
pub mod machine;
mod mix;
mod table;

use anyhow::Result;

use args::SimArgs;

/// Simulates.
pub fn sim(args: &SimArgs) -> Result<u8> {
    if args.list {
        return list::list(args);
    }
    let configurations = machine::all(args)?;
    execute::execute(args, &configurations)
}
