//! The run's secrets: made at its start in secret memory, never written anywhere, gone with it.
//!
//! Keys of the tree stay. Keys of pages come from the roots of epochs (`roots`), and are there
//! while their segments are in use (`idle_keys`).

pub(crate) mod idle_keys;
mod roots;

use crate::hiding::{Hideaway, SECRET_BYTES};
use crate::lock::SealingKey;
use crate::metadata::MappedMetadata;
use crate::secret::points::{self, Closed, Role};
use crate::secret::{MemoryKind, SecretBox, SecretStack, arena, random_key, with_wiped_stack};
use casemate_pages::segment_keys::MOST_KEYS;
use casemate_pages::{DirectoryKeys, PageCipher, PageDirectory, Verification};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Tag};
use parking_lot::MutexGuard;
use roots::{RunRoots, State};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub(crate) use roots::RootUses;

/// Room for what a thread of the keeper leaves on its stack.
const STACK_BYTES: usize = 256 * 1024;

/// How long a thread sleeps without looking whether the run has ended, or is to be locked.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What the schedule of a segment's key takes of the arena.
const SCHEDULE_BYTES: usize = 1024;

/// The keys of the tree of this process.
static KEYS: OnceLock<&'static SecretBox<DirectoryKeys>> = OnceLock::new();
/// The roots of its page keys.
static ROOTS: OnceLock<RunRoots> = OnceLock::new();

/// The keys, and the cipher that was built from them.
pub(crate) struct Secrets {
    keys: &'static DirectoryKeys,
    cipher: PageCipher,
    kind: MemoryKind,
}

/// Draws a master key and derives those of the tree from it; it is wiped. Draws the root of page
/// keys, and hides it if there is a place.
pub(crate) fn make(hideaway: Option<Box<dyn Hideaway>>) -> io::Result<Secrets> {
    let kind = arena::install().map_err(io::Error::other)?;
    with_wiped_stack(|| {
        let master = random_key()?;
        let keys = SecretBox::<DirectoryKeys>::new_with(|keys| keys.derive_into(&master))?.leak();
        let exists = || io::Error::from(io::ErrorKind::AlreadyExists);
        KEYS.set(keys).map_err(|_| exists())?;
        ROOTS.set(RunRoots::draw(hideaway)?).map_err(|_| exists())?;
        let roots = ROOTS.get().ok_or_else(exists)?;
        Ok(Secrets { keys, cipher: PageCipher::over(Box::new(roots)), kind })
    })?
}

/// Leaves the place where roots are hidden: nothing is derived any more.
pub(crate) fn leave_hideaway() {
    if let Some(roots) = ROOTS.get() {
        roots.leave();
    }
}

/// How often hidden roots were needed, and what went wrong with them first.
pub(crate) fn roots_account() -> (RootUses, Option<String>) {
    ROOTS.get().map(RunRoots::account).unwrap_or_default()
}

impl Secrets {
    /// The directory that these keys authenticate.
    pub fn directory(
        &self,
        how: Verification,
        memory: MappedMetadata,
        node_cache_bytes: usize,
    ) -> PageDirectory<MappedMetadata> {
        PageDirectory::new_in_place(how, memory, self.keys, node_cache_bytes)
    }

    /// Bytes of keys and key schedules, as many as there may be.
    pub fn bytes(&self) -> u64 {
        (size_of::<DirectoryKeys>()
            + SECRET_BYTES
            + arena::bytes_in_use()
            + MOST_KEYS * SCHEDULE_BYTES) as u64
    }

    /// The page cipher; the keys stay for the directory.
    pub fn into_cipher(self) -> (PageCipher, MemoryKind) {
        (self.cipher, self.kind)
    }
}

/// Starts a thread that works with keys: its stack is secret memory, since AES-GCM and BLAKE3
/// leave key material there at every call. It may wait for pages of a program.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    spawn_as(Role::Asks, name, work)
}

/// The same for a thread that serves faults, and never waits for a page of a program.
pub(crate) fn spawn_server(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    spawn_as(Role::Serves, name, work)
}

