//! Private mappings of files that the program writes to, as the linker maps `.data`.

use crate::support::sys::{self, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Trouble, Verdict, in_child};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The most pages of a mapping that a pager takes for data.
const MOST_PAGES: usize = 1024;

/// A file with generation 1 of the pattern, removed when this is dropped.
pub struct DataFile {
    path: PathBuf,
    file: File,
    pages: usize,
    seed: u64,
}

impl DataFile {
    pub fn new(options: &Options, pages: usize) -> Result<Self, Trouble> {
        let directory = options.file.clone().unwrap_or_else(std::env::temp_dir);
        let path = directory.join(format!("casemate-data-{}", std::process::id()));
        let broken = |e: std::io::Error| Trouble(format!("{}: {e}", path.display()));
        let out = OpenOptions::new().write(true).create_new(true).open(&path).map_err(broken)?;
        let one = Region::map(1, options.seed)?;
        for page in 0..pages {
            Region { first: page as u64, ..one }.fill_page(0, 1);
            // SAFETY: one mapped page, which only `fill_page` above writes.
            let bytes = unsafe { std::slice::from_raw_parts(one.base, PAGE) };
            out.write_all_at(bytes, (page * PAGE) as u64).map_err(broken)?;
        }
        let file = File::open(&path).map_err(broken)?;
        // As a library does, it has something to execute as well.
        let (rights, fd) = (libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd());
        // SAFETY: a new mapping, which stays.
        let text =
            unsafe { libc::mmap(std::ptr::null_mut(), PAGE, rights, libc::MAP_PRIVATE, fd, 0) };
        if text == libc::MAP_FAILED {
            return Err(Trouble(format!("mmap of {}: {}", path.display(), sys::errno_text())));
        }
        Ok(DataFile { path, file, pages, seed: options.seed })
    }

    /// A new private mapping of it.
    pub fn map(&self) -> Result<Region, Trouble> {
        self.map_at(std::ptr::null_mut())
    }

