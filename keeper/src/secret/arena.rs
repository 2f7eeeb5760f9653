//! Makes aws-lc allocate in secret memory.
//!
//! aws-lc keeps an AES key schedule and GHASH table in its cipher context, which aws-lc-rs obtains
//! from `OPENSSL_malloc`. That can be redirected once in a process (`CRYPTO_set_mem_functions`).
//! Blocks of up to `LARGEST` bytes then come from a small arena of secret memory; larger ones
//! (never keys) and any from before come from, and go back to, the C heap.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use parking_lot::{Mutex, MutexGuard};
use zeroize::Zeroize;

use super::memory::{MemoryKind, SecretMemory};

/// The arena: a cipher takes 1 KiB of it, a thread that uses aws-lc another.
const ARENA_BYTES: usize = 512 * 1024;
/// Blocks come in powers of two, from this
const SMALLEST: usize = 32;
/// to this.
const LARGEST: usize = 16 * 1024;
const CLASSES: usize = (LARGEST / SMALLEST).ilog2() as usize + 1;
/// In front of each block of the arena: its class. Keeps blocks aligned to 16 bytes.
const HEADER: usize = 16;
/// In front of blocks on the C heap: their size, exactly as aws-lc does it by itself.
const HEAP_HEADER: usize = 8;

static ARENA: OnceLock<Arena> = OnceLock::new();

struct Arena {
    memory: SecretMemory,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Offsets of free blocks. Each holds the offset of the next in its first bytes.
    free: [Option<usize>; CLASSES],
    unused_from: usize,
    in_use: usize,
    /// Blocks that were ever given out.
    given: u64,
}

/// Why key schedules cannot be kept in secret memory.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// The kernel gave no memory.
    #[error("no memory for keys: {0}")]
    Memory(#[from] io::Error),
    /// Other code has redirected aws-lc's allocations, or a second copy of it is linked.
    #[error("aws-lc does not allocate where it was told to: keys would lie in ordinary memory")]
    NotUsed,
}

/// Redirects aws-lc's allocations. Call it before any key is made; again it does nothing.
pub fn install() -> Result<MemoryKind, ArenaError> {
    if ARENA.get().is_none() {
        let memory = SecretMemory::new(ARENA_BYTES)?;
        let arena = Arena { memory, state: Mutex::default() };
        // If another thread was faster, ours is unmapped again.
        if ARENA.set(arena).is_ok() {
            // SAFETY: the functions behave as malloc, realloc and free do, also for blocks that
            // were allocated before.
            let _ = unsafe {
                aws_lc_sys::CRYPTO_set_mem_functions(Some(allocate), Some(reallocate), Some(free))
            };
        }
    }
    // Whether aws-lc uses the arena is tried out: a cipher must get a block of it. `given` never
    // falls, though other threads may free blocks meanwhile.
    let given = || arena().map_or(0, |arena| arena.state.lock().given);
    let before = given();
    let cipher = UnboundKey::new(&AES_256_GCM, &[0; 32]).map(LessSafeKey::new);
    let used = given() > before;
    drop(cipher);
    match arena() {
        Some(arena) if used => Ok(arena.memory.kind()),
        _ => Err(ArenaError::NotUsed),
    }
}

/// Bytes of the arena in use.
pub fn bytes_in_use() -> usize {
    arena().map_or(0, |arena| arena.state.lock().in_use)
}

/// The arena while nothing may allocate from it: who tries waits.
pub struct Held(MutexGuard<'static, State>);

/// Keeps all others from the arena. None if there is none.
#[must_use]
pub fn hold() -> Option<Held> {
    Some(Held(arena()?.state.lock()))
}

impl Held {
    /// All that was ever in use. It must be as before when this value is dropped, and no cipher may
    /// work until then.
    pub fn contents(&mut self) -> &mut [u8] {
        let Some(arena) = arena() else { return &mut [] };
        // SAFETY: the used part of the arena is initialised memory, borrowed as long as this value
        // is, and no cipher uses it meanwhile, by our contract.
        unsafe {
            std::slice::from_raw_parts_mut(arena.memory.pointer().as_ptr(), self.0.unused_from)
        }
    }
}

fn arena() -> Option<&'static Arena> {
    ARENA.get()
}

const fn class_bytes(class: usize) -> usize {
    SMALLEST << class
}

/// The smallest class that has room for `bytes`.
fn class_for(bytes: usize) -> Option<usize> {
    (bytes <= LARGEST)
        .then(|| (bytes.max(SMALLEST).next_power_of_two() / SMALLEST).ilog2() as usize)
}