fn spawn_as(
    role: Role,
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    let mut stack = SecretStack::new(STACK_BYTES)?;
    let range = stack.range();
    let work = move || {
        // Without it the thread works, and the run cannot be locked.
        let _member = points::join(range, role);
        work();
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(move || stack.run(work))
}

/// A thread that was started by [`spawn`] says between two pieces of work that it has no key on its
/// stack. While the keys are sealed it waits here.
#[inline(always)]
pub(crate) fn pass() {
    points::pass();
}

/// Sleeps until then, or until `is_over`, as a thread that was started by [`spawn`]. It has no key
/// on its stack.
pub(crate) fn rest_until(then: Instant, is_over: impl Fn() -> bool) {
    while !is_over() {
        let left = then.saturating_duration_since(Instant::now());
        pass();
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LONGEST_PAUSE));
    }
}

/// Keys are sealed where they lie.
static SEALED: AtomicBool = AtomicBool::new(false);

/// Whether the keys are sealed: threads that work with keys wait, perhaps for ever.
pub(crate) fn are_sealed() -> bool {
    SEALED.load(SeqCst)
}

/// Keys that are sealed where they lie. Until they are opened nothing may allocate from the arena,
/// and all threads that work with keys wait; for ever, if this value is dropped before.
pub(crate) struct Sealed {
    tags: [Tag; REGIONS],
    roots: ManuallyDrop<MutexGuard<'static, State>>,
    arena: ManuallyDrop<arena::Held>,
    closed: ManuallyDrop<Closed>,
}

/// Why sealed keys cannot be opened.
pub(crate) enum NotOpened {
    /// By this key; nothing is changed.
    WrongKey(Sealed),
    /// By any: the memory that they are in was changed.
    Changed,
}

/// What a sealing key seals, and nothing else: keys of the tree, roots, what they are hidden in,
/// the arena, and what the caller adds.
const REGIONS: usize = 5;
const NONCES: [[u8; 12]; REGIONS] = [[0; 12], [1; 12], [2; 12], [3; 12], [4; 12]];

fn cipher_of(sealing: &SealingKey) -> ChaCha20Poly1305 {
    let key: &[u8; 32] = sealing;
    ChaCha20Poly1305::new(key.into())
}

/// Seals every key and `more` where they lie, while all other threads wait. The caller is to
/// [`points::sweep`] its own stack. None, and nothing is changed, if there are no keys.
pub(crate) fn seal(closed: Closed, sealing: &SealingKey, more: &mut [u8]) -> Option<Sealed> {
    let keys = KEYS.get()?;
    let mut roots = ROOTS.get()?.hold();
    let mut arena = arena::hold()?;
    // SAFETY: the points are closed: every thread that uses keys waits until `open` has put the
    // same bytes back.
    let keys = unsafe { keys.bytes() };
    let cipher = cipher_of(sealing);
    let mut tags = [Tag::default(); REGIONS];
    let [revealed, hidden] = roots.memory();
    let regions: [&mut [u8]; REGIONS] = [keys, revealed, hidden, arena.contents(), more];
    for ((region, nonce), tag) in regions.into_iter().zip(NONCES).zip(&mut tags) {
        // Fails for hundreds of gigabytes only.
        *tag = cipher.encrypt_inout_detached(&nonce.into(), &[], region.into()).ok()?;
    }
    let (arena, closed) = (ManuallyDrop::new(arena), ManuallyDrop::new(closed));
    SEALED.store(true, SeqCst);
    Some(Sealed { tags, roots: ManuallyDrop::new(roots), arena, closed })
}

impl Sealed {
    /// Opens what was sealed, and lets threads go on.
    pub fn open(mut self, sealing: &SealingKey, more: &mut [u8]) -> Result<(), NotOpened> {
        let Some(keys) = KEYS.get() else { return Err(NotOpened::Changed) };
        // SAFETY: as in `seal`.
        let keys = unsafe { keys.bytes() };
        let cipher = cipher_of(sealing);
        let tags = self.tags;
        let open = |number: usize, region: &mut [u8]| {
            // Verified before it is decrypted: with another key nothing is changed.
            let (nonce, tag) = (NONCES[number].into(), &tags[number]);
            cipher.decrypt_inout_detached(&nonce, &[], region.into(), tag).is_ok()
        };
        if !open(0, keys) {
            return Err(NotOpened::WrongKey(self));
        }
        let [revealed, hidden] = self.roots.memory();
        if !open(1, revealed) || !open(2, hidden) {
            return Err(NotOpened::Changed);
        }
        if !open(3, self.arena.contents()) || !open(4, more) {
            return Err(NotOpened::Changed);
        }
        SEALED.store(false, SeqCst);
        drop(ManuallyDrop::into_inner(self.roots));
        drop(ManuallyDrop::into_inner(self.arena));
        drop(ManuallyDrop::into_inner(self.closed));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
