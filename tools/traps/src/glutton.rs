//! Grows as fast as it can, in two bursts with a pause between them: the first, as a rule, before
//! the pager has begun, the second when it has.

use crate::support::{Options, Region, Trouble, Verdict, sys};
use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(100);

/// Half of `--mib` in each burst, shared by `--threads`. In the end it says on standard error how
/// much anonymous memory it has had in RAM at most, as the kernel knows it.
pub fn glutton(options: &Options) -> Verdict {
    let share = (options.pages() / 2 / options.threads).max(1);
    let mut regions = Vec::new();
    for burst in 0..2_u64 {
        let eaten: Vec<Result<Region, Trouble>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..options.threads as u64)
                .map(|number| scope.spawn(move || eat(share, options, burst << 32 | number)))
                .collect();
            let died = |_| Err(Trouble("a thread died".to_owned()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect()
        });
        for region in eaten {
            regions.push(region?);
        }
        thread::sleep(PAUSE);
    }
    eprintln!("most_anonymous_kib={}", most_anonymous_kib()?);
    regions.iter().try_for_each(|region| region.check(1))
}

/// Touches every page once before it fills any: nothing is faster.
fn eat(pages: usize, options: &Options, number: u64) -> Result<Region, Trouble> {
    let region = Region::map(pages, options.seed ^ number << 8)?;
    if options.huge {
        // Not every kernel has them.
        sys::advice_known(region.base, region.bytes(), libc::MADV_HUGEPAGE)?;
    }
    for page in 0..pages {
        // SAFETY: within the mapping just made.
        unsafe { region.page(page).write_volatile(1) };
    }
    region.fill(1);
    Ok(region)
}

fn most_anonymous_kib() -> Result<u64, Trouble> {
    let told = |error| Trouble(format!("/proc/self/status: {error}"));
    let status = std::fs::read_to_string("/proc/self/status").map_err(told)?;
    let field = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.ok_or_else(|| Trouble(format!("no {key} in /proc/self/status")))
    };
    Ok(field("VmHWM")?.saturating_sub(field("RssFile")? + field("RssShmem")?))
}
