//! The run's secrets: made at its start in secret memory, never written anywhere, gone with it.

use crate::metadata::MappedMetadata;
use crate::secret::{MemoryKind, SecretBox, SecretStack, arena, random_key, with_wiped_stack};
use casemate_pages::{FlipFinder, KeySet, PageCipher, PageDirectory};
use std::io;

/// Room for what a thread of the keeper leaves on its stack.
const STACK_BYTES: usize = 256 * 1024;

/// The keys, and the cipher that was built from them.
pub(crate) struct Secrets {
    keys: &'static KeySet,
    cipher: PageCipher,
    kind: MemoryKind,
}

/// Draws a master key and derives every other from it. The master key itself is wiped.
pub(crate) fn make() -> io::Result<Secrets> {
    let kind = arena::install().map_err(io::Error::other)?;
    with_wiped_stack(|| {
        let master = random_key()?;
        let keys = SecretBox::<KeySet>::new_with(|keys| keys.derive_into(&master))?.leak();
        Ok(Secrets { keys, cipher: PageCipher::new(&keys.page), kind })
    })?
}

impl Secrets {
    /// The directory that these keys authenticate.
    pub fn directory(
        &self,
        memory: MappedMetadata,
        node_cache_bytes: usize,
    ) -> PageDirectory<MappedMetadata> {
        PageDirectory::new_in_place(memory, &self.keys.directory, node_cache_bytes)
    }

    /// Bytes of keys and key schedules.
    pub fn bytes(&self) -> u64 {
        (size_of::<KeySet>() + arena::bytes_in_use()) as u64
    }

    /// What finds flipped bits of pages.
    pub fn flip_finder(&self) -> FlipFinder {
        FlipFinder::new(&self.keys.page)
    }

    /// The page cipher; the keys stay for the directory.
    pub fn into_cipher(self) -> (PageCipher, MemoryKind) {
        (self.cipher, self.kind)
    }
}

/// Starts a thread that works with keys: its stack is secret memory, since AES-GCM and BLAKE3
/// leave key material there at every call.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    let mut stack = SecretStack::new(STACK_BYTES)?;
    std::thread::Builder::new().name(name.to_owned()).spawn(move || stack.run(work))
}
