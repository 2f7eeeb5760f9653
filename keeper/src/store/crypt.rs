//! The Crypt: slots of RAM that hold ciphertext (Cryptkeeper section II).

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;

use crate::sys::mutex::{Mutex, MutexGuard};

use super::copy::{copy_in, copy_out};
use super::reservation::Reservation;
use super::{PAGE_BYTES, Page};
use crate::sys::sched;

/// Slots that are taken from the kernel together.
const NEW_TOGETHER: u32 = 64;
/// Free slots that are always kept, beside a sixteenth of those in use.
const KEEP_FREE: usize = 1024;

/// Why there is no slot.
pub(super) enum Full {
    /// The limit is reached.
    Limit,
    /// The kernel gives no memory.
    Memory(io::Error),
}

/// RAM for ciphertext. Resident are the slots in use, and of free ones at most
/// `used/16 + KEEP_FREE`, plus `NEW_TOGETHER`.
pub(super) struct Crypt {
    memory: Reservation,
    /// In slots.
    limit: u32,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// Free, with memory behind them; the last one freed is on top.
    warm: Vec<u32>,
    /// Free, without memory.
    cold: Vec<u32>,
    /// All from here on have never been used.
    unused_from: u32,
    used: u32,
    resident: u32,
    resident_peak: u32,
}

/// Sizes in slots or, where it says so, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CryptCounts {
    pub(super) used: u32,
    pub(super) resident: u32,
    pub(super) resident_peak: u32,
    pub(super) metadata_bytes: u64,
    pub(super) touched_bytes: u64,
}

impl Crypt {
    /// A Crypt of at most `limit` slots.
    pub(super) fn new(limit: u32, shared: bool) -> io::Result<Self> {
        let mut bytes = limit as usize * PAGE_BYTES;
        loop {
            let memory =
                if shared { Reservation::shared(bytes) } else { Reservation::private(bytes) };
            match memory {
                Ok(memory) => {
                    let limit = limit.min((memory.reserved() / PAGE_BYTES) as u32);
                    return Ok(Self { memory, limit, slots: Mutex::default() });
                }
                // Address space is limited: take what there is, and say so when it is used up.
                Err(e) if bytes <= 1 << 30 => return Err(e),
                Err(_) => bytes /= 2,
            }
        }
    }

