//! Plaintext buffers of the keeper: a fixed pool, locked in RAM and kept out of core files.

use crate::budget::Budget;
use crate::config::{ClearSize, PAGE_BYTES};
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

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
    free: Mutex<Vec<&'static mut Page>>,
    capacity: usize,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Page(plaintext)")
    }
}

impl PlainPool {
    /// A pool of so many pages, made at once so that no plaintext ever lands elsewhere.
    pub fn new(pages: usize) -> std::io::Result<Arc<Self>> {
        // They live as long as the keeper: one block, locked in one go.
        let block = Box::leak(vec![Page([0; PAGE_BYTES]); pages].into_boxed_slice());
        keep_private(block);
        let free = block.iter_mut().collect();
        Ok(Arc::new(PlainPool { free: Mutex::new(free), capacity: pages }))
    }

    /// A buffer; none when the pool is empty.
    pub fn take(self: &Arc<Self>) -> Option<Plain> {
        let page = self.free.lock().pop()?;
        Some(Plain { page: Some(page), secret: true, pool: Arc::clone(self) })
    }

    /// Buffers left.
    pub fn left(&self) -> usize {
        self.free.lock().len()
    }

    /// Buffers in all.
    pub fn capacity(&self) -> usize {
        self.capacity
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
            self.pool.free.lock().push(page);
        }
    }
}
