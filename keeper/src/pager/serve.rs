//! Serving faults: what a missing or write-protected page becomes.

use super::plain::{Page, keep_private, wipe};
use super::space::{Space, SpaceState, Vpn};
use super::{Pager, Stop, violation_at};
use crate::config::{OnViolation, PAGE_BYTES};
use crate::counters::add;
use crate::readahead::MAX_WINDOW_PAGES;
use crate::sys::uffd::{BATCH_MESSAGES, Message, Refusal};
use casemate_engine::PageRecord;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

const WINDOW: usize = MAX_WINDOW_PAGES as usize;
static ZEROS: [u8; WINDOW * PAGE_BYTES] = [0; WINDOW * PAGE_BYTES];

/// Faults on one present page before the keeper concludes that the kernel and it disagree.
const REPEATS: u32 = 100_000;

/// How serving a fault went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The thread may try again.
    Yes,
    /// An event must be read first.
    EventPending,
    /// The page is violated and the policy leaves the program to its SIGBUS.
    Poisoned,
}

struct Scratch {
    pages: Box<[Page; WINDOW]>,
    records: Vec<PageRecord>,
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

impl Pager {
    /// Reads and serves what waits in `space` until nothing does. `after` learns which thread
    /// faulted last and how many faults were served, so that the handler can stay near it.
    pub fn attend(
        &self,
        space: &Arc<Space>,
        after: &mut dyn FnMut(&Arc<Space>, i32, u64),
    ) -> Result<(), Stop> {
        let mut attended = Attended::default();
        while !space.is_gone() && self.ending().is_none() {
            let (wakes, started, faults, drained) = {
                let mut guard = space.state.lock();
                let state = &mut *guard;
                let read = space.uffd.read(&mut state.inbox).map_err(|e| {
                    Stop::Internal(format!("reading the faults of space {}: {e}", space.id.0))
                })?;
                if state.inbox.is_empty() && state.wakes.is_empty() {
                    break;
                }
                let started = Instant::now();
                let faults = self.serve_inbox(space, state, &mut attended)?;
                let drained = read < BATCH_MESSAGES && state.inbox.is_empty();
                (std::mem::take(&mut state.wakes), started, faults, drained)
            };
            // Only now that the lock is free: a woken thread may take this CPU at once.
            let latency = started.elapsed();
            (0..faults).for_each(|_| self.counters.served(latency));
            if attended.tid != 0 {
                after(space, attended.tid, faults);
            }
            space.wake_all(&wakes);
            // What comes after that read rings the descriptor again: no need to look once more.
            if drained {
                break;
            }
        }
        Ok(())
    }

    /// Serves every message of the inbox: events first, for the kernel refuses to fill pages while
    /// one is pending, and the faults behind it mean the space as the event left it.
    pub(super) fn serve_inbox(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attended: &mut Attended,
    ) -> Result<u64, Stop> {
        let mut faults = std::mem::take(&mut state.inbox);
        self.take_events(space, state, &mut faults)?;
        let mut served = 0;
        let mut next = 0;
        while next < faults.len() {
            let done = match faults[next] {
                Message::Missing { address, write, tid } => {
                    attended.tid = tid;
                    self.missing(space, state, address / PAGE_BYTES as u64, write)?
                }
                Message::Protected { address } => {
                    self.written(space, state, address / PAGE_BYTES as u64)?
                }
                ref other => {
                    return Err(Stop::Internal(format!("an unknown message: {other:?}")));
                }
            };
            if done == Served::EventPending && !space.is_gone() {
                space.uffd.read(&mut faults).map_err(|e| Stop::Internal(e.to_string()))?;
                self.take_events(space, state, &mut faults)?;
                std::thread::yield_now();
                continue;
            }
            served += 1;
            next += 1;
        }
        faults.clear();
        if state.inbox.is_empty() {
            state.inbox = faults;
        }
        Ok(served)
    }

    /// Handles the events among `messages` and leaves the faults.
    fn take_events(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        messages: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        if messages.iter().all(Message::is_fault) {
            return Ok(());
        }
        let (faults, events): (Vec<_>, Vec<_>) =
            std::mem::take(messages).into_iter().partition(Message::is_fault);
        *messages = faults;
        self.mirror(space, state, events)
    }

