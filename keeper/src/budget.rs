//! The Clear's budget and its watermarks (Cryptkeeper sections II, IV.B and VI.B).

mod sizes;

use crate::config::{Bound, CLEAR_ALLOWANCE_BYTES, ClearSize, PAGE_BYTES};
use crate::sys::mutex::Mutex;
use sizes::AtomicSize;
pub use sizes::Kept;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

/// Pages of plaintext in use, against the bound. All threads change the counts.
#[derive(Debug)]
pub struct Budget {
    /// The size that room is made by.
    aim: AtomicSize,
    /// A process could not be given the agent that it needs only by that size.
    is_aim_refused: AtomicBool,
    /// The size that the bound is judged by.
    promised: AtomicSize,
    /// How sizes were kept that were promised before.
    before: Mutex<Option<Kept>>,
    /// Pages that the pager brought in or adopted, and pages of the grace list.
    tracked: AtomicU64,
    /// Anonymous pages that the pager does not track yet, of processes or parts of them.
    untracked: AtomicU64,
    /// Anonymous pages that no pager can track, as far as they count.
    copies: AtomicU64,
    agents: AtomicU64,
    /// Pages that threads bring in now, and count as tracked when these have come.
    claimed: AtomicU64,
    /// Pages that exist only as ciphertext.
    sealed: AtomicI64,
    /// The keeper's own plaintext buffers, in pages.
    buffers: u64,
    /// Pages to keep free for what programs touch before the watcher's next look.
    reserve: AtomicU64,
    /// Pages that processes without an agent were allowed to touch, and were not seen to.
    untouched: AtomicU64,
    /// The most pages used that [`Budget::judge_peak`] has not judged yet.
    recent: AtomicU64,
    /// The largest Clear since the size that is promised was.
    peak: AtomicU64,
    /// The largest bound since then, if that is a percentage.
    limit_peak: AtomicU64,
}

impl Budget {
    /// A budget for `size`, of which `buffers` pages are the keeper's own plaintext buffers.
    pub fn new(size: ClearSize, buffers: u64) -> Self {
        Budget {
            aim: AtomicSize::new(size),
            is_aim_refused: AtomicBool::new(false),
            promised: AtomicSize::new(size),
            before: Mutex::default(),
            tracked: AtomicU64::new(0),
            untracked: AtomicU64::new(0),
            copies: AtomicU64::new(0),
            agents: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            sealed: AtomicI64::new(0),
            buffers,
            reserve: AtomicU64::new(0),
            untouched: AtomicU64::new(0),
            recent: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit_peak: AtomicU64::new(0),
        }
    }

    /// Pages of plaintext now.
    pub fn used(&self) -> u64 {
        self.tracked.load(Relaxed) + self.untracked.load(Relaxed) + self.outside() + self.buffers
    }

    /// The bound, in pages. A percentage is one of everything the run uses now, plaintext and what
    /// exists only as ciphertext, so it follows the program's size.
    pub fn limit(&self) -> u64 {
        let size = self.aim.load();
        let limit = self.limit_of(size);
        // A percentage is aimed at only once it is promised.
        if matches!(size, ClearSize::Percent(_)) {
            raise(&self.limit_peak, limit);
        }
        limit
    }

    /// What `size` comes to now, in pages.
    pub fn limit_of(&self, size: ClearSize) -> u64 {
        let bytes = match size {
            ClearSize::Bytes(bytes) => bytes,
            ClearSize::Percent(share) => {
                let pages = self.used() + self.sealed_pages();
                let bytes = pages * PAGE_BYTES as u64 * u64::from(share.percent) / 100;
                bytes.max(share.floor_bytes)
            }
        };
        bytes.max(ClearSize::FLOOR_BYTES) / PAGE_BYTES as u64
    }

    /// The size that is promised.
    pub fn promised(&self) -> ClearSize {
        self.promised.load()
    }

    /// Makes room as for a Clear of so many pages. Another size stays promised.
    pub fn aim_at(&self, pages: u64) {
        self.aim.store(ClearSize::Bytes(pages * PAGE_BYTES as u64));
    }

