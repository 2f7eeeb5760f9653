//! Bringing pages in: records, ciphertext, verification, `UFFDIO_COPY`.

use super::turn_back::{Unserved, unless_event};
use super::{FAULTS_SINGLY, Fault, Served, WINDOW};
use crate::config::{OnViolation, PAGE_BYTES};
use crate::event_counts::add;
use crate::pager::plain::{Page, keep_private, wipe};
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::{Stop, violation_at};
use crate::profile::{self, Phase};
use crate::readahead::MAX_WINDOW_PAGES;
use crate::sys::uffd::Refusal;
use casemate_core::Violation;
use casemate_pages::{PageRecord, page_protocol};
use std::cell::RefCell;

/// What became of a stored page that was to be opened.
pub(super) enum Opened {
    AsItWas,
    /// One or two bits of it had flipped.
    Healed,
    Violated(Violation),
}

pub(super) struct Scratch {
    pub pages: Box<[Page; WINDOW]>,
    pub records: Vec<PageRecord>,
    /// Whether bits of a page had flipped. Its ciphertext must not stay for the page to leave by.
    healed: bool,
}

impl Scratch {
    /// Leaves no plaintext of `records` behind.
    fn wipe(&mut self) {
        let count = self.records.len();
        self.pages.iter_mut().take(count).for_each(|p| wipe(&mut p.0));
    }
}

thread_local! {
    /// Where this handler decrypts; wiped after each use.
    static SCRATCH: RefCell<Scratch> = RefCell::new({
        let pages: Box<[Page]> = vec![Page([0; PAGE_BYTES]); WINDOW].into_boxed_slice();
        let pages: Box<[Page; WINDOW]> = pages.try_into().expect("a window's worth");
        keep_private(&pages[..]);
        Scratch { pages, records: Vec::with_capacity(WINDOW), healed: false }
    });
}

/// Lends the calling thread its scratch area.
pub(super) fn with_scratch<T>(f: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(f)
}