    /// A slot that only the caller knows. `over` allows the limit to be passed.
    pub(super) fn allocate(&self, over: bool) -> Result<FreshSlot<'_>, Full> {
        let mut slots = self.slots.lock();
        let index = loop {
            if slots.used >= self.limit && !over {
                return Err(Full::Limit);
            }
            if let Some(index) = slots.warm.pop() {
                break index;
            }
            if let Some(index) = slots.cold.pop() {
                slots.resident += 1;
                break index;
            }
            if slots.unused_from >= self.limit && !over {
                // The free slots are on their way: another thread populates them or gives them
                // back. To touch more would break the limit.
                MutexGuard::unlocked(&mut slots, sched::give_way);
                continue;
            }
            break self.grow(&mut slots)?;
        };
        slots.used += 1;
        slots.resident_peak = slots.resident_peak.max(slots.resident);
        Ok(FreshSlot { crypt: self, index })
    }

    /// Takes slots from the kernel that have never been used. Returns the first of them; the others
    /// are free.
    fn grow(&self, slots: &mut MutexGuard<'_, Slots>) -> Result<u32, Full> {
        let first = slots.unused_from;
        let room = self.limit.saturating_sub(first).clamp(1, NEW_TOGETHER);
        self.memory.commit((first + room) as usize * PAGE_BYTES).map_err(Full::Memory)?;
        slots.unused_from += room;
        let bytes = room as usize * PAGE_BYTES;
        let populated = MutexGuard::unlocked(slots, || {
            self.memory.populate(first as usize * PAGE_BYTES, bytes)
        });
        if let Err(e) = populated {
            slots.cold.extend(first..first + room);
            return Err(Full::Memory(e));
        }
        slots.resident += room;
        slots.warm.extend((first + 1..first + room).rev());
        Ok(first)
    }

    /// Whether `wanted` slots can be had within the limit and of the kernel.
    pub(super) fn prepare(&self, wanted: usize) -> bool {
        let mut slots = self.slots.lock();
        loop {
            if (slots.used as usize).saturating_add(wanted) > self.limit as usize {
                return false;
            }
            if slots.warm.len() + slots.cold.len() >= wanted {
                return true;
            }
            // Otherwise the free slots are on their way: see `allocate`.
            if slots.unused_from < self.limit {
                match self.grow(&mut slots) {
                    Ok(first) => slots.warm.push(first),
                    Err(_) => return false,
                }
            } else {
                MutexGuard::unlocked(&mut slots, sched::give_way);
            }
        }
    }

    /// Slots that are left within the limit.
    pub(super) fn left(&self) -> u32 {
        self.limit.saturating_sub(self.slots.lock().used)
    }

    /// Takes slots back. Nothing may refer to them any more.
    pub(super) fn free(&self, indices: impl IntoIterator<Item = u32>) {
        let mut slots = self.slots.lock();
        let before = slots.warm.len();
        slots.warm.extend(indices);
        slots.used -= (slots.warm.len() - before) as u32;
        let used = slots.used as usize;
        if slots.warm.len() <= used / 16 + KEEP_FREE {
            return;
        }
        let excess = slots.warm.len() - (used / 32 + KEEP_FREE / 2);
        let mut given: Vec<u32> = slots.warm.drain(..excess).collect();
        if slots.warm.capacity() > 4 * (slots.warm.len() + KEEP_FREE) {
            slots.warm.shrink_to(2 * KEEP_FREE);
        }
        drop(slots);
        given.sort_unstable();
        let kept = self.give_back(&given);
        let mut slots = self.slots.lock();
        slots.resident -= (given.len() - kept.len()) as u32;
        if kept.is_empty() {
            slots.cold.append(&mut given);
        } else {
            given.retain(|index| kept.binary_search(index).is_err());
            slots.cold.append(&mut given);
            slots.warm.extend(kept);
        }
    }

    /// Gives sorted free slots to the kernel, in runs; returns those it would not take.
    fn give_back(&self, sorted: &[u32]) -> Vec<u32> {
        let mut kept = Vec::new();
        for run in sorted.chunk_by(|a, b| a + 1 == *b) {
            let offset = run[0] as usize * PAGE_BYTES;
            if self.memory.discard(offset, run.len() * PAGE_BYTES).is_err() {
                kept.extend_from_slice(run);
            }
        }
        kept
    }

    /// Copies a slot out. False if there is no such slot.
    ///
    /// The copy may be torn or of another page if the slot is freed meanwhile or changed from
    /// outside: the caller must find out.
    pub(super) fn read(&self, index: u32, into: &mut Page) -> bool {
        match self.memory.pointer(index as usize * PAGE_BYTES, PAGE_BYTES) {
            Some(slot) => {
                // SAFETY: 4096 usable bytes, and `into` is a page of the caller's own.
                unsafe { copy_out(slot.as_ptr(), into) };
                true
            }
            None => false,
        }
    }

    /// A view of a slot.
    ///
    /// # Safety
    /// As long as the view lives, the slot must not be freed, and the Crypt must not be shared.
    pub(super) unsafe fn view(&self, index: u32) -> Option<&Page> {
        debug_assert!(self.memory.file().is_none());
        let slot = self.memory.pointer(index as usize * PAGE_BYTES, PAGE_BYTES)?;
        // SAFETY: 4096 usable bytes that are not written: a slot is written only between allocation
        // and publication, and by our contract it is not freed, nor can another process write to
        // it.
        Some(unsafe { slot.cast::<Page>().as_ref() })
    }

    /// Where a slot lies, for the kernel to read from.
    pub(super) fn address(&self, index: u32) -> Option<*const Page> {
        let slot = self.memory.pointer(index as usize * PAGE_BYTES, PAGE_BYTES)?;
        Some(slot.as_ptr().cast::<Page>().cast_const())
    }

    /// Whether a slot can be had within the limit.
    pub(super) fn has_room(&self) -> bool {
        self.slots.lock().used < self.limit
    }

    /// The limit in slots, or the address space if that is less.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// The memfd of a shared Crypt.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.memory.file()
    }

    /// Sizes now.
    pub(super) fn counts(&self) -> CryptCounts {
        let slots = self.slots.lock();
        CryptCounts {
            used: slots.used,
            resident: slots.resident,
            resident_peak: slots.resident_peak,
            touched_bytes: u64::from(slots.unused_from) * PAGE_BYTES as u64,
            metadata_bytes: 4 * (slots.warm.capacity() + slots.cold.capacity()) as u64,
        }
    }
}

/// A slot that is being filled; it goes back to the Crypt unless it is published.
pub(super) struct FreshSlot<'a> {
    crypt: &'a Crypt,
    index: u32,
}

impl FreshSlot<'_> {
    /// Lets `fill` write the page. What it does not write keeps arbitrary bytes.
    pub(super) fn fill<T>(&mut self, fill: impl FnOnce(&mut Page) -> T) -> T {
        let offset = self.index as usize * PAGE_BYTES;
        let Some(slot) = self.crypt.memory.pointer(offset, PAGE_BYTES) else {
            unreachable!("a slot was handed out before its memory");
        };
        if self.crypt.memory.file().is_some() {
            // Others may write here: the page is made in private memory and copied over.
            let mut page = [0; PAGE_BYTES];
            let result = fill(&mut page);
            // SAFETY: 4096 usable bytes of ours.
            unsafe { copy_in(&page, slot.as_ptr()) };
            return result;
        }
        // SAFETY: 4096 usable bytes, initialised by the kernel; the slot is known to this
        // FreshSlot alone, which is borrowed exclusively, and the memory is private.
        fill(unsafe { slot.cast::<Page>().as_mut() })
    }

    /// Hands the slot over to the caller, which will free it.
    pub(super) fn publish(self) -> u32 {
        ManuallyDrop::new(self).index
    }

    /// The slot's number.
    pub(super) fn index(&self) -> u32 {
        self.index
    }
}

impl Drop for FreshSlot<'_> {
    fn drop(&mut self) {
        self.crypt.free([self.index]);
    }
}