    /// Promises another size from now on, and makes room by it. Called by the thread that judges
    /// the peak, when no more is used than this size allows.
    pub fn promise(&self, size: ClearSize) {
        let kept = self.kept();
        *self.before.lock() = Some(kept);
        self.promised.store(size);
        self.limit_peak.store(0, Relaxed);
        self.aim.store(size);
        self.peak.store(0, Relaxed);
        self.recent.store(self.used(), Relaxed);
    }

    /// Makes room by the size that is promised again.
    pub fn aim_as_promised(&self) {
        self.aim.store(self.promised());
    }

    /// The sizes that were promised so far, and how they were kept.
    pub fn kept(&self) -> Kept {
        let limit = self.limit_of(self.promised()).max(self.limit_peak.load(Relaxed));
        let peak = self.peak.load(Relaxed).max(self.recent.load(Relaxed));
        let now = Kept::of(limit, peak);
        self.before.lock().map_or(now, |before| before.and_then(now))
    }

    /// Plaintext that may still come in while processes are being armed: what two processors can
    /// touch in some ten milliseconds, in pages.
    const HEADROOM: u64 = Bound::MOST_STRICT_BYTES / 2 / PAGE_BYTES as u64;

    /// Whether there is so little room that processes must be armed: a program could use up
    /// `HEADROOM` while it is being armed, and pass the limit.
    pub fn is_scarce(&self) -> bool {
        self.is_scarce_within(self.limit())
    }

    fn is_scarce_within(&self, limit: u64) -> bool {
        limit <= 2 * Self::HEADROOM || limit.saturating_sub(self.used()) < Self::HEADROOM
    }

    /// Whether a smaller size is aimed at than is promised, and there is room enough by the latter.
    pub fn has_room_but_for_aim(&self) -> bool {
        let promised = self.limit_of(self.promised());
        self.limit() < promised && !self.is_scarce_within(promised)
    }

    /// What is aimed at cannot be reached.
    pub fn refuse_aim(&self) {
        self.is_aim_refused.store(true, Relaxed);
    }

    /// Whether what is aimed at was refused since this was asked last.
    pub fn take_refusal(&self) -> bool {
        self.is_aim_refused.swap(false, Relaxed)
    }

    /// Pages that may still come in.
    pub fn free(&self) -> u64 {
        self.limit().saturating_sub(self.used() + self.claimed.load(Relaxed))
    }

    /// Claims room for `pages` that are about to come in if `beside` stay free, so that no two
    /// threads bring in pages by the same room. Whether there was as much; then they are to be
    /// given back when the pages have come, or do not.
    pub fn claim(&self, pages: u64, beside: u64) -> bool {
        let before = self.claimed.fetch_add(pages, AcqRel);
        let is_there = self.limit() >= self.used() + before + pages + beside;
        if !is_there {
            self.give_back(pages);
        }
        is_there
    }

    /// Claims room for as many of `most` pages as there is. Returns how many.
    pub fn claim_up_to(&self, most: u64) -> u64 {
        let mut claimed = 0;
        let more = |before: u64| {
            claimed = self.limit().saturating_sub(self.used() + before).min(most);
            Some(before + claimed)
        };
        // Cannot fail: the closure always returns a value.
        let _ = self.claimed.fetch_update(AcqRel, Acquire, more);
        claimed
    }

    /// Gives up a claim.
    pub fn give_back(&self, pages: u64) {
        self.claimed.fetch_sub(pages, Release);
    }

    /// Whether a fault for which there is no room may be served all the same: pages are above the
    /// limit, and by no more than half of what the bound allows.
    pub fn has_slack(&self) -> bool {
        self.used() < self.limit() + CLEAR_ALLOWANCE_BYTES / 2 / PAGE_BYTES as u64
    }

    /// Whether `stuck` pages, which cannot leave, and what no pager can hold are all that there is
    /// room for: then none comes of waiting.
    pub fn has_no_room_beside(&self, stuck: u64) -> bool {
        stuck + self.outside() + self.buffers >= self.limit()
    }