    /// A page is missing: from the grace list, from the Crypt, or never written.
    pub(super) fn missing(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
        write: bool,
    ) -> Result<Served, Stop> {
        if state.pages.contains_key(&vpn) {
            return self.already_there(space, state, vpn);
        }
        let address = vpn * PAGE_BYTES as u64;
        if state.owned.iter().any(|range| range.contains(&address)) {
            return Ok(self.fill_staging(space, state, address));
        }
        if state.grace.contains_key(&vpn) {
            return self.second_chance(space, state, vpn);
        }
        let guess = state.readahead.on_fault(vpn);
        add(&self.counters.readahead_hits, u64::from(guess.hit));
        add(&self.counters.readahead_misses, u64::from(guess.miss));
        let mut window = guess.window_pages.min(state.registered.run_from(vpn).max(1));
        self.make_room(space, state, window)?;
        window = window.min(self.budget.free().max(1));
        let (came, served) = SCRATCH.with_borrow_mut(|scratch| {
            let absent = self.look_up(space, state, vpn, window, scratch)?;
            if scratch.records.is_empty() {
                self.fill_zeros(space, state, vpn, absent, write)
            } else {
                self.bring_in(space, state, vpn, scratch)
            }
        })?;
        if served == Served::Yes
            && !state.registered.contains(vpn)
            && state.pages.contains_key(&vpn)
        {
            // A registered mapping that grew in place: a stack, or mremap. (Not if nothing could be
            // filled: then the message is older than the mapping's end.)
            state.registered.insert(vpn..vpn + 1);
        }
        if came < guess.window_pages {
            state.readahead.came_short(vpn, guess.window_pages, came);
        }
        add(&self.counters.readahead_pages, came.saturating_sub(1));
        Ok(served)
    }

    /// `mlockall` of the program fills every mapping, the stagings included. What it put there is
    /// thrown away before they are used.
    fn fill_staging(&self, space: &Space, state: &mut SpaceState, address: u64) -> Served {
        if space.uffd.zero(address, PAGE_BYTES as u64).1 == Err(Refusal::EventPending) {
            return Served::EventPending;
        }
        state.soiled = true;
        state.wakes.push((address, PAGE_BYTES as u64));
        Served::Yes
    }

    /// Two threads may fault on one page; the first message served both. Or `madvise` removed it just
    /// after it came in: then it is zeros now, whatever it was.
    fn already_there(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        let address = vpn * PAGE_BYTES as u64;
        if state.may_be_removed(vpn)
            && space.uffd.zero(address, PAGE_BYTES as u64).1 == Err(Refusal::EventPending)
        {
            return Ok(Served::EventPending);
        }
        let repeats = if state.repeated.0 == vpn { state.repeated.1 + 1 } else { 1 };
        state.repeated = (vpn, repeats);
        if repeats > REPEATS {
            return Err(Stop::Internal(format!(
                "the page at {address:#x} keeps faulting though it is in the Clear"
            )));
        }
        state.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    fn second_chance(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let page = &state.grace[&vpn];
        match space.uffd.copy(address, &page.plain[..], false).1 {
            Ok(()) => {
                state.grace.remove(&vpn);
                state.enqueue(vpn, false, true);
                add(&self.counters.grace_hits, 1);
            }
            Err(Refusal::EventPending) => return Ok(Served::EventPending),
            Err(refusal) => self.refused(space, address, refusal)?,
        }
        state.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    /// Collects the records of up to `window` pages from `vpn` on into the scratch area, or, if the
    /// first has none, counts how many have none. Stops at pages that are in the Clear.
    fn look_up(
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
            let record = directory.lookup(space.id, page).map_err(|violation| {
                violation_at(&format!("{:#x}", page * PAGE_BYTES as u64), violation)
            })?;
            match record {
                Some(record) if absent == 0 => scratch.records.push(record),
                None if scratch.records.is_empty() => absent += 1,
                _ => break,
            }
        }
        Ok(absent)
    }

    /// Pages that were never written (or given back): zeros, without crypto.
    fn fill_zeros(
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
            (bytes, result) = fill(1);
        }
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
    /// released before every page of the run has been verified.
    fn bring_in(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        scratch: &mut Scratch,
    ) -> Result<(u64, Served), Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let count = scratch.records.len();
        for (i, record) in scratch.records.iter().enumerate() {
            let plain = &mut scratch.pages[i].0;
            let opened = self.store.with(record.place, |cipher| {
                self.cipher.open(record.lpid, &record.tag, cipher, plain)
            });
            if let Err(violation) = opened? {
                scratch.pages.iter_mut().take(count).for_each(|p| wipe(&mut p.0));
                if let Some(lost) = self.store.swap_trouble(record.place) {
                    return Err(lost.into());
                }
                return self.violated(space, state, vpn + i as u64, violation);
            }
        }
        let protect = state.clean_bet.place();
        let source = as_bytes(&scratch.pages[..]);
        let (mut bytes, mut result) =
            space.uffd.copy(address, &source[..count * PAGE_BYTES], protect);
        if bytes == 0 && count > 1 && result == Err(Refusal::NoMapping) {
            (bytes, result) = space.uffd.copy(address, &source[..PAGE_BYTES], protect);
        }
        scratch.pages.iter_mut().take(count).for_each(|p| wipe(&mut p.0));
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
        for page in (vpn..).take(came) {
            state.enqueue(page, protect, false);
            if !protect {
                self.forget(space, page)?;
            }
        }
        self.budget.sealed(0, came as u64);
        self.budget.track(came as u64);
        add(&self.counters.pages_in, came as u64);
        state.wakes.push((address, came.max(1) as u64 * PAGE_BYTES as u64));
        Ok((came.max(1) as u64, Served::Yes))
    }

