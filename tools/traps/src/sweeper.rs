//! Reads its memory in order, again and again: the pager reads ahead.

use crate::support::{Options, Region, Trouble, Verdict};

/// Pages from one access to the next where they are at equal distances.
const STRIDE_PAGES: usize = 8;

/// Fills `--mib` once, then makes `--accesses` accesses to pages: upwards (`--mode plain`), from
/// the last to the first (`down`), or every eighth page, and then those between (`columns`).
pub fn sweeper(options: &Options) -> Verdict {
    let pages = options.pages();
    let region = Region::map(pages, options.seed)?;
    region.fill(1);
    let rows = pages / STRIDE_PAGES;
    let page_of = |access: usize| match options.mode.as_str() {
        "plain" => Ok(access),
        "down" => Ok(pages - 1 - access),
        "columns" if access < rows * STRIDE_PAGES => {
            Ok(access % rows * STRIDE_PAGES + access / rows)
        }
        "columns" => Ok(access),
        other => Err(Trouble(format!("--mode {other}: unknown"))),
    };
    (0..options.accesses as usize)
        .try_for_each(|access| region.check_page(page_of(access % pages)?, 1))
}