    /// Below this many free pages, pages are evicted until `high` are free.
    pub fn low(&self) -> u64 {
        (self.limit() / 32).clamp(8, 2048) + self.reserve()
    }

    /// Eviction stops when this many pages are free.
    pub fn high(&self) -> u64 {
        (self.limit() / 16).clamp(16, 4096) + self.reserve()
    }

    fn reserve(&self) -> u64 {
        let touched_unseen = self.reserve.load(Relaxed).max(self.untouched.load(Relaxed));
        touched_unseen.min(self.limit() / 4)
    }

    /// A process without an agent may touch so many pages more, which no fault tells of: they are
    /// kept free as those of [`Budget::expect`].
    pub fn allow(&self, pages: u64) {
        self.untouched.fetch_add(pages, Relaxed);
    }

    /// Sets what of that was not seen to be touched.
    pub fn set_untouched(&self, pages: u64) {
        self.untouched.store(pages, Relaxed);
    }

    /// Keeps `pages` free, up to a quarter of the limit: those that programs are expected to touch
    /// before the watcher's next look.
    pub fn expect(&self, pages: u64) {
        self.reserve.store(pages, Relaxed);
    }

    /// Below this many free pages, what programs are expected to touch before the next look may not
    /// fit.
    pub fn brink(&self) -> u64 {
        self.min() + (self.reserve.load(Relaxed) / 2).min(self.limit() / 8)
    }

    /// Whether the pages that programs may touch while one of them is being armed may not fit, so
    /// that all that grow must be stopped.
    pub fn may_overflow(&self) -> bool {
        let touched = if self.is_small() { 0 } else { Self::HEADROOM };
        self.free() < touched.max(self.reserve.load(Relaxed))
    }

    /// Whether the limit is one by which memory is held back before it is touched, as a rule.
    pub fn is_small(&self) -> bool {
        self.limit() <= 2 * Self::HEADROOM
    }

    /// Whether that may come to be while the watcher does what can wait. Not by a small limit: that
    /// is kept by announced calls, and forks copy pages that only a search finds.
    pub fn may_overflow_soon(&self) -> bool {
        !self.is_small() && self.free() < 2 * Self::HEADROOM.max(self.reserve.load(Relaxed))
    }

    /// Below this many free pages, a thread that brings a page in must make room first, from any
    /// space.
    pub fn min(&self) -> u64 {
        (self.limit() / 128).clamp(4, 512)
    }

    /// How many pages one eviction takes.
    pub fn batch(&self) -> usize {
        (self.limit() / 16).clamp(8, 64) as usize
    }

    /// The most pages of a space that stay for good because others read them where they cannot wait
    /// for a pager.
    pub fn most_kept(&self) -> u64 {
        self.limit() / 32
    }

    /// Counts `pages` as tracked.
    pub fn track(&self, pages: u64) {
        self.tracked.fetch_add(pages, Relaxed);
        raise(&self.recent, self.used());
    }

    /// Counts `pages` as tracked that counted as untracked.
    pub fn adopt(&self, pages: u64) {
        let less = |untracked: u64| Some(untracked.saturating_sub(pages));
        // Cannot fail: the closure always returns a value.
        let _ = self.untracked.fetch_update(Relaxed, Relaxed, less);
        self.track(pages);
    }

    /// Counts `pages` as gone from the Clear.
    pub fn untrack(&self, pages: u64) {
        let before = self.tracked.fetch_sub(pages, Relaxed);
        debug_assert!(before >= pages, "the Clear's count fell below zero");
    }

    /// Sets the pages that the watcher found resident beyond the tracked ones: `untracked`, which
    /// the pager will track, and those that it cannot: `copies` of file pages, and the `agents`'
    /// own. The latter two cannot be evicted; at most a quarter of the limit is counted for the
    /// first of them, and half of it for the second, since programs need the rest to make progress.
    pub fn set_found(&self, untracked: u64, copies: u64, agents: u64) {
        // In this order: pages that no pager can track counted as untracked before, and must not
        // count as free in between.
        self.copies.store(copies.min(self.limit() / 4), Relaxed);
        self.agents.store(agents.min(self.limit() / 2), Relaxed);
        self.untracked.store(untracked, Relaxed);
        raise(&self.recent, self.used());
    }