    /// Drops a page's record and gives its ciphertext back. The caller keeps the budget.
    pub(super) fn forget(&self, space: &Space, vpn: Vpn) -> Result<(), Stop> {
        let old = self.directory.lock().replace(space.id, vpn, None).map_err(|violation| {
            violation_at(&format!("{:#x}", vpn * PAGE_BYTES as u64), violation)
        })?;
        if let Some(record) = old {
            self.store.release(record.place);
        }
        Ok(())
    }

    /// A clean page is being written: its ciphertext is no longer current.
    pub(super) fn written(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        if let Some(page) = state.pages.get_mut(&vpn).filter(|p| p.clean) {
            page.clean = false;
            state.clean_bet.lost();
            self.forget(space, vpn)?;
        }
        let address = vpn * PAGE_BYTES as u64;
        match space.uffd.protect(address, PAGE_BYTES as u64, false) {
            Err(Refusal::EventPending) => return Ok(Served::EventPending),
            Err(Refusal::Other(e)) => {
                return Err(Stop::Internal(format!("lifting write protection: errno {e}")));
            }
            // No mapping: it was unmapped meanwhile, and the thread will see that for itself.
            _ => {}
        }
        state.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    /// The kernel would not fill a page: harmless if the mapping or the space is no more.
    fn refused(&self, space: &Space, address: u64, refusal: Refusal) -> Result<(), Stop> {
        match refusal {
            Refusal::NoMapping => Ok(()),
            Refusal::SpaceGone => {
                space.gone.store(true, Relaxed);
                self.attention.ring();
                Ok(())
            }
            other => Err(Stop::Internal(format!("filling the page at {address:#x}: {other:?}"))),
        }
    }

    /// A page did not verify: it is never released. Poisoned, it stops whoever touches it.
    fn violated(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        violation: casemate_engine::Violation,
    ) -> Result<(u64, Served), Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let stop = violation_at(&format!("page {address:#x}"), violation);
        // Best effort: if the page cannot be poisoned it stays missing, and nobody fills it.
        let poisoned = space.uffd.poison(address, PAGE_BYTES as u64).is_ok();
        if self.on_violation() == OnViolation::Sigbus && poisoned {
            self.note_violation(stop);
            state.wakes.push((address, PAGE_BYTES as u64));
            return Ok((1, Served::Poisoned));
        }
        Err(stop)
    }
}

/// Whom [`Pager::attend`] served.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Attended {
    /// The thread that faulted last; 0 if none did.
    pub tid: i32,
}

fn as_bytes(pages: &[Page]) -> &[u8] {
    // SAFETY: `Page` is `repr(C)` around a byte array and aligned to its own size, so a slice of
    // pages is a contiguous run of initialised bytes; the lifetime is the slice's.
    unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), size_of_val(pages)) }
}