    /// The same in the place of memory of the caller's, if it is not null.
    pub fn map_at(&self, place: *mut u8) -> Result<Region, Trouble> {
        let (bytes, fd) = (self.pages * PAGE, self.file.as_raw_fd());
        let flags = if place.is_null() { 0 } else { libc::MAP_FIXED } | libc::MAP_PRIVATE;
        // SAFETY: a new mapping; what it replaces is the caller's to decide.
        let at = unsafe { libc::mmap(place.cast(), bytes, RW, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(Trouble(format!("mmap of a file: {}", sys::errno_text())));
        }
        Ok(Region::at(at.cast(), self.pages, self.seed))
    }
}

impl Drop for DataFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Every other page is written, and the others are what the file has.
fn write_half(region: &Region, generation: u64) {
    (0..region.pages).step_by(2).for_each(|page| region.fill_page(page, generation));
}

fn check_halves(region: &Region, generation: u64) -> Verdict {
    (0..region.pages)
        .try_for_each(|page| region.check_page(page, if page % 2 == 0 { generation } else { 1 }))
}

fn drop_pages(region: &Region) -> Verdict {
    // SAFETY: the trap's own memory.
    let dropped = unsafe { libc::madvise(region.base.cast(), region.bytes(), libc::MADV_DONTNEED) };
    check("madvise", dropped).map(drop)
}

/// Mapped, written, dropped, forked, moved and unmapped while the pager works.
pub fn static_data(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let file = DataFile::new(options, MOST_PAGES.min(options.pages() / 6))?;
    live(file.map()?, &mut ballast)
}

/// The same, mapped and written before there is memory to be protected.
pub fn older_static_data(options: &Options) -> Verdict {
    let file = DataFile::new(options, MOST_PAGES.min(options.pages() / 6))?;
    let region = file.map()?;
    write_half(&region, 2);
    live(region, &mut Ballast::new(options)?)
}

fn live(region: Region, ballast: &mut Ballast) -> Verdict {
    write_half(&region, 2);
    ballast.squeeze()?;
    check_halves(&region, 2)?;
    ballast.squeeze()?;
    write_half(&region, 3);
    ballast.squeeze()?;
    check_halves(&region, 3)?;
    // What is dropped is again what the file has, and what is zeros stays zeros.
    let quarter = region.pages / 4;
    let first = region.part(0, quarter);
    drop_pages(&first)?;
    first.check(1)?;
    let zeroed = region.part(quarter, 8);
    // SAFETY: pages of the region.
    unsafe { zeroed.base.write_bytes(0, zeroed.bytes()) };
    drop_pages(&first)?;
    ballast.squeeze()?;
    ballast.squeeze()?;
    zeroed.check_zero()?;
    first.check(1)?;
    write_half(&region, 4);
    rights_come_and_go(&region, ballast)?;
    in_child(|| {
        check_halves(&region, 4)?;
        write_half(&region, 5);
        ballast.squeeze()?;
        check_halves(&region, 5)?;
        drop_pages(&first)?;
        first.check(1)
    })?
    .wait()?;
    check_halves(&region, 4)?;
    let region = grown_and_shrunk(&region)?;
    check_halves(&region, 4)?;
    let moved = moved(&region)?;
    ballast.squeeze()?;
    check_halves(&moved, 4)?;
    drop_pages(&moved.part(0, quarter))?;
    moved.part(0, quarter).check(1)?;
    let last = moved.part(moved.pages - quarter, quarter);
    last.unmap()?;
    let flags = sys::ANON | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping where the last quarter was.
    let anonymous = unsafe { libc::mmap(last.base.cast(), last.bytes(), RW, flags, -1, 0) };
    sys::same("memory in its place", last.base.cast(), anonymous)?;
    last.check_zero()?;
    last.fill(6);
    ballast.squeeze()?;
    last.check(6)?;
    drop_pages(&last)?;
    last.check_zero()
}

fn rights_come_and_go(region: &Region, ballast: &mut Ballast) -> Verdict {
    let set = |rights| {
        // SAFETY: the trap's own memory.
        let set = unsafe { libc::mprotect(region.base.cast(), region.bytes(), rights) };
        check("mprotect", set).map(drop)
    };
    // The eight pages of zeros are written as others by now.
    set(libc::PROT_READ)?;
    ballast.squeeze()?;
    (0..region.pages).step_by(2).try_for_each(|page| region.check_page(page, 4))?;
    set(RW)?;
    (1..region.pages).step_by(2).for_each(|page| region.fill_page(page, 1));
    ballast.squeeze()
}

/// Of several mappings in its place the kernel would make none larger.
fn grown_and_shrunk(region: &Region) -> Result<Region, Trouble> {
    let (bytes, move_it) = (region.bytes(), libc::MREMAP_MAYMOVE);
    // SAFETY: this program's own memory.
    let grown = unsafe { libc::mremap(region.base.cast(), bytes, 2 * bytes, move_it) };
    if grown == libc::MAP_FAILED {
        return Err(Trouble(format!("mremap to twice as much: {}", sys::errno_text())));
    }
    // SAFETY: as above.
    let shrunk = unsafe { libc::mremap(grown, 2 * bytes, bytes, move_it) };
    sys::same("mremap to as much as before", grown, shrunk)?;
    Ok(region.moved_to(grown.cast()))
}

fn moved(region: &Region) -> Result<Region, Trouble> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let target = sys::map_pages(region.pages)?;
    let (bytes, from) = (region.bytes(), region.base.cast());
    // SAFETY: both ranges are this program's own.
    let got = unsafe { libc::mremap(from, bytes, bytes, flags, target) };
    sys::same("mremap", target.cast(), got)?;
    Ok(region.moved_to(target))
}

/// Threads add to words of such mappings, of which ever new ones come and go: whatever takes their
/// place, no addition is lost, and each is seen at once.
pub fn static_data_busy(options: &Options) -> Verdict {
    const THREADS: usize = 3;
    const PAGES: usize = 48;
    const LONG_ENOUGH: Duration = Duration::from_secs(2);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let file = DataFile::new(options, PAGES)?;
    let since = Instant::now();
    let mut round = 0;
    while since.elapsed() < LONG_ENOUGH {
        let region = file.map()?;
        round += 1;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let add = |thread| adds(&region, thread, options.seed + round, &is_over);
            let workers: Vec<_> = (0..THREADS).map(|t| scope.spawn(move || add(t))).collect();
            std::thread::sleep(Duration::from_millis(3 + round % 20));
            is_over.store(true, Relaxed);
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        if round % 8 == 0 {
            ballast.squeeze()?;
        }
        region.unmap()?;
    }
    Ok(())
}

