//! Files that private mappings are of: what a page of such a mapping holds until the program writes
//! to it, and again once the program drops it (`MADV_DONTNEED`).

use super::capabilities::open_closed;
use super::procfs::{Mapping, Mounts};
use crate::config::PAGE_BYTES;
use crate::sys::mutex::Mutex;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Weak};

/// A regular file, open to be read.
#[derive(Debug)]
pub struct FilePages(File);

impl FilePages {
    /// One of which nothing can be read.
    #[cfg(test)]
    pub fn of_nothing() -> Self {
        FilePages(File::options().write(true).open("/dev/null").expect("there is one"))
    }

    /// Reads the page of that number, as a mapping shows it: zeros behind the end of the file.
    /// False if all of the page lies behind it, or it cannot be read.
    pub fn read_page(&self, number: u64, page: &mut [u8; PAGE_BYTES]) -> bool {
        let mut read = 0;
        while read < PAGE_BYTES {
            match self.0.read_at(&mut page[read..], number * PAGE_BYTES as u64 + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        page[read..].fill(0);
        read > 0
    }
}

/// The files that are open, each once: many processes map the same libraries.
#[derive(Debug, Default)]
pub struct OpenFiles(Mutex<HashMap<(u64, u64), Weak<FilePages>>>);

impl OpenFiles {
    /// The file of a mapping of process `pid`, which has these `mounts`. None if another file may
    /// have its name by now, if it is one whose contents may change under the mapping (it was
    /// opened to be written, too), if a program serves it (FUSE), or if it does not reach to the
    /// end of the mapping.
    pub fn of(&self, pid: i32, mounts: &Mounts, mapping: &Mapping) -> Option<Arc<FilePages>> {
        if !mounts.serve(mapping) || may_be_written(pid, mapping) {
            return None;
        }
        let file = open(pid, mapping)?;
        let found = file.metadata().ok()?;
        let end = mapping.offset + (mapping.range.end - mapping.range.start);
        if !found.is_file() || end > found.len().next_multiple_of(PAGE_BYTES as u64) {
            return None;
        }
        let mut open = self.0.lock();
        let key = (found.dev(), found.ino());
        if let Some(known) = open.get(&key).and_then(Weak::upgrade) {
            return Some(known);
        }
        open.retain(|_, file| file.strong_count() > 0);
        let pages = Arc::new(FilePages(file));
        open.insert(key, Arc::downgrade(&pages));
        Some(pages)
    }
}

/// The kernel's link to the file of a mapping. Its rights are those of the descriptor that was
/// mapped.
fn link_of(pid: i32, mapping: &Mapping) -> String {
    format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.range.start, mapping.range.end)
}

fn may_be_written(pid: i32, mapping: &Mapping) -> bool {
    const OWNER_MAY_WRITE: u32 = 0o200;
    let link = link_of(pid, mapping);
    open_closed(|| fs::symlink_metadata(&link))
        .map_or(true, |link| link.mode() & OWNER_MAY_WRITE != 0)
}

/// By the kernel's link, which CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN opens; else by its name, if
/// that is still the same file.
fn open(pid: i32, mapping: &Mapping) -> Option<File> {
    let mut to_read = File::options();
    to_read.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW);
    let by_link = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(link_of(pid, mapping));
    if let Ok(file) = by_link {
        return Some(file);
    }
    let name = mapping.name.strip_prefix('/')?;
    let file = to_read.open(Path::new(&format!("/proc/{pid}/root")).join(name)).ok()?;
    let found = file.metadata().ok()?;
    let device = (libc::major(found.dev()), libc::minor(found.dev()));
    (device == mapping.device && found.ino() == mapping.inode).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::procfs;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    /// A private mapping of this process's of so many pages of a file that has two pages and 100
    /// bytes.
    fn mapped(name: &str, pages: usize, is_written: bool) -> (Mapping, PathBuf) {
        let path = std::env::temp_dir().join(format!("casemate-{name}-{}", std::process::id()));
        fs::write(&path, vec![7_u8; 2 * PAGE_BYTES + 100]).expect("a file");
        let file = File::options().read(true).write(is_written).open(&path).expect("it is there");
        let (rights, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping, which stays for the rest of the process.
        let at = unsafe {
            let len = pages * PAGE_BYTES;
            libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_PRIVATE, fd, 0)
        };
        let all = procfs::mappings(std::process::id() as i32).expect("our own");
        let found = all.into_iter().find(|m| m.range.start == at as u64).expect("it was mapped");
        (found, path)
    }

    #[test]
    fn a_page_is_read_as_its_mapping_shows_it() {
        let (mapping, path) = mapped("pages", 3, false);
        assert!(mapping.is_data_of_file());
        let (own, open) = (std::process::id() as i32, OpenFiles::default());
        let mounts = Mounts::of(own);
        let file = open.of(own, &mounts, &mapping).expect("a file of the kernel's own");
        let again = open.of(own, &mounts, &mapping).expect("as before");
        assert!(Arc::ptr_eq(&file, &again), "it is open once");
        let mut page = [1; PAGE_BYTES];
        assert!(file.read_page(1, &mut page) && page == [7; PAGE_BYTES]);
        assert!(
            file.read_page(2, &mut page)
                && page[..100] == [7; 100]
                && page[100..] == [0; PAGE_BYTES - 100]
        );
        assert!(!file.read_page(3, &mut page), "behind its end");
        drop((file, again));
        fs::write(&path, [5]).expect("it is ours");
        let other = open.of(own, &mounts, &mapping);
        assert!(other.is_none(), "it does not reach to the end of the mapping any more");
        fs::remove_file(&path).expect("it is ours");
    }

    #[test]
    fn what_may_change_under_its_mapping_is_left_alone() {
        let own = std::process::id() as i32;
        let mounts = Mounts::of(own);
        for (name, pages, is_written) in [("written", 3, true), ("short", 4, false)] {
            let (mapping, path) = mapped(name, pages, is_written);
            assert!(OpenFiles::default().of(own, &mounts, &mapping).is_none(), "{name}");
            fs::remove_file(&path).expect("it is ours");
        }
    }

    /// By the kernel's link a removed file is found, and by its name none that has taken its place.
    #[test]
    fn another_file_of_the_same_name_is_not_taken_for_it() {
        let (mapping, path) = mapped("replaced", 3, false);
        fs::remove_file(&path).expect("it is ours");
        fs::write(&path, vec![8_u8; 3 * PAGE_BYTES]).expect("another");
        let own = std::process::id() as i32;
        let file = OpenFiles::default().of(own, &Mounts::of(own), &mapping);
        let mut page = [0; PAGE_BYTES];
        assert!(file.is_none_or(|file| file.read_page(0, &mut page) && page == [7; PAGE_BYTES]));
        fs::remove_file(&path).expect("it is ours");
    }
}
