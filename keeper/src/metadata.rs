//! Where the page directory's lines lie: untrusted memory of the keeper's, grown on demand.

use casemate_core::UntrustedMemory;
use casemate_core::geometry::LinePlace;
use casemate_pages::directory_shape::{LEVELS, LINE_BYTES, Line};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::store::StoreError;

/// Bytes that are handed to a tree level at once.
const CHUNK_BYTES: usize = 64 * 1024;
const CHUNK_LINES: u64 = (CHUNK_BYTES / LINE_BYTES) as u64;
/// Address space reserved; the kernel backs only what is touched. At 1.2 % this covers 20 TiB.
const RESERVED_BYTES: usize = 256 << 30;

/// Lines in one mapping: anonymous, or of a memory file when the run is attackable.
pub struct MappedMetadata {
    base: NonNull<u8>,
    reserved: usize,
    file: Option<File>,
    state: Arc<MetadataState>,
    /// Chunk number by level and position.
    chunks: [Vec<Option<u32>>; LEVELS],
    next: u32,
}

/// State of the metadata that is readable while the page directory owns the lines.
#[derive(Debug, Default)]
pub struct MetadataState {
    bytes: AtomicU64,
    lost: AtomicBool,
}

impl MetadataState {
    /// The store's error if a line could not be stored; such a line does not verify.
    pub fn trouble(&self) -> Option<StoreError> {
        let used_bytes = self.bytes.load(Relaxed);
        self.lost.load(Relaxed).then_some(StoreError::MetadataFull { used_bytes })
    }
}

/// See [`MappedMetadata::share`].
pub struct MetadataView {
    /// The memory file that holds every line.
    pub file: File,
    state: Arc<MetadataState>,
}

impl MetadataView {
    /// Bytes of the file in use now.
    pub fn bytes(&self) -> u64 {
        self.state.bytes.load(Relaxed)
    }
}

// SAFETY: the mapping is owned by this value alone and reached only through `&mut self`; moving
// the owner to another thread moves that right with it.
unsafe impl Send for MappedMetadata {}

impl MappedMetadata {
    /// Reserves the address space. `shared` makes it a memory file that can be handed out.
    pub fn new(shared: bool) -> io::Result<Self> {
        Self::reserving(RESERVED_BYTES, shared)
    }

    /// Room for `reserved` bytes of lines, or for less if the address space has not that much.
    fn reserving(mut reserved: usize, shared: bool) -> io::Result<Self> {
        let file = shared.then(memory_file).transpose()?;
        let base = loop {
            match map(reserved, file.as_ref()) {
                Ok(base) => break base,
                Err(e) if reserved <= (1 << 30) => return Err(e),
                Err(_) => reserved /= 2,
            }
        };
        Ok(MappedMetadata {
            base,
            reserved,
            file,
            state: Arc::default(),
            chunks: Default::default(),
            next: 0,
        })
    }

    /// A view for the adversary of an attackable run: the memory file, and how much of it is used.
    pub fn share(&self) -> io::Result<Option<MetadataView>> {
        let file = self.file.as_ref().map(File::try_clone).transpose()?;
        Ok(file.map(|file| MetadataView { file, state: self.state() }))
    }

    /// The memory that the lines take, and whether one was lost, for the report of the run's end.
    pub fn state(&self) -> Arc<MetadataState> {
        Arc::clone(&self.state)
    }

    fn line(&self, level: u8, index: u64) -> Option<NonNull<u8>> {
        let chunks = self.chunks.get(usize::from(level))?;
        let chunk = (*chunks.get((index / CHUNK_LINES) as usize)?)? as usize;
        let offset = chunk * CHUNK_BYTES + (index % CHUNK_LINES) as usize * LINE_BYTES;
        debug_assert!(offset + LINE_BYTES <= self.reserved);
        // SAFETY: chunk numbers are given out below `reserved / CHUNK_BYTES` (see `grow`), so the
        // whole line lies inside the mapping.
        Some(unsafe { self.base.add(offset) })
    }