    /// The most pages used since [`Budget::judge_peak`] last judged. What a thread did before it
    /// used them is seen by a caller that sees this.
    pub fn recent(&self) -> u64 {
        self.recent.load(Acquire)
    }

    /// Whether `recent`, a value of [`Budget::recent`], is above the limit and above the peak.
    pub fn seems_exceeded(&self, recent: u64) -> bool {
        let limit = self.limit_of(self.promised());
        recent > limit.max(self.peak.load(Relaxed))
    }

    /// Updates the peak with `recent`, a value of [`Budget::recent`]; if more was used meanwhile,
    /// that is left to be judged. The counts may count a page that forked processes share once for
    /// each; `confirmed`, all pages by the kernel's count now, has it once. Above the limit, the
    /// peak rises only as far as that confirms.
    pub fn judge_peak(&self, recent: u64, confirmed: Option<u64>) {
        // Fails if more was used meanwhile.
        let _ = self.recent.compare_exchange(recent, 0, Relaxed, Relaxed);
        let limit = || self.limit_of(self.promised());
        let most = confirmed.map_or(u64::MAX, |pages| pages.max(limit()));
        raise(&self.peak, recent.min(most));
    }

    /// Whether so many pages that processes have are within the size that is promised.
    pub fn allows(&self, plaintext: u64) -> bool {
        self.excess(plaintext) == 0
    }

    /// By how many pages more than is promised processes have `plaintext`.
    pub fn excess(&self, plaintext: u64) -> u64 {
        self.confirmed(plaintext).saturating_sub(self.limit_of(self.promised()))
    }

    /// All pages of plaintext if processes have `plaintext`.
    pub fn confirmed(&self, plaintext: u64) -> u64 {
        plaintext + self.buffers
    }

    /// Copies of file pages, as far as they count.
    pub fn copies(&self) -> u64 {
        self.copies.load(Relaxed)
    }

    /// So many copies of file pages are tracked from now on.
    pub fn copies_are_tracked(&self, pages: u64) {
        // Cannot fail: the closure always returns a value.
        let _ = self.copies.fetch_update(Relaxed, Relaxed, |all| Some(all.saturating_sub(pages)));
    }

    /// Pages that no pager can track, as far as they count.
    fn outside(&self) -> u64 {
        self.copies() + self.agents.load(Relaxed)
    }

    /// Untracked pages, as the watcher last set them.
    pub fn untracked(&self) -> u64 {
        self.untracked.load(Relaxed)
    }

    /// Counts `added` sealed pages and `dropped` released ciphertexts.
    pub fn sealed(&self, added: u64, dropped: u64) {
        self.sealed.fetch_add(added as i64 - dropped as i64, Relaxed);
    }

    /// A count that fell below zero, by a defect of ours, must not become a limit without end.
    fn sealed_pages(&self) -> u64 {
        self.sealed.load(Relaxed).max(0) as u64
    }

    /// Pages in the Clear and sealed together: what the run protects, if `stored` ciphertexts
    /// exist. (Each process that shares a ciphertext after a fork has it sealed.)
    pub fn protected(&self, stored: u64) -> u64 {
        self.plaintext() + self.sealed_pages().min(stored)
    }

    /// Plaintext of programs in the Clear, in pages.
    pub fn plaintext(&self) -> u64 {
        self.used().saturating_sub(self.buffers + self.outside())
    }
}

/// Raises a peak. Every fault reads the bound several times: a peak that does not rise is only
/// read, so that its cache line stays shared between the processors.
fn raise(peak: &AtomicU64, value: u64) {
    if value > peak.load(Relaxed) {
        peak.fetch_max(value, Release);
    }
}

#[cfg(test)]
mod tests;