/// Adds to its own word of pages at random, and counts beside it.
fn adds(region: &Region, thread: usize, seed: u64, is_over: &AtomicBool) -> Verdict {
    let mut random = Rng::new(seed * 8 + thread as u64);
    // SAFETY: a word of a page of the region, which is mapped; each thread has its own.
    let word =
        |page| unsafe { AtomicU64::from_ptr(region.page(page).cast::<u64>().add(9 * thread)) };
    let mut expected: Vec<Option<u64>> = vec![None; region.pages];
    while !is_over.load(Relaxed) {
        let page = random.below(region.pages);
        let word = word(page);
        let before = word.fetch_add(1, Relaxed);
        let known = *expected[page].get_or_insert(before);
        sys::same("the word before", known, before)?;
        expected[page] = Some(before + 1);
        sys::same("the word after", before + 1, word.load(Relaxed))?;
    }
    for (page, expected) in expected.iter().enumerate() {
        expected.map_or(Ok(()), |expected| {
            sys::same("the word in the end", expected, word(page).load(Relaxed))
        })?;
    }
    Ok(())
}

/// The file becomes shorter than its mapping: a page that is dropped, and has nothing in the file,
/// is none.
pub fn static_data_cut_short(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let file = DataFile::new(options, 16)?;
    let region = file.map()?;
    region.fill(2);
    ballast.squeeze()?;
    region.check(2)?;
    let writer = OpenOptions::new().write(true).open(&file.path).map_err(|e| e.to_string())?;
    writer.set_len(8 * PAGE as u64).map_err(|e| e.to_string())?;
    region.part(0, 8).check(2)?;
    drop_pages(&region)?;
    region.part(0, 8).check(1)?;
    let child = in_child(|| region.part(8, 8).check(2))?;
    let status = child.status()?;
    sys::same("its end", (true, libc::SIGBUS), (libc::WIFSIGNALED(status), libc::WTERMSIG(status)))
}

/// Advice that the kernel refuses for a mapping of a file, wherever its place was taken.
pub fn static_data_advised(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let file = DataFile::new(options, 16)?;
    let region = file.map()?;
    region.fill(2);
    ballast.squeeze()?;
    std::thread::sleep(Duration::from_millis(50));
    for (advice, error) in [
        (libc::MADV_FREE, libc::EINVAL),
        (libc::MADV_WIPEONFORK, libc::EINVAL),
        (libc::MADV_REMOVE, libc::EACCES),
    ] {
        // SAFETY: the trap's own memory; it is to fail.
        let got = unsafe { libc::madvise(region.base.cast(), region.bytes(), advice) };
        sys::same(&format!("madvise {advice}"), (-1, error), (got, sys::errno()))?;
        region.check(2)?;
    }
    in_child(|| region.check(2))?.wait()?;
    ballast.squeeze()?;
    region.check(2)
}

/// Devices store to such mappings while their places could be taken: each read opens the file for
/// itself, and closes it.
pub fn static_data_direct(options: &Options) -> Verdict {
    const THREADS: usize = 3;
    const CHUNK: usize = 128;
    const LONG_ENOUGH: Duration = Duration::from_millis(1500);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let file = DataFile::new(options, THREADS * CHUNK)?;
    let since = Instant::now();
    while since.elapsed() < LONG_ENOUGH {
        let region = file.map()?;
        region.fill(2);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (file, is_over) = (&file, &is_over);
            let read = move |thread| reads_directly(file, &region, thread * CHUNK, CHUNK, is_over);
            let workers: Vec<_> = (0..THREADS).map(|t| scope.spawn(move || read(t))).collect();
            std::thread::sleep(Duration::from_millis(40));
            is_over.store(true, Relaxed);
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        region.unmap()?;
    }
    ballast.squeeze()
}

/// Reads the file into pages of the mapping of it where others are, and checks each time that they
/// have come.
fn reads_directly(
    file: &DataFile,
    region: &Region,
    first: usize,
    pages: usize,
    is_over: &AtomicBool,
) -> Verdict {
    use std::os::unix::fs::OpenOptionsExt;
    let part = region.part(first, pages);
    while !is_over.load(Relaxed) {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&file.path);
        let opened = opened.map_err(|e| format!("{}: {e}", file.path.display()))?;
        let (at, offset) = (part.base.cast(), (first * PAGE) as i64);
        // SAFETY: within the region, which is mapped.
        let got = unsafe { libc::pread(opened.as_raw_fd(), at, part.bytes(), offset) };
        sys::same("pread", part.bytes() as isize, got)?;
        drop(opened);
        part.check(1)?;
        part.fill(2);
    }
    Ok(())
}
