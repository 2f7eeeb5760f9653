//! Plaintext buffers of the keeper: a pool, locked in RAM and kept out of core files.

use crate::budget::Budget;
use crate::config::{ClearSize, PAGE_BYTES};
use crate::sys::mutex::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One page of plaintext, aligned as the kernel likes it.
#[repr(C, align(4096))]
#[derive(Clone)]
pub struct Page(pub [u8; PAGE_BYTES]);

/// How many pages the grace list may hold for a Clear of this size.
pub fn grace_pages(clear: ClearSize) -> usize {
    let limit = Budget::new(clear, 0).limit();
    match clear {
        ClearSize::Bytes(_) => (limit / 8).clamp(32, 512) as usize,
        // The limit grows with the program, the pool does not: half of the floor's share.
        ClearSize::Percent(_) => 128,
    }
}

/// The pool. Buffers come back wiped of nothing: they count as part of the Clear while they are
/// out, and [`Plain`] wipes them when they return.
#[derive(Debug)]
pub struct PlainPool {
    pages: Mutex<Pages>,
    /// How many may be out.
    capacity: AtomicUsize,
}

#[derive(Debug)]
struct Pages {
    free: Vec<&'static mut Page>,
    made: usize,
}

impl Pages {
    /// Makes as many as there are to be. They live as long as the keeper: one block, locked in one
    /// go.
    fn make(&mut self, pages: usize) {
        if pages > self.made {
            let more = vec![Page([0; PAGE_BYTES]); pages - self.made];
            let block = Box::leak(more.into_boxed_slice());
            keep_private(block);
            self.free.extend(block.iter_mut());
            self.made = pages;
        }
    }

    fn lent(&self) -> usize {
        self.made - self.free.len()
    }
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Page(plaintext)")
    }
}

impl PlainPool {
    /// A pool of so many pages, made at once so that no plaintext ever lands elsewhere.
    pub fn new(pages: usize) -> std::io::Result<Arc<Self>> {
        let mut made = Pages { free: Vec::new(), made: 0 };
        made.make(pages);
        Ok(Arc::new(PlainPool { pages: Mutex::new(made), capacity: AtomicUsize::new(pages) }))
    }

    /// From now on so many may be out. What is out beyond that comes back by and by.
    pub fn resize(&self, pages: usize) {
        self.pages.lock().make(pages);
        self.capacity.store(pages, Relaxed);
    }

    /// A buffer; none when as many are out as may be.
    pub fn take(self: &Arc<Self>) -> Option<Plain> {
        let mut pages = self.pages.lock();
        if pages.lent() >= self.capacity() {
            return None;
        }
        let page = pages.free.pop()?;
        Some(Plain { page: Some(page), secret: true, pool: Arc::clone(self) })
    }

    /// Buffers left.
    pub fn left(&self) -> usize {
        self.capacity().saturating_sub(self.lent())
    }

    /// Buffers that are out.
    pub fn lent(&self) -> usize {
        self.pages.lock().lent()
    }

    /// Buffers in all.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Relaxed)
    }
}

/// Overwrites plaintext that has been handed on. (A plain fill that the compiler must keep: the
/// byte-wise volatile writes of the zeroize crate cost more than decrypting the page.)
pub fn wipe(page: &mut [u8]) {
    page.fill(0);
    std::hint::black_box(page);
}

/// Locks buffers in RAM and keeps them out of core files. Both are best effort: an ordinary user
/// may lock little, and the keeper makes no core files in the first place.
pub fn keep_private(pages: &[Page]) {
    let start = pages.as_ptr().cast_mut().cast::<libc::c_void>();
    // SAFETY: the range is exactly the live pages of the slice, page-aligned by their type; neither
    // call changes their contents.
    unsafe {
        libc::mlock(start, size_of_val(pages));
        libc::madvise(start, size_of_val(pages), libc::MADV_DONTDUMP);
    }
}

/// A buffer on loan; it goes back to the pool, wiped, when dropped.
#[derive(Debug)]
pub struct Plain {
    page: Option<&'static mut Page>,
    secret: bool,
    pool: Arc<PlainPool>,
}

impl Plain {
    /// The buffer holds nothing but ciphertext now: it need not be wiped.
    pub fn is_ciphertext(&mut self) {
        self.secret = false;
    }
}

impl Deref for Plain {
    type Target = [u8; PAGE_BYTES];
    fn deref(&self) -> &Self::Target {
        &self.page.as_ref().expect("present until dropped").0
    }
}

impl DerefMut for Plain {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.page.as_mut().expect("present until dropped").0
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        if let Some(page) = self.page.take() {
            if self.secret {
                wipe(&mut page.0);
            }
            self.pool.pages.lock().free.push(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_shrinks_lends_nothing_until_enough_is_back() {
        let pool = PlainPool::new(3).expect("room");
        let mut out: Vec<Plain> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((out.len(), pool.left()), (3, 0));
        pool.resize(2);
        assert_eq!((pool.lent(), pool.capacity(), pool.left()), (3, 2, 0));
        out.pop();
        assert!(pool.take().is_none(), "two are out, as many as may be");
        out.pop();
        assert_eq!(pool.left(), 1);
        pool.resize(5);
        out.extend(std::iter::from_fn(|| pool.take()));
        assert_eq!(out.len(), 5);
    }
}
