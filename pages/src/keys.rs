//! Keys: one master secret, and from it the root of all keys of pages and one key for each tree
//! level.
//!
//! Where raw key bytes live:
//! - in the [`KeySet`], in memory that the caller chose (the keeper: `memfd_secret`), until it is
//!   dropped, which wipes it;
//! - the root: in the `KeySet`, or wherever [`Roots`] has it; the keys that are derived from it
//!   only while their schedules are made;
//! - AES round keys and the GHASH table of a segment in a heap block of aws-lc inside each
//!   [`PageCipher`](crate::PageCipher), wiped when that is freed;
//! - for the tree: in the `KeySet` alone when the directory was built by
//!   [`new_in_place`](crate::page_directory::Directory::new_in_place), otherwise also in one boxed
//!   copy that is wiped on drop. BLAKE3 takes the key anew for each MAC, so nothing stays but what
//!   it leaves on the stack.

use std::ops::Deref;

use zeroize::Zeroize;

use crate::directory_shape::LEVELS;
use crate::segment_keys::{NoRoot, Roots};
use casemate_core::key_derivation::derive;

const PAGE_CONTEXT: &str = "casemate 2026-11-27 page data root key v2";
const TREE_CONTEXT: &str = "casemate 2026-11-21 metadata tree BLAKE3 level key v1";

/// The root of the keys for page data ([`segment_keys`](crate::segment_keys)).
#[repr(transparent)]
pub struct PageKey(pub(crate) [u8; 32]);

/// The keys of the metadata tree, one for each level in untrusted memory.
#[repr(transparent)]
pub struct DirectoryKeys([[u8; 32]; LEVELS]);

/// All keys that are derived from one master secret, in one plain block of memory.
///
/// A `KeySet` can be made in place: take zeroed memory, view it as a `KeySet` (any bytes are a
/// valid one), and call [`derive_into`](Self::derive_into).
#[repr(C)]
pub struct KeySet {
    /// The root of what encrypts page data.
    pub page: PageKey,
    /// Authenticates metadata.
    pub directory: DirectoryKeys,
}

impl KeySet {
    /// A key set of zeros, to be filled by [`derive_into`](Self::derive_into).
    pub const fn zeroed() -> Self {
        Self { page: PageKey([0; 32]), directory: DirectoryKeys([[0; 32]; LEVELS]) }
    }

    /// Derives all keys on the stack. For tests; the keeper derives in place.
    pub fn from_master(master: &[u8; 32]) -> Self {
        let mut keys = Self::zeroed();
        keys.derive_into(master);
        keys
    }

    /// Derives all keys into this memory, each under its own context so that no two uses share one.
    pub fn derive_into(&mut self, master: &[u8; 32]) {
        derive(PAGE_CONTEXT, &[master, &[0]], &mut self.page.0);
        self.directory.derive_into(master);
    }
}

/// The root of every epoch, whose keys differ by its number: for tests and benches, which do not
/// need the end of an epoch to destroy anything.
impl Roots for PageKey {
    fn with_root(&self, _: u64, with: &mut dyn FnMut(&[u8; 32])) -> Result<(), NoRoot> {
        with(&self.0);
        Ok(())
    }

    fn begin_epoch(&self, _: u64) -> Result<(), NoRoot> {
        Ok(())
    }

    fn end_epochs_before(&self, _: u64) -> Result<(), NoRoot> {
        Ok(())
    }
}

impl PageKey {
    /// A copy, for a cipher of its own.
    pub(crate) fn copy(&self) -> Self {
        PageKey(self.0)
    }
}

impl DirectoryKeys {
    /// Derives the key of each level into this memory.
    pub fn derive_into(&mut self, master: &[u8; 32]) {
        for (level, key) in (0..).zip(&mut self.0) {
            derive(TREE_CONTEXT, &[master, &[level]], key);
        }
    }

    /// The key for one level; `None` above the levels that lie in untrusted memory.
    pub(crate) fn level(&self, level: u8) -> Option<&[u8; 32]> {
        self.0.get(usize::from(level))
    }
}

impl Drop for PageKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Drop for DirectoryKeys {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Tree keys, either where the caller keeps them or in a copy of our own.
pub(crate) enum KeptKeys {
    InPlace(&'static DirectoryKeys),
    Copied(Box<DirectoryKeys>),
}

impl KeptKeys {
    pub(crate) fn copy_of(keys: &DirectoryKeys) -> Self {
        Self::Copied(Box::new(DirectoryKeys(keys.0)))
    }
}

impl Deref for KeptKeys {
    type Target = DirectoryKeys;
    fn deref(&self) -> &DirectoryKeys {
        match self {
            Self::InPlace(keys) => keys,
            Self::Copied(keys) => keys,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_differs_and_depends_on_the_master() {
        let (a, b) = (KeySet::from_master(&[1; 32]), KeySet::from_master(&[2; 32]));
        let mut all = vec![a.page.0, b.page.0];
        all.extend(a.directory.0.iter().chain(&b.directory.0));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn deriving_in_place_is_the_same() {
        let mut in_place = KeySet::zeroed();
        in_place.derive_into(&[7; 32]);
        let by_value = KeySet::from_master(&[7; 32]);
        assert_eq!(in_place.page.0, by_value.page.0);
        assert_eq!(in_place.directory.0, by_value.directory.0);
    }

    #[test]
    fn the_page_key_is_blake3_derive_key() {
        let mut material = [7; 33];
        material[32] = 0;
        assert_eq!(
            KeySet::from_master(&[7; 32]).page.0,
            blake3::derive_key(PAGE_CONTEXT, &material)
        );
    }
}
