//! `casemate trace`: traces of programs' references, recorded, converted and looked at.

pub mod args;
mod caches;
mod convert;
mod head;
mod info;
pub mod input;
mod merge;
mod misses;
mod pages;
mod record;

use anyhow::Result;

use args::{TraceArgs, TraceWhat};

/// Does it.
pub fn trace(args: &TraceArgs) -> Result<u8> {
    match &args.what {
        TraceWhat::Record(args) => record::record(args),
        TraceWhat::Convert(args) => convert::convert(args),
        TraceWhat::Merge(args) => merge::merge(args),
        TraceWhat::Info(args) => info::info(args),
        TraceWhat::Head(args) => head::head(args),
        TraceWhat::Caches(args) => caches::caches(args),
        TraceWhat::Misses(args) => misses::misses(args),
        TraceWhat::Pages(args) => pages::pages(args),
    }
}