impl Fault<'_> {
    /// Collects the records of up to `window` pages from `vpn` on into the scratch area, or, if the
    /// first has none, counts how many have none. Stops at pages that are in the Clear.
    pub(super) fn look_up(
        &self,
        space: &Space,
        state: &SpaceState,
        vpn: Vpn,
        window: u64,
        scratch: &mut Scratch,
    ) -> Result<u64, Stop> {
        let pages = vpn..vpn + window.min(MAX_WINDOW_PAGES);
        let is_there =
            |page| state.clear.pages.contains_key(&page) || state.grace.pages.contains_key(&page);
        self.records.run(space.id, pages, is_there, &mut scratch.records)
    }

    /// Decrypts and verifies the pages of `scratch.records` and maps them at `vpn`. Nothing is
    /// released that has not been verified.
    pub(super) fn bring_in(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        write: bool,
        scratch: &mut Scratch,
    ) -> Result<(u64, Served), Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let count = match self.open(scratch) {
            Ok(Ok(count)) => count,
            Err(stop) => {
                scratch.wipe();
                return Err(Unserved::Stop(stop));
            }
            Ok(Err((count, violation))) => {
                let served = self.violated(space, state, vpn + count as u64, violation);
                if count == 0 || !matches!(served, Ok(Served::Poisoned)) {
                    scratch.wipe();
                    return served.map(|served| (1, served));
                }
                // It was read ahead. The thread that waits for `vpn` gets the pages before it,
                // which verified.
                count
            }
        };
        // A page that is being written will not leave clean: there is nothing to bet on. And while
        // it is clean its ciphertext takes a place that another page may need, and memory of the
        // machine, which buys nothing while there is room in the Clear.
        let has_places = || self.store.spares(self.budget.used());
        let leaves_soon = self.budget.free() <= self.budget.high() + self.budget.limit() / 8;
        let is_bet = !write && !scratch.healed;
        let protect = is_bet && leaves_soon && has_places() && state.clear.clean_bet.place();
        let is_shielded = protect || state.calls.is_forking();
        let source = as_bytes(&scratch.pages[..]);
        let (mut bytes, mut result) =
            space.uffd.copy(address, &source[..count * PAGE_BYTES], is_shielded);
        if bytes == 0 && count > 1 && result == Err(Refusal::NoMapping) {
            state.faults.singly = FAULTS_SINGLY;
            (bytes, result) = space.uffd.copy(address, &source[..PAGE_BYTES], is_shielded);
        }
        profile::ended(Phase::Fill);
        scratch.wipe();
        let came = match Self::filled((bytes, result))? {
            Ok(came) => came,
            // What is there is newer than what is sealed.
            Err(Refusal::Present) => {
                self.records.forget(space.id, vpn)?;
                self.budget.sealed(0, 1);
                0
            }
            Err(refusal) => {
                self.refused(space, address, refusal)?;
                0
            }
        };
        (vpn..vpn + came).for_each(|page| state.clear.enqueue(page, protect, false));
        if is_shielded && !protect {
            state.clear.shield(vpn..vpn + came);
        }
        profile::ended(Phase::Lists);
        if !protect {
            (vpn..vpn + came).try_for_each(|page| self.records.forget(space.id, page))?;
            profile::ended(Phase::Forget);
        }
        self.budget.sealed(0, came);
        self.budget.track(came);
        add(&self.counts.pages_in, came);
        state.pending.wakes.push((address, came.max(1) * PAGE_BYTES as u64));
        Ok((came.max(1), Served::Yes))
    }

    /// Decrypts and verifies the ciphertexts of `scratch.records` into `scratch.pages`: how many,
    /// or how many before the first that does not verify.
    fn open(&self, scratch: &mut Scratch) -> Result<Result<usize, (usize, Violation)>, Stop> {
        let count = scratch.records.len();
        scratch.healed = false;
        for (i, record) in scratch.records.iter().enumerate() {
            match self.open_page(record, &mut scratch.pages[i].0, None)? {
                Opened::AsItWas => {}
                Opened::Healed => scratch.healed = true,
                Opened::Violated(violation) => return Ok(Err((i, violation))),
            }
        }
        Ok(Ok(count))
    }

    /// Fetches a stored page and opens it into `plain`, which is wiped unless the page verified. If
    /// bits were put right, its ciphertext as it was sealed goes to `mended`.
    pub(super) fn open_page(
        &self,
        record: &PageRecord,
        plain: &mut [u8; PAGE_BYTES],
        mended: Option<&mut [u8; PAGE_BYTES]>,
    ) -> Result<Opened, Stop> {
        let fetched = self.store.with(record.place, |cipher| {
            page_protocol::fetch(self.cipher, record, cipher, plain)
        })?;
        profile::ended(Phase::Show);
        let opened = fetched.open(self.cipher);
        profile::ended(Phase::Open);
        let Err(violation) = opened else { return Ok(Opened::AsItWas) };
        wipe(plain);
        if let Violation::NoKey { .. } = violation {
            return Err(violation_at("a stored page", violation));
        }
        if let Some(lost) = self.store.swap_trouble(record.place) {
            return Err(lost.into());
        }
        let stored = (self.cipher, self.store, self.counts);
        let is_healed = self.healing.open(stored, record, plain, mended)?;
        Ok(if is_healed { Opened::Healed } else { Opened::Violated(violation) })
    }

    /// A page did not verify: it is never released. Poisoned, it stops the thread that touches it;
    /// the policy says whether the run goes on until then.
    pub(super) fn violated(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        violation: Violation,
    ) -> Result<Served, Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let stop = violation_at(&format!("page {address:#x}"), violation);
        let poisoned = space.uffd.poison(address, PAGE_BYTES as u64);
        if self.end.on_violation == OnViolation::Kill {
            // Best effort: if the page cannot be poisoned it stays missing: the run ends, so no
            // thread fills it.
            return Err(Unserved::Stop(stop));
        }
        match unless_event(poisoned)? {
            Ok(()) => self.end.note_violation(stop),
            // Poisoned already, by an earlier message or when it was read ahead, or newer than what
            // is sealed. Either way the kernel knows what a thread gets that tries again.
            Err(Refusal::Present) => {}
            Err(_) => return Err(Unserved::Stop(stop)),
        }
        state.pending.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Poisoned)
    }
}

/// The bytes of pages in order.
pub(super) fn as_bytes(pages: &[Page]) -> &[u8] {
    // SAFETY: `Page` is `repr(C)` around a byte array and aligned to its own size, so a slice of
    // pages is a contiguous run of initialised bytes; the lifetime is the slice's.
    unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), size_of_val(pages)) }
}
