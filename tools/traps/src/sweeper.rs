//! Reads its memory from one end to the other, again and again: the pager reads ahead.

use crate::support::{Options, Region, Verdict};

/// Fills `--mib` once, then makes `--accesses` accesses to pages, in order.
pub fn sweeper(options: &Options) -> Verdict {
    let pages = options.pages();
    let region = Region::map(pages, options.seed)?;
    region.fill(1);
    (0..options.accesses as usize).try_for_each(|access| region.check_page(access % pages, 1))
}
