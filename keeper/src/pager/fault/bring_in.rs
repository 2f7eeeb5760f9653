//! Bringing pages in: records, ciphertext, verification, `UFFDIO_COPY`; zeros where there is no record.

use crate::config::{OnViolation, PAGE_BYTES};
use crate::counters::add;
use crate::pager::fault::serve::Served;
use crate::pager::plain::{Page, keep_private, wipe};
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::{Pager, Stop, violation_at, violation_at_page};
use crate::profile::{self, Phase};
use crate::readahead::MAX_WINDOW_PAGES;
use crate::sys::uffd::Refusal;
use casemate_core::Violation;
use casemate_pages::{PageRecord, page_protocol};
use std::cell::RefCell;

/// A run that reaches beyond its mapping is refused as a whole, after all of it was decrypted. Then so many faults bring
/// in one page each, before the next run is tried.
const FAULTS_SINGLY: u32 = 256;
const WINDOW: usize = MAX_WINDOW_PAGES as usize;
static ZEROS: [u8; WINDOW * PAGE_BYTES] = [0; WINDOW * PAGE_BYTES];

pub(in crate::pager) struct Scratch {
    pages: Box<[Page; WINDOW]>,
    pub records: Vec<PageRecord>,
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
        Scratch { pages, records: Vec::with_capacity(WINDOW) }
    });
}

/// Lends the calling thread its scratch area.
pub(in crate::pager) fn with_scratch<T>(f: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(f)
}

impl Pager {
    /// Collects the records of up to `window` pages from `vpn` on into the scratch area, or, if the
    /// first has none, counts how many have none. Stops at pages that are in the Clear.
    pub(in crate::pager) fn look_up(
        &self,
        space: &Space,
        state: &SpaceState,
        vpn: Vpn,
        window: u64,
        scratch: &mut Scratch,
    ) -> Result<u64, Stop> {
        scratch.records.clear();
        let mut absent = 0;
        let mut directory = self.directory.lock();
        for page in vpn..vpn + window.min(MAX_WINDOW_PAGES) {
            if page != vpn && (state.pages.contains_key(&page) || state.grace.contains_key(&page)) {
                break;
            }
            let record = directory.lookup(space.id, page);
            match record.map_err(|violation| violation_at_page(page, violation))? {
                Some(record) if absent == 0 => scratch.records.push(record),
                None if scratch.records.is_empty() => absent += 1,
                _ => break,
            }
        }
        Ok(absent)
    }

    /// Pages that were never written (or given back): zeros, without crypto.
    pub(in crate::pager) fn fill_zeros(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        pages: u64,
        write: bool,
    ) -> Result<(u64, Served), Stop> {
        let address = vpn * PAGE_BYTES as u64;
        // A page that is about to be written gets memory of its own at once; one that is only
        // read shares the kernel's page of zeros.
        let fill = |pages: u64| {
            if write {
                space.uffd.copy(address, &ZEROS[..pages as usize * PAGE_BYTES], false)
            } else {
                space.uffd.zero(address, pages * PAGE_BYTES as u64)
            }
        };
        let (mut bytes, mut result) = fill(pages);
        if bytes == 0 && pages > 1 && result == Err(Refusal::NoMapping) {
            state.singly = FAULTS_SINGLY;
            (bytes, result) = fill(1);
        }
        profile::ended(Phase::Fill);
        let came = (bytes / PAGE_BYTES) as u64;
        if came == 0 {
            match result {
                Ok(()) | Err(Refusal::EventPending) => return Ok((1, Served::EventPending)),
                // There already, by an earlier message. Not to be tracked for that: madvise may be
                // about to drop it.
                Err(Refusal::Present) => {}
                Err(refusal) => self.refused(space, address, refusal)?,
            }
        }
        (vpn..vpn + came).for_each(|page| state.enqueue(page, false, false));
        self.budget.track(came);
        add(&self.counters.zero_fills, came);
        state.wakes.push((address, came.max(1) * PAGE_BYTES as u64));
        Ok((came.max(1), Served::Yes))
    }