impl Arena {
    fn allocate(&self, class: usize) -> Option<NonNull<u8>> {
        let mut state = self.state.lock();
        let offset = match state.free[class] {
            Some(offset) => {
                // SAFETY: a free block is ours, and holds the next one's offset plus one.
                let next = unsafe { self.at(offset).cast::<usize>().read() };
                state.free[class] = next.checked_sub(1);
                offset
            }
            None => {
                let offset = state.unused_from + HEADER;
                if offset + class_bytes(class) > self.memory.bytes() {
                    return None;
                }
                state.unused_from = offset + class_bytes(class);
                // SAFETY: the header lies within the arena, before the new block.
                unsafe { self.at(offset - HEADER).cast::<usize>().write(class) };
                offset
            }
        };
        state.in_use += class_bytes(class);
        state.given += 1;
        // SAFETY: offsets are below the arena's size.
        Some(unsafe { self.at(offset) })
    }

    /// # Safety
    /// `block` must come from `allocate`, and not be used again.
    unsafe fn free(&self, block: NonNull<u8>) {
        // First: a thread that ends may free while the contents are sealed, and its header too.
        let mut state = self.state.lock();
        // SAFETY: a block of ours, see above.
        let class = unsafe { self.class_of(block) };
        // SAFETY: the block has that many bytes, and its user has given it up, by our contract.
        unsafe { wipe(block.as_ptr(), class_bytes(class)) };
        let offset = block.as_ptr() as usize - self.memory.pointer().as_ptr() as usize;
        let next = state.free[class].map_or(0, |next| next + 1);
        // SAFETY: the block is free, at least 32 bytes long and aligned to 16.
        unsafe { block.cast::<usize>().write(next) };
        state.free[class] = Some(offset);
        state.in_use -= class_bytes(class);
    }

    /// # Safety
    /// `block` must come from `allocate`.
    unsafe fn class_of(&self, block: NonNull<u8>) -> usize {
        // SAFETY: every block has a header in front, written when it was first made.
        unsafe { block.sub(HEADER).cast::<usize>().read() }.min(CLASSES - 1)
    }

    fn contains(&self, block: NonNull<u8>) -> bool {
        let start = self.memory.pointer().as_ptr() as usize;
        (start..start + self.memory.bytes()).contains(&(block.as_ptr() as usize))
    }

    /// # Safety
    /// `offset` must not be beyond the arena's end.
    unsafe fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: inside the mapping, by our contract.
        unsafe { self.memory.pointer().add(offset) }
    }
}

/// # Safety
/// `bytes` must be writable at `start`, and nothing else may use them meanwhile.
unsafe fn wipe(start: *mut u8, bytes: usize) {
    // SAFETY: the caller vouches for the range; it need not be initialised.
    let block = unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), bytes) };
    block.zeroize();
}

unsafe extern "C" fn allocate(bytes: usize, _: *const c_char, _: c_int) -> *mut c_void {
    match (arena(), class_for(bytes)) {
        (Some(arena), Some(class)) => {
            arena.allocate(class).map_or(null_mut(), |block| block.as_ptr().cast())
        }
        _ => {
            let Some(whole) = bytes.checked_add(HEAP_HEADER) else {
                return null_mut();
            };
            // SAFETY: malloc takes any size; the header fits what it returns.
            unsafe {
                let start = libc::malloc(whole).cast::<u8>();
                if start.is_null() {
                    return null_mut();
                }
                start.cast::<usize>().write_unaligned(bytes);
                start.add(HEAP_HEADER).cast()
            }
        }
    }
}

unsafe extern "C" fn free(block: *mut c_void, _: *const c_char, _: c_int) {
    let Some(block) = NonNull::new(block.cast::<u8>()) else {
        return;
    };
    match arena() {
        // SAFETY: aws-lc frees a block once, and only what it was given.
        Some(arena) if arena.contains(block) => unsafe { arena.free(block) },
        // SAFETY: not of the arena, so it is from the C heap, with its size in front.
        _ => unsafe {
            let start = block.as_ptr().sub(HEAP_HEADER);
            let bytes = start.cast::<usize>().read_unaligned();
            wipe(start, bytes + HEAP_HEADER);
            libc::free(start.cast());
        },
    }
}

unsafe extern "C" fn reallocate(
    block: *mut c_void,
    bytes: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    // SAFETY: as `allocate` and `free`; both blocks are at least `common` bytes long.
    unsafe {
        let new = allocate(bytes, file, line);
        let (Some(from), Some(to)) = (NonNull::new(block.cast::<u8>()), NonNull::new(new)) else {
            return new;
        };
        let old_bytes = match arena() {
            Some(arena) if arena.contains(from) => class_bytes(arena.class_of(from)),
            _ => from.sub(HEAP_HEADER).cast::<usize>().read_unaligned(),
        };
        let common = bytes.min(old_bytes);
        std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast::<u8>().as_ptr(), common);
        free(block, file, line);
        new
    }
}

#[cfg(test)]
pub(super) fn contents() -> Vec<u8> {
    let Some(arena) = arena() else { return Vec::new() };
    let state = arena.state.lock();
    // SAFETY: the used part of the arena is initialised memory. Tests only: aws-lc may change it
    // meanwhile in other tests.
    unsafe { std::slice::from_raw_parts(arena.memory.pointer().as_ptr(), state.unused_from) }
        .to_vec()
}
