//! The Clear's budget and its watermarks (Cryptkeeper sections II, IV.B and VI.B).

mod sizes;

use crate::config::{Bound, ClearSize, PAGE_BYTES};
use parking_lot::Mutex;
use sizes::AtomicSize;
pub use sizes::Kept;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Pages of plaintext in use, against the bound. All threads change the counts.
#[derive(Debug)]
pub struct Budget {
    /// The size that room is made by.
    aim: AtomicSize,
    /// The size that the bound is judged by.
    promised: AtomicSize,
    /// How sizes were kept that were promised before.
    before: Mutex<Option<Kept>>,
    /// Pages that the pager brought in or adopted, and pages of the grace list.
    tracked: AtomicU64,
    /// Anonymous pages that the pager does not track yet, of processes or parts of them.
    untracked: AtomicU64,
    /// Anonymous pages that no pager can track: copies of file pages, and the agents' own.
    outside: AtomicU64,
    /// Pages that exist only as ciphertext.
    sealed: AtomicI64,
    /// The keeper's own plaintext buffers, in pages.
    buffers: u64,
    /// Pages to keep free for what programs touch before the watcher's next look.
    reserve: AtomicU64,
    /// The most pages used since [`Budget::judge_peak`] was last called.
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
            promised: AtomicSize::new(size),
            before: Mutex::default(),
            tracked: AtomicU64::new(0),
            untracked: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            sealed: AtomicI64::new(0),
            buffers,
            reserve: AtomicU64::new(0),
            recent: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit_peak: AtomicU64::new(0),
        }
    }

    /// Pages of plaintext now.
    pub fn used(&self) -> u64 {
        self.tracked.load(Relaxed)
            + self.untracked.load(Relaxed)
            + self.outside.load(Relaxed)
            + self.buffers
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
        self.limit() <= 2 * Self::HEADROOM || self.free() < Self::HEADROOM
    }

    /// Pages that may still come in.
    pub fn free(&self) -> u64 {
        self.limit().saturating_sub(self.used())
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
        self.reserve.load(Relaxed).min(self.limit() / 4)
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
    /// the pager will track, and `outside`, which it cannot. Pages outside cannot be evicted; at
    /// most a quarter of the limit is counted for them, since programs need the rest to make
    /// progress.
    pub fn set_found(&self, untracked: u64, outside: u64) {
        // In this order: pages that are outside now counted as untracked before, and must not count
        // as free in between.
        self.outside.store(outside.min(self.limit() / 4), Relaxed);
        self.untracked.store(untracked, Relaxed);
        raise(&self.recent, self.used());
    }

    /// Whether the counted plaintext was above the limit, and above the peak, since
    /// [`Budget::judge_peak`] was last called.
    pub fn seems_exceeded(&self) -> bool {
        let limit = self.limit_of(self.promised());
        self.recent.load(Relaxed) > limit.max(self.peak.load(Relaxed))
    }

    /// Updates the peak with the most pages used since the last call. The counts may count a page
    /// that forked processes share once for each; `resident`, the kernel's count of pages in the
    /// processes now, counts it once. Above the limit, the peak rises only as far as `resident`
    /// confirms.
    pub fn judge_peak(&self, resident: Option<u64>) {
        let recent = self.recent.swap(0, Relaxed);
        let most = resident.map_or(u64::MAX, |resident| {
            let limit = self.limit_of(self.promised());
            limit.max(resident + self.outside.load(Relaxed) + self.buffers)
        });
        raise(&self.peak, recent.min(most));
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

    /// Pages in the Clear and sealed together: what the run protects.
    pub fn protected(&self) -> u64 {
        let outside = self.outside.load(Relaxed);
        (self.used() + self.sealed_pages()).saturating_sub(self.buffers + outside)
    }
}

/// Raises a peak. Every fault reads the bound several times: a peak that does not rise is only
/// read, so that its cache line stays shared between the processors.
fn raise(peak: &AtomicU64, value: u64) {
    if value > peak.load(Relaxed) {
        peak.fetch_max(value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_below_zero_is_no_limit_without_end() {
        let budget = Budget::new(ClearSize::percent(25), 0);
        budget.track(1000);
        budget.sealed(0, 2000);
        assert_eq!((budget.limit(), budget.protected()), (ClearSize::FLOOR_BYTES / 4096, 1000));
    }

    #[test]
    fn a_percentage_follows_what_is_used() {
        let budget = Budget::new(ClearSize::percent(25), 0);
        assert_eq!(budget.limit(), ClearSize::FLOOR_BYTES / 4096);
        budget.track(1000);
        budget.sealed(7000, 0);
        assert_eq!(budget.limit(), 2000);
        assert_eq!(budget.free(), 1000);
    }

    #[test]
    fn what_forks_share_is_used_by_each_and_no_peak() {
        let budget = Budget::new(ClearSize::Bytes(8 << 20), 10);
        budget.track(2038);
        assert!(!budget.seems_exceeded());
        budget.set_found(1962, 0);
        assert!(budget.seems_exceeded());
        budget.judge_peak(Some(1000));
        assert_eq!((budget.used(), budget.free(), budget.kept().peak), (4010, 0, 2048));
        // The kernel confirms a use above the limit.
        budget.set_found(1963, 0);
        assert!(budget.seems_exceeded());
        budget.judge_peak(Some(3990));
        assert_eq!(budget.kept().peak, 4000);
        assert!(!budget.seems_exceeded());
    }

    #[test]
    fn a_peak_counts_where_the_kernel_was_not_asked() {
        let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
        budget.track(3000);
        budget.untrack(2900);
        assert_eq!(budget.kept().peak, 3000);
        budget.judge_peak(None);
        assert_eq!(budget.kept().peak, 3000);
    }

    #[test]
    fn what_cannot_be_evicted_leaves_room_to_work_in() {
        let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
        budget.set_found(0, 100);
        assert_eq!(budget.free(), 2048 - 100);
        assert_eq!(budget.protected(), 0);
        budget.set_found(0, 2000);
        assert_eq!(budget.free(), 2048 - 512);
    }

    #[test]
    fn the_default_share_does_not_fall_below_its_floor() {
        let budget = Budget::new(ClearSize::default_for(1 << 30), 0);
        assert_eq!(budget.limit(), (64 << 20) / 4096);
        budget.track(4 * (65 << 20) / 4096);
        assert_eq!(budget.limit(), (65 << 20) / 4096);
    }

    /// 64 MiB with 10,000 pages in use; 8 MiB are 2048.
    fn shrinking() -> Budget {
        let budget = Budget::new(ClearSize::Bytes(64 << 20), 0);
        budget.track(10_000);
        budget.aim_at(2048);
        budget
    }

    #[test]
    fn room_is_made_for_a_smaller_clear_before_it_is_promised() {
        let budget = shrinking();
        assert_eq!((budget.limit(), budget.free()), (2048, 0));
        assert_eq!(budget.promised(), ClearSize::Bytes(64 << 20));
        assert!(!budget.seems_exceeded(), "16,384 pages are promised still");
        budget.untrack(7953);
        budget.promise(ClearSize::Bytes(8 << 20));
        assert_eq!((budget.limit(), budget.free()), (2048, 1));
        let wanted =
            Kept { least: 2048, greatest: 16_384, last: 2048, changes: 1, peak: 10_000, excess: 0 };
        assert_eq!(budget.kept(), wanted);
    }

    #[test]
    fn a_smaller_clear_is_judged_from_when_it_is_promised() {
        let budget = shrinking();
        budget.untrack(7952);
        budget.promise(ClearSize::Bytes(8 << 20));
        budget.judge_peak(None);
        assert!(!budget.seems_exceeded());
        assert_eq!(budget.kept().excess, 0);
        budget.track(1);
        assert!(budget.seems_exceeded());
        budget.judge_peak(None);
        assert_eq!(budget.kept().excess, 1);
        // A larger one makes that no better.
        budget.promise(ClearSize::Bytes(64 << 20));
        assert_eq!(budget.kept().excess, 1);
        assert_eq!(budget.free(), 16_384 - 2049);
    }

    #[test]
    fn a_size_that_was_not_reached_is_given_up() {
        let budget = shrinking();
        budget.aim_as_promised();
        assert_eq!(budget.free(), 6384);
        assert_eq!(budget.kept().changes, 0);
    }

    #[test]
    fn the_bound_of_a_percentage_is_its_largest() {
        let budget = Budget::new(ClearSize::percent(50), 0);
        budget.track(4000);
        budget.sealed(4000, 0);
        assert_eq!(budget.limit(), 4000);
        // What is given back makes the limit smaller than what it allowed.
        budget.sealed(0, 4000);
        assert_eq!(budget.limit(), 2000);
        budget.judge_peak(None);
        assert_eq!((budget.kept().last, budget.kept().excess), (4000, 0));
    }

    #[test]
    fn watermarks_are_in_order_for_every_size() {
        for bytes in [0, 1 << 21, 1 << 24, 1 << 30, 1 << 40] {
            let b = Budget::new(ClearSize::Bytes(bytes), 0);
            assert!(b.min() < b.low() && b.low() < b.high() && b.high() < b.limit());
            assert!(b.batch() as u64 <= b.limit() / 8);
            b.expect(u64::MAX);
            assert!(b.low() < b.high() && b.high() <= b.limit() / 2);
        }
    }
}
