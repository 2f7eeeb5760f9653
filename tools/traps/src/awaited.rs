//! A pager places a program under itself only when memory runs short, and a trap that has done its
//! work before that has tried nothing. So a trap that is told to waits until its memory is being
//! paged.

use crate::support::{PAGE, Trouble, Verdict, sys};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Says how many MiB of ballast make the pager begin; 0 or nothing if there is none.
const VARIABLE: &str = "CASEMATE_TRAPS_AWAIT_MIB";
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a good part of a ballast has been paged out, and gives it back unread.
pub fn pager() -> Verdict {
    let told = std::env::var(VARIABLE).ok().and_then(|mib| mib.parse::<usize>().ok());
    let Some(mib) = told.filter(|&mib| mib > 0) else { return Ok(()) };
    let pages = (mib << 20) / PAGE;
    let ballast = sys::map_pages(pages)?;
    for page in 0..pages {
        // SAFETY: within the mapping just made.
        unsafe { ballast.add(page * PAGE).write_volatile(page as u8 | 1) };
    }
    let since = Instant::now();
    while present(ballast, pages)? > pages - pages / 8 {
        if since.elapsed() > PATIENCE {
            return Err(Trouble(format!("nothing of {mib} MiB was paged out within a minute")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    sys::unmap(ballast, pages * PAGE)
}

/// How many of these pages are in RAM.
pub fn present(at: *mut u8, pages: usize) -> Result<usize, Trouble> {
    const PRESENT: u64 = 1 << 63;
    let told = |error| Trouble(format!("/proc/self/pagemap: {error}"));
    let mut entries = vec![0_u8; pages * 8];
    let pagemap = File::open("/proc/self/pagemap").map_err(told)?;
    pagemap.read_exact_at(&mut entries, (at as usize / PAGE * 8) as u64).map_err(told)?;
    let entries =
        entries.chunks_exact(8).map(|e| u64::from_ne_bytes(e.try_into().unwrap_or([0; 8])));
    Ok(entries.filter(|entry| entry & PRESENT != 0).count())
}
