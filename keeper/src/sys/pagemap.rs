//! `PAGEMAP_SCAN`: which pages of another process are present, and what they are.

use super::procfs;
use super::shortage::told;
use casemate_core::PAGE_BYTES;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGEMAP_SCAN: u64 = (3 << 30) | ((size_of::<ScanArg>() as u64) << 16) | (0x66 << 8) | 16;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_PFNZERO: u64 = 1 << 5;
const IS_HUGE: u64 = 1 << 6;
const IS_GUARD: u64 = 1 << 8;

#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// The page categories that a scan selects.
struct Wanted {
    /// Categories of `all` and `any` that must be absent instead of present.
    inverted: u64,
    /// Each of these.
    all: u64,
    /// Any of these; 0: whatever they are.
    any: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// What is mapped at a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// A page of the process's own, in RAM.
    Anonymous,
    /// A page of a file or of shared memory, the page of zeros, part of a huge page, or one that is
    /// in the kernel's own swap or being migrated.
    Other,
}

/// A page of RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Which; the kernel tells root only.
    pub number: Option<u64>,
    /// Mapped at this place and nowhere else.
    pub is_exclusive: bool,
}

impl Frame {
    /// Reads an entry of `/proc/PID/pagemap`; none if the page is not in RAM.
    fn of(entry: u64) -> Option<Self> {
        const PRESENT: u64 = 1 << 63;
        const EXCLUSIVE: u64 = 1 << 56;
        const NUMBER: u64 = (1 << 55) - 1;
        let number = Some(entry & NUMBER).filter(|number| *number != 0);
        (entry & PRESENT != 0).then_some(Frame { number, is_exclusive: entry & EXCLUSIVE != 0 })
    }
}

/// Tells where this process's memory lies in the machine's; none if it may not know. Who asks is
/// judged now, not when it is used.
pub fn physical_addresses() -> Option<Box<dyn Fn(u64) -> Option<u64> + Send + Sync>> {
    let own = Pagemap::own().ok()?;
    Some(Box::new(move |address| {
        let frame = own.entry(address).ok().and_then(Frame::of)?;
        frame.number.map(|number| number * PAGE_BYTES as u64)
    }))
}

