//! The kernel merges equal pages (KSM) under a program that then writes to them.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

const KSM: &str = "/sys/kernel/mm/ksm";
const PR_SET_MEMORY_MERGE: i32 = 67;
/// Half of what the tests' Clear holds: a page that is merged has to be in it.
const PAGES: usize = 1024;
/// So many different contents.
const KINDS: usize = 4;
/// Rounds of the scanner after which nothing more is merged: it merges a page in the second round
/// that finds it unchanged.
const SCANS: u64 = 8;
/// The scanner may have much of other programs' memory to look at.
const PATIENCE: Duration = Duration::from_secs(3);

/// A range is merged by `MADV_MERGEABLE`, as QEMU does with its guest's memory.
pub fn ksm_advice(options: &Options) -> Verdict {
    merged(options, |region| sys::advise(region.base, region.bytes(), libc::MADV_MERGEABLE))
}

/// The whole process is merged by `PR_SET_MEMORY_MERGE` (Linux 6.4).
pub fn ksm_process(options: &Options) -> Verdict {
    merged(options, |_| {
        // SAFETY: changes an attribute of this process only.
        check("PR_SET_MEMORY_MERGE", unsafe { libc::prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) })
            .map(drop)
    })
}

/// Pages that were read in and not written, and are merged then, keep what is written to them.
fn merged(options: &Options, ask: impl Fn(&Region) -> Verdict) -> Verdict {
    let Some(_scanner) = Scanner::start()? else {
        eprintln!("skipped: no KSM in this kernel, or not root");
        return Ok(());
    };
    // Only read from: a pager that expects pages not to be written takes them for clean.
    let pusher = Region::map(options.pages() / 2, options.seed ^ 1)?;
    pusher.fill(0);
    let push = || (0..4).try_for_each(|_| pusher.check(0));
    let region = Region::map(PAGES, options.seed)?;
    let kinds: Vec<Region> = (0..PAGES).map(|page| kind(&region, page)).collect();
    ask(&region)?;
    let mut most = 0;
    for round in 0..5 {
        kinds.iter().for_each(|page| page.fill_page(0, round));
        push()?;
        for _ in 0..3 {
            kinds.iter().try_for_each(|page| page.check_page(0, round))?;
        }
        most = most.max(wait_for_merges()?);
        for page in (0..PAGES).filter(|page| page % 3 != 0) {
            write_into(&region, page, round);
        }
        push()?;
        for (page, kind) in kinds.iter().enumerate() {
            check_written(&region, kind, page, round)?;
        }
    }
    eprintln!("note: {most} pages were merged");
    Ok(())
}

/// A page of the region whose contents are one of a few.
fn kind(region: &Region, page: usize) -> Region {
    Region { first: (page % KINDS) as u64, ..region.part(page, 1) }
}

/// The word that is written to a page after it has been merged.
fn place(region: &Region, page: usize) -> *mut u64 {
    region.page(page).wrapping_add(PAGE / 2).cast()
}

fn mark(page: usize, round: u64) -> u64 {
    0xfeed_0000_0000_0000 | round << 32 | page as u64
}

fn write_into(region: &Region, page: usize, round: u64) {
    // SAFETY: within the region.
    unsafe { place(region, page).write_volatile(mark(page, round)) };
}

fn check_written(region: &Region, kind: &Region, page: usize, round: u64) -> Verdict {
    if page.is_multiple_of(3) {
        return kind.check_page(0, round);
    }
    // SAFETY: within the region.
    let got = unsafe { place(region, page).read_volatile() };
    if got != mark(page, round) {
        return Err(Trouble(format!(
            "page {page}, round {round}: what was written to a merged page is lost: expected {:#x}, \
             got {got:#x}",
            mark(page, round)
        )));
    }
    let old = crate::support::word(kind.seed, kind.first, round, PAGE / 16);
    // SAFETY: as above.
    unsafe { place(region, page).write_volatile(old) };
    kind.check_page(0, round)
}

/// Until half of the pages are merged, or the scanner has been round often enough. A pager may keep
/// the kernel from looking at this process at all; then there is nothing to wait for.
fn wait_for_merges() -> Result<usize, Trouble> {
    let (since, first) = (Instant::now(), number("/sys/kernel/mm/ksm/full_scans")?);
    loop {
        let count = number("/proc/self/ksm_merging_pages")? as usize;
        let scans = number("/sys/kernel/mm/ksm/full_scans")? - first;
        let is_over = count > PAGES / 2 || scans >= SCANS || !is_scanned()?;
        if is_over || since.elapsed() > PATIENCE {
            return Ok(count);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the scanner looks at any of this process's memory; if the kernel does not say so (before
/// Linux 6.16), it may.
fn is_scanned() -> Result<bool, Trouble> {
    let file = "/proc/self/ksm_stat";
    let text = fs::read_to_string(file).map_err(|e| Trouble(format!("{file}: {e}")))?;
    let says = |what: &str| text.lines().any(|line| line == what);
    Ok(!(says("ksm_merge_any: no") && says("ksm_mergeable: no")))
}

/// The number that a file of the kernel's holds.
fn number(file: &str) -> Result<u64, Trouble> {
    let text = fs::read_to_string(file).map_err(|e| Trouble(format!("{file}: {e}")))?;
    text.trim().parse().map_err(|e| Trouble(format!("{file}: {text}: {e}")))
}

/// The kernel's scanner at its fastest. Its settings come back in the end; one trap at a time has
/// it.
struct Scanner {
    before: Vec<(&'static str, String)>,
    _turn: File,
}

impl Scanner {
    fn start() -> Result<Option<Self>, Trouble> {
        let run = Path::new(KSM).join("run");
        // SAFETY: asks only.
        if unsafe { libc::geteuid() } != 0 || !run.exists() {
            return Ok(None);
        }
        let turn = File::open(&run).map_err(|e| e.to_string())?;
        // SAFETY: the descriptor is open.
        check("flock", unsafe { libc::flock(turn.as_raw_fd(), libc::LOCK_EX) })?;
        let mut scanner = Scanner { before: Vec::new(), _turn: turn };
        for (name, value) in [
            ("sleep_millisecs", "0"),
            ("pages_to_scan", "20000"),
            ("smart_scan", "0"),
            ("run", "1"),
        ] {
            let file = Path::new(KSM).join(name);
            // An older kernel has not all of them.
            let Ok(old) = fs::read_to_string(&file) else { continue };
            fs::write(&file, value).map_err(|e| Trouble(format!("{}: {e}", file.display())))?;
            scanner.before.insert(0, (name, old));
        }
        Ok(Some(scanner))
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        for (name, old) in &self.before {
            if let Err(error) = fs::write(Path::new(KSM).join(name), old) {
                eprintln!("note: {KSM}/{name} could not be restored: {error}");
            }
        }
    }
}
