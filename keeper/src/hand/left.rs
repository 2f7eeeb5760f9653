//! Whether a process still has the memory that its agent serves.

use super::{Hand, process, sys};
use crate::sys::pagemap::Pagemap;
use std::io;

impl Hand {
    /// Whether process `pid` has ended, or has another address space: one without the agent's first
    /// page, or with another number in it. False if the kernel lacks the memory to tell: giving up
    /// the agent would leave the program unprotected.
    #[must_use]
    pub fn is_left_by(&self, pid: i32) -> bool {
        // If the first thread has ended, other threads are examined.
        self.is_elsewhere(pid)
            && match process::threads(pid) {
                Ok(threads) => threads.into_iter().all(|tid| self.is_elsewhere(tid)),
                Err(error) => !is_shortage(&error),
            }
    }

    fn is_elsewhere(&self, tid: i32) -> bool {
        let at = self.parts.region.bootstrap();
        // Reading a missing page could wait for a handler, since in another address space any
        // mapping may be at this address.
        match Pagemap::open(tid).and_then(|pagemap| pagemap.holds_page(at)) {
            Ok(false) => true,
            Ok(true) => sys::read_u64(tid, at).is_ok_and(|magic| magic != self.parts.magic),
            Err(error) => !is_shortage(&error),
        }
    }
}

/// Whether the kernel, or this process, lacked memory or descriptors.
fn is_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [i32; 5] =
        [libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::EINTR];
    error.raw_os_error().is_some_and(|number| SHORTAGES.contains(&number))
}
