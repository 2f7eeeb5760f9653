//! Cryptkeeper's memeater (section V.A): allocate, write, read, free; how long each takes per page.

use crate::support::{Options, Region, Rng, Verdict};
use std::time::Instant;

/// Prints microseconds per page for every step.
pub fn memeater(options: &Options) -> Verdict {
    let pages = options.pages();
    let start = Instant::now();
    let region = Region::map(pages, options.seed)?;
    report("allocate", start, pages);
    let start = Instant::now();
    region.fill(1);
    report("write", start, pages);
    let start = Instant::now();
    region.check(1)?;
    report("read sequential", start, pages);
    let start = Instant::now();
    let stripe = 17;
    for first in 0..stripe {
        (first..pages).step_by(stripe).try_for_each(|page| region.check_page(page, 1))?;
    }
    report("read stripe", start, pages);
    let mut rng = Rng::new(options.seed);
    let start = Instant::now();
    for _ in 0..pages {
        region.check_page(rng.below(pages), 1)?;
    }
    report("read random", start, pages);
    let start = Instant::now();
    region.unmap()?;
    report("free", start, pages);
    Ok(())
}

fn report(step: &str, start: Instant, pages: usize) {
    let each = start.elapsed().as_secs_f64() * 1e6 / pages as f64;
    println!("{step:<16} {each:9.3} µs/page");
}
