//! Calls that a 64-bit program makes as 32-bit ones do: no filter announces them.

use crate::awaited::present;
use crate::support::sys::{self, map_as_32_bit};
use crate::support::{Ballast, Options, PAGE, Region, Verdict};
use std::time::Duration;

/// In all too little to be noticed by growth alone.
const PIECE_PAGES: usize = 8;
const PIECES: u64 = 3;

/// Maps memory unheard, a little at a time, uses it, and has it paged.
pub fn maps_unheard(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let mut pieces = Vec::new();
    for round in 0..PIECES {
        let Some(at) = map_as_32_bit(PIECE_PAGES * PAGE)? else {
            eprintln!("skipped: no 32-bit calls in this kernel");
            return Ok(());
        };
        let region = Region::at(at, PIECE_PAGES, options.seed + round);
        region.fill(round);
        pieces.push(region);
    }
    // Asleep it is looked at once a second at least.
    std::thread::sleep(Duration::from_millis(2500));
    for _ in 0..2 {
        ballast.squeeze()?;
        if ballast.is_out()? {
            let here = |piece: &Region| present(piece.base, piece.pages);
            let here: usize = pieces.iter().map(here).sum::<Result<_, _>>()?;
            // They came before all of the ballast.
            sys::same("pages that no pager took", 0, here)?;
        }
        (0..).zip(&pieces).try_for_each(|(round, piece)| piece.check(round))?;
    }
    Ok(())
}
