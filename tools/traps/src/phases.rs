//! A working set that grows and shrinks: part of the memory, all of it, the same part.

use crate::support::{Options, Region, Rng, Verdict};
use std::time::{Duration, Instant};

/// Of the memory that is not in use in the other phases.
const PART: usize = 8;

/// Fills `--mib`, then checks pages at random: for `--seconds` an eighth of them, three times as
/// long all, and six times as long the eighth again.
pub fn phases(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(1);
    let (part, all) = (region.pages / PART, region.pages);
    let mut rng = Rng::new(options.seed);
    for (pages, times) in [(part, 1), (all, 3), (part, 6)] {
        println!("phase {pages}");
        let until = Instant::now() + Duration::from_secs(options.seconds * times);
        while Instant::now() < until {
            (0..64).try_for_each(|_| region.check_page(rng.below(pages), 1))?;
        }
    }
    Ok(())
}
