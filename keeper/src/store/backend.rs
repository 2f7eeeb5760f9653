//! What the swap file asks of the disk: runs of pages, in one round, each with its own result.

use std::io;
use std::marker::PhantomData;

use super::{PAGE_BYTES, Page};

/// A page that a backend reads from, to write it to disk.
///
/// The memory may change meanwhile (an adversary): backends hand it to the kernel or copy it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Source<'a>(libc::iovec, PhantomData<&'a Page>);

impl<'a> Source<'a> {
    /// The page at `address`.
    ///
    /// # Safety
    /// 4096 bytes must be readable there for `'a`.
    pub(super) unsafe fn new(address: *const Page) -> Self {
        let vector = libc::iovec { iov_base: address.cast_mut().cast(), iov_len: PAGE_BYTES };
        Self(vector, PhantomData)
    }

    #[cfg(test)]
    pub(super) fn copy(&self) -> Page {
        let mut page = [0; PAGE_BYTES];
        // SAFETY: the page is readable, by the contract of `new`.
        unsafe { super::copy::copy_out(self.0.iov_base.cast(), &mut page) };
        page
    }
}

/// A page that a backend writes to, reading it from disk.
#[repr(transparent)]
pub(super) struct Target<'a>(libc::iovec, PhantomData<&'a mut Page>);

impl<'a> Target<'a> {
    /// This page.
    pub(super) fn new(page: &'a mut Page) -> Self {
        let vector = libc::iovec { iov_base: page.as_mut_ptr().cast(), iov_len: PAGE_BYTES };
        Self(vector, PhantomData)
    }

    #[cfg(test)]
    pub(super) fn set(&mut self, page: &Page) {
        // SAFETY: the vector was made from an exclusive borrow of a page that still lasts.
        unsafe { self.0.iov_base.cast::<Page>().write(*page) };
    }
}

/// Neighbouring pages of the file, from byte `offset` on. `P` is [`Source`] or [`Target`].
pub(super) struct Run<'p, P> {
    pub(super) offset: u64,
    pub(super) pages: &'p mut [P],
}

impl<P> Run<'_, P> {
    /// The pages as the kernel wants them, and how many.
    pub(super) fn vectors(&self) -> (*const libc::iovec, u32) {
        // Both kinds of page are transparent wrappers of an iovec.
        (self.pages.as_ptr().cast(), self.pages.len() as u32)
    }

    /// Bytes of the run.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }
}

/// Runs of more pages than this are refused by the kernel.
pub(super) const LONGEST_RUN: usize = 256;

/// A place for pages outside RAM.
///
/// `write` and `read` do all runs in one round and push one result for each: the bytes done, which
/// may be fewer than asked, or the error. They return only when no run is in flight any more.
pub(super) trait Backend: Send + Sync {
    /// Makes sure that these bytes can be written without running out of space.
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Gives the space behind these bytes back.
    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Bytes that can still be reserved, as far as is known now: others may take them.
    fn room_bytes(&self) -> u64;
    /// Writes.
    fn write(&self, runs: &[Run<'_, Source<'_>>], done: &mut Vec<io::Result<usize>>);
    /// Reads.
    fn read(&self, runs: &mut [Run<'_, Target<'_>>], done: &mut Vec<io::Result<usize>>);
}