    /// Decrypts and verifies the pages of `scratch.records` and maps them at `vpn`. Nothing is
    /// released that has not been verified.
    pub(in crate::pager) fn bring_in(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        write: bool,
        scratch: &mut Scratch,
    ) -> Result<(u64, Served), Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let count = match self.open(scratch)? {
            Ok(count) => count,
            Err((count, violation)) => {
                let served = self.violated(space, state, vpn + count as u64, violation);
                if count == 0 || !matches!(served, Ok(Served::Poisoned)) {
                    scratch.wipe();
                    return served.map(|served| (1, served));
                }
                // It was read ahead. The thread that waits for `vpn` gets the pages before it, which verified.
                count
            }
        };
        // A page that is being written will not leave clean: there is nothing to bet on.
        let protect = !write && state.clean_bet.place();
        let source = as_bytes(&scratch.pages[..]);
        let (mut bytes, mut result) =
            space.uffd.copy(address, &source[..count * PAGE_BYTES], protect);
        if bytes == 0 && count > 1 && result == Err(Refusal::NoMapping) {
            state.singly = FAULTS_SINGLY;
            (bytes, result) = space.uffd.copy(address, &source[..PAGE_BYTES], protect);
        }
        profile::ended(Phase::Fill);
        scratch.wipe();
        let came = bytes / PAGE_BYTES;
        if came == 0 {
            match result {
                Ok(()) | Err(Refusal::EventPending) => return Ok((1, Served::EventPending)),
                // What is there is newer than what is sealed.
                Err(Refusal::Present) => {
                    self.forget(space, vpn)?;
                    self.budget.sealed(0, 1);
                }
                Err(refusal) => self.refused(space, address, refusal)?,
            }
        }
        (vpn..).take(came).for_each(|page| state.enqueue(page, protect, false));
        profile::ended(Phase::Lists);
        if !protect {
            (vpn..).take(came).try_for_each(|page| self.forget(space, page))?;
            profile::ended(Phase::Forget);
        }
        self.budget.sealed(0, came as u64);
        self.budget.track(came as u64);
        add(&self.counters.pages_in, came as u64);
        state.wakes.push((address, came.max(1) as u64 * PAGE_BYTES as u64));
        Ok((came.max(1) as u64, Served::Yes))
    }

    /// Decrypts and verifies the ciphertexts of `scratch.records` into `scratch.pages`: how many, or how
    /// many before the first that does not verify.
    fn open(&self, scratch: &mut Scratch) -> Result<Result<usize, (usize, Violation)>, Stop> {
        let count = scratch.records.len();
        for (i, record) in scratch.records.iter().enumerate() {
            let plain = &mut scratch.pages[i].0;
            let fetched = self.store.with(record.place, |cipher| {
                page_protocol::fetch(&self.cipher, record, cipher, plain)
            })?;
            profile::ended(Phase::Show);
            let opened = fetched.open(&self.cipher);
            profile::ended(Phase::Open);
            if let Err(violation) = opened {
                wipe(plain);
                if let Some(lost) = self.store.swap_trouble(record.place) {
                    scratch.wipe();
                    return Err(lost.into());
                }
                return Ok(Err((i, violation)));
            }
        }
        Ok(Ok(count))
    }

    /// A page did not verify: it is never released. Poisoned, it stops the thread that touches it; the policy
    /// says whether the run goes on until then.
    fn violated(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        violation: Violation,
    ) -> Result<Served, Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let stop = violation_at(&format!("page {address:#x}"), violation);
        let poisoned = space.uffd.poison(address, PAGE_BYTES as u64);
        if self.on_violation() == OnViolation::Kill {
            // Best effort: if the page cannot be poisoned it stays missing: the run ends, so no thread fills it.
            return Err(stop);
        }
        match poisoned {
            Ok(()) => self.note_violation(stop),
            // Poisoned already, by an earlier message or when it was read ahead, or newer than what is
            // sealed. Either way the kernel knows what a thread gets that tries again.
            Err(Refusal::Present) => {}
            Err(Refusal::EventPending) => return Ok(Served::EventPending),
            Err(_) => return Err(stop),
        }
        state.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Poisoned)
    }
}

fn as_bytes(pages: &[Page]) -> &[u8] {
    // SAFETY: `Page` is `repr(C)` around a byte array and aligned to its own size, so a slice of
    // pages is a contiguous run of initialised bytes; the lifetime is the slice's.
    unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), size_of_val(pages)) }
}