/// The pagemap of one process.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// Opens it; needs the right to trace `pid`.
    pub fn open(pid: i32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/pagemap");
        told(&path, procfs::open(Path::new(&path))).map(Pagemap)
    }

    /// Opens this process's own.
    pub fn own() -> io::Result<Self> {
        File::open("/proc/self/pagemap").map(Pagemap)
    }

    /// Whether the page at `address` is write-protected by a userfaultfd.
    pub fn is_write_protected(&self, address: u64) -> io::Result<bool> {
        const UFFD_WP: u64 = 1 << 57;
        Ok(self.entry(address)? & UFFD_WP != 0)
    }

    /// Whether there is a page at `address`: in memory, in the kernel's own swap, or being
    /// migrated.
    pub fn holds_page(&self, address: u64) -> io::Result<bool> {
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        Ok(self.entry(address)? & (PRESENT | SWAPPED) != 0)
    }

    /// How many anonymous pages of `range` are present.
    pub fn anonymous_pages(&self, range: Range<u64>) -> io::Result<u64> {
        let mut pages = 0;
        self.for_each_present(range, &mut |run| {
            pages += (run.end - run.start) / PAGE_BYTES as u64
        })?;
        Ok(pages)
    }

    /// How many anonymous pages of `range` are mapped here and nowhere else.
    pub fn exclusive_pages(&self, range: Range<u64>) -> io::Result<u64> {
        let (mut runs, mut pages) = (Vec::new(), 0);
        self.for_each_present(range, &mut |run| runs.push(run))?;
        for run in runs {
            self.for_each_exclusive(run, &mut |_| pages += 1)?;
        }
        Ok(pages)
    }

    /// Calls `visit` with the address of each anonymous page of `range` that is mapped here and
    /// nowhere else.
    pub fn for_each_exclusive(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        const EXCLUSIVE: u64 = 1 << 56;
        const FILE: u64 = 1 << 61;
        const AT_ONCE: usize = 512;
        let mut entries = [0; AT_ONCE * 8];
        for start in range.clone().step_by(AT_ONCE * PAGE_BYTES) {
            let pages = ((range.end - start) / PAGE_BYTES as u64).min(AT_ONCE as u64) as usize;
            let entries = &mut entries[..pages * 8];
            self.0.read_exact_at(entries, start / PAGE_BYTES as u64 * 8)?;
            for (address, entry) in (start..).step_by(PAGE_BYTES).zip(entries.chunks_exact(8)) {
                let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
                if entry & (EXCLUSIVE | FILE) == EXCLUSIVE {
                    visit(address);
                }
            }
        }
        Ok(())
    }

    fn entry(&self, address: u64) -> io::Result<u64> {
        let mut entry = [0u8; 8];
        self.0.read_exact_at(&mut entry, address / PAGE_BYTES as u64 * 8)?;
        Ok(u64::from_ne_bytes(entry))
    }

    /// Calls `visit` with each run of anonymous pages (addresses in bytes) present in `range`.
    pub fn for_each_present(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        let mask = IS_PRESENT | IS_FILE | IS_PFNZERO;
        self.scan(
            range,
            Wanted { inverted: IS_FILE | IS_PFNZERO, all: mask, any: 0 },
            &mut |run, _| visit(run),
        )
    }

    /// Calls `visit` with each run of pages that are the kernel's page of zeros: a write replaces
    /// such a page without an event.
    pub fn for_each_zero(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        self.scan(
            range,
            Wanted { inverted: 0, all: IS_PRESENT | IS_PFNZERO, any: 0 },
            &mut |run, _| visit(run),
        )
    }

    /// Calls `visit` with each run of pages under `MADV_GUARD_INSTALL`. A kernel that cannot tell
    /// has none found (before Linux 6.15).
    pub fn for_each_guard(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> io::Result<()> {
        let wanted = Wanted { inverted: 0, all: IS_GUARD, any: 0 };
        match self.scan(range, wanted, &mut |run, _| visit(run)) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            other => other,
        }
    }

    /// How many pages of `range` are in RAM, the page of zeros aside: all, or those of files and of
    /// shared memory only, without the copies that writes made of them.
    pub fn resident_pages(&self, range: Range<u64>, only_shared: bool) -> io::Result<u64> {
        let shared = if only_shared { IS_FILE } else { 0 };
        let all = IS_PRESENT | IS_PFNZERO | shared;
        let mut pages = 0;
        self.scan(range, Wanted { inverted: IS_PFNZERO, all, any: 0 }, &mut |run, _| {
            pages += (run.end - run.start) / PAGE_BYTES as u64;
        })?;
        Ok(pages)
    }

    /// Calls `visit` with each run of pages (addresses in bytes) in RAM, the page of zeros aside,
    /// and whether they are pages of a file or of shared memory.
    pub fn for_each_resident(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>, bool),
    ) -> io::Result<()> {
        let wanted = Wanted { inverted: IS_PFNZERO, all: IS_PRESENT | IS_PFNZERO, any: 0 };
        self.scan(range, wanted, &mut |run, categories| visit(run, categories & IS_FILE != 0))
    }

    /// What is at each page of `range`.
    pub fn frames(&self, range: Range<u64>) -> io::Result<Vec<Option<Frame>>> {
        let pages = (range.end - range.start) / PAGE_BYTES as u64;
        let mut entries = vec![0; pages as usize * 8];
        self.0.read_exact_at(&mut entries, range.start / PAGE_BYTES as u64 * 8)?;
        let entries = entries.as_chunks::<8>().0;
        Ok(entries.iter().map(|entry| Frame::of(u64::from_ne_bytes(*entry))).collect())
    }

    /// Calls `visit` with each run of pages (addresses in bytes) where the kernel has anything, in
    /// order.
    pub fn for_each_kind(
        &self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Range<u64>, PageKind),
    ) -> io::Result<()> {
        let wanted = Wanted { inverted: 0, all: 0, any: IS_PRESENT | IS_SWAPPED };
        self.scan(range, wanted, &mut |run, categories| {
            let others = IS_FILE | IS_PFNZERO | IS_HUGE;
            let is_anonymous = categories & IS_PRESENT != 0 && categories & others == 0;
            visit(run, if is_anonymous { PageKind::Anonymous } else { PageKind::Other });
        })
    }

    fn scan(
        &self,
        range: Range<u64>,
        wanted: Wanted,
        visit: &mut dyn FnMut(Range<u64>, u64),
    ) -> io::Result<()> {
        let mut regions = [Region::default(); 256];
        let mut at = range.start;
        while at < range.end {
            let mut arg = ScanArg {
                size: size_of::<ScanArg>() as u64,
                start: at,
                end: range.end,
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                category_inverted: wanted.inverted,
                category_mask: wanted.all,
                category_anyof_mask: wanted.any,
                return_mask: IS_FILE | IS_PRESENT | IS_SWAPPED | IS_PFNZERO | IS_HUGE,
                ..ScanArg::default()
            };
            // SAFETY: `arg` has the layout and size that the request encodes, and `vec` points to
            // `vec_len` live regions which the kernel may fill.
            let found = unsafe {
                libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, std::ptr::from_mut(&mut arg))
            };
            if found < 0 {
                return Err(io::Error::last_os_error());
            }
            for region in &regions[..found as usize] {
                visit(region.start..region.end, region.categories);
            }
            if arg.walk_end <= at {
                return Err(io::Error::other("the kernel looked at no page"));
            }
            at = arg.walk_end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let frame = |number, is_exclusive| Some(Frame { number, is_exclusive });
        for (entry, expected) in [
            // Present, mapped here alone, soft-dirty.
            (0x8180_0000_0001_2345, frame(Some(0x1_2345), true)),
            // Present, of a file, mapped elsewhere too.
            (0xa000_0000_0001_2345, frame(Some(0x1_2345), false)),
            // The kernel does not tell the number.
            (0x8100_0000_0000_0000, frame(None, true)),
            // In swap: what would be the number is a place there.
            (0x4000_0000_0001_2345, None),
            (0, None),
        ] {
            assert_eq!(Frame::of(entry), expected, "{entry:#x}");
        }
    }
}