    fn grow(&mut self, level: u8, index: u64) -> Option<()> {
        let position = (index / CHUNK_LINES) as usize;
        let end = (self.next as usize + 1) * CHUNK_BYTES;
        if end > self.reserved {
            return None;
        }
        if let Some(file) = &self.file {
            file.set_len(end as u64).ok()?;
        }
        let chunks = self.chunks.get_mut(usize::from(level))?;
        if chunks.len() <= position {
            chunks.resize(position + 1, None);
        }
        chunks[position] = Some(self.next);
        self.next += 1;
        self.state.bytes.store(end as u64, Relaxed);
        Some(())
    }
}

impl UntrustedMemory<LinePlace, Line> for MappedMetadata {
    fn read(&mut self, LinePlace { level, index }: LinePlace) -> Line {
        let mut line = [0; LINE_BYTES];
        if let Some(from) = self.line(level, index) {
            // SAFETY: `from` points to a whole line inside the mapping. Another process may write
            // to it at any time (that is what untrusted means); the copy is made once and only
            // the copy is looked at.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), line.as_mut_ptr(), LINE_BYTES) };
        }
        line
    }

    fn write(&mut self, LinePlace { level, index }: LinePlace, line: &Line) {
        if self.line(level, index).is_none() && self.grow(level, index).is_none() {
            // The line is lost: its next use fails verification, which stops the run before
            // anything wrong is read. `lost` gives the report its reason.
            self.state.lost.store(true, Relaxed);
            return;
        }
        if let Some(to) = self.line(level, index) {
            // SAFETY: as in `read`; the source is a private line.
            unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), to.as_ptr(), LINE_BYTES) };
        }
    }
}

impl Drop for MappedMetadata {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.reserved) };
    }
}

fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string; the descriptor is new, so the File is its only owner.
    unsafe {
        let fd = libc::memfd_create(c"casemate-metadata".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

fn map(bytes: usize, file: Option<&File>) -> io::Result<NonNull<u8>> {
    let kind =
        if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    let fd = file.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            kind | libc::MAP_NORESERVE,
            fd,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range was just mapped; the advice changes no contents. Large pages would make
    // sparse tree levels cost megabytes.
    unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::outcome::Ending;
    use crate::pager::{Pager, Stop};
    use crate::store::{PageStore, StoreConfig};
    use casemate_core::Lpid;
    use casemate_pages::{KeySet, PageCipher, PageDirectory, PageRecord, SpaceId, StorePlace, Tag};

    #[test]
    fn a_line_that_found_no_room_is_a_failed_store_and_no_attack() {
        let keys = KeySet::from_master(&[7; 32]);
        let pager = |state| {
            let directory = PageDirectory::new(
                MappedMetadata::new(false).expect("room"),
                &keys.directory,
                16 << 10,
            );
            let store = PageStore::new(StoreConfig::default()).expect("a store");
            let cipher = PageCipher::new(&keys.page);
            Pager::new(&Config::new(Vec::new()), cipher, directory, state, store).expect("a pager")
        };
        // Room for every level once, not for all records.
        let memory = MappedMetadata::reserving((LEVELS + 4) * CHUNK_BYTES, false).expect("room");
        let state = memory.state();
        let mut directory = PageDirectory::new(memory, &keys.directory, 16 << 10);
        let sound = pager(Arc::clone(&state));
        sound.stop(Stop::Violation("an attack".to_owned()));
        assert_eq!(sound.ending(), Some(&Ending::Violation { what: "an attack".to_owned() }));

        directory.create_space(SpaceId(1)).expect("there is room");
        let record = PageRecord { lpid: Lpid(1), tag: Tag([1; 16]), place: StorePlace(1) };
        let violation = (0..1 << 20).find_map(|vpn| {
            let put = directory.replace(SpaceId(1), vpn * 128, Some(record)).err();
            put.or_else(|| directory.lookup(SpaceId(1), vpn * 64).err())
        });
        let violation = violation.expect("a line that is lost does not verify");
        let full = pager(state);
        full.stop(Stop::Violation(violation.to_string()));
        let Some(Ending::StoreFailed { what }) = full.ending() else {
            panic!("{:?}", full.ending());
        };
        assert!(what.starts_with("no memory for more records and tree lines after"), "{what}");
    }
}
