//! Values in secret memory.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use casemate_core::PAGE_BYTES;
use casemate_pages::{DirectoryKeys, KeySet};
use zeroize::Zeroize;

use super::memory::{MemoryKind, SecretMemory};

/// Types of which zeroed memory is a value.
///
/// # Safety
/// All bytes zero must be a valid value of the type.
pub unsafe trait ZeroIsValid {}

// SAFETY: any bytes are a valid array of bytes.
unsafe impl<const N: usize> ZeroIsValid for [u8; N] {}
// SAFETY: a KeySet consists of arrays of bytes; its documentation allows this.
unsafe impl ZeroIsValid for KeySet {}
// SAFETY: as above.
unsafe impl ZeroIsValid for DirectoryKeys {}

/// A value that lies in secret memory from its beginning to its end.
pub struct SecretBox<T> {
    memory: SecretMemory,
    holds: PhantomData<T>,
}

impl<T: ZeroIsValid> SecretBox<T> {
    /// A value of zeros, to be filled in place.
    pub fn zeroed() -> io::Result<Self> {
        const { assert!(align_of::<T>() <= PAGE_BYTES) };
        let memory = SecretMemory::new(size_of::<T>())?;
        Ok(Self { memory, holds: PhantomData })
    }

    /// A value that `fill` makes out of zeros.
    pub fn new_with(fill: impl FnOnce(&mut T)) -> io::Result<Self> {
        let mut secret = Self::zeroed()?;
        fill(&mut secret);
        Ok(secret)
    }

    /// How well it is kept.
    pub fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// Keeps the value until the process ends. It is not wiped then: the kernel clears memory
    /// before it gives it to another process.
    pub fn leak(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    /// The bytes of the value, to be changed for a while.
    ///
    /// # Safety
    /// Until they are as before, no thread may read the value, and no other may have these bytes.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes(&self) -> &mut [u8] {
        // SAFETY: the memory has room for a T; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.memory.pointer().as_ptr(), size_of::<T>()) }
    }
}

impl<T> Deref for SecretBox<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the memory has room for a T, is aligned to pages, and has held a valid T since
        // `zeroed`; it is borrowed as long as the reference lives.
        unsafe { self.memory.pointer().cast::<T>().as_ref() }
    }
}

impl<T> DerefMut for SecretBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { self.memory.pointer().cast::<T>().as_mut() }
    }
}

impl<T> Drop for SecretBox<T> {
    fn drop(&mut self) {
        // SAFETY: a valid T, borrowed exclusively and not used again; its memory is wiped and
        // unmapped next.
        unsafe { self.memory.pointer().cast::<T>().drop_in_place() };
    }
}

/// 256 random bits, written by `getrandom(2)` straight into secret memory.
pub fn random_key() -> io::Result<SecretBox<[u8; 32]>> {
    let mut key = SecretBox::<[u8; 32]>::zeroed()?;
    fill_random(&mut *key)?;
    Ok(key)
}

/// Fills memory with random bytes of the kernel, or with zeros if it has none.
pub fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is writable memory of that length.
        let n = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(n) {
            Ok(n) => filled += n,
            Err(_) => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e => {
                    bytes.zeroize();
                    return Err(e);
                }
            },
        }
    }
    Ok(())
}
