//! How the keeper's threads spend their time: sums by phase, read from the processor's time-stamp
//! counter whenever a thread changes from one phase to the next.
//!
//! Each thread writes to its own memory, and a change of phase (a border) costs some ten
//! nanoseconds: less than 1 % of a miss (`casemate bench pager` prints both).

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::sys::mutex::Mutex;

macro_rules! phases {
    ($($(#[doc = $doc:literal])* $variant:ident $field:ident;)*) => {
        /// What a thread of the keeper may be doing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Phase { $($(#[doc = $doc])* $variant,)* }

        const PHASES: usize = [$(Phase::$variant),*].len();

        /// Nanoseconds over all threads that serve faults, by what they were doing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Profile {
            $($(#[doc = $doc])* pub $field: f64,)*
            /// How often a thread changed from one phase to the next.
            pub borders: u64,
        }

        impl Profile {
            fn of(ns: impl Fn(Phase) -> f64, borders: u64) -> Self {
                Profile { $($field: ns(Phase::$variant),)* borders }
            }
        }
    };
}

phases! {
    /// Asleep until a fault comes; the program runs.
    Idle idle_ns;
    /// Waiting for the lock of the space.
    Lock lock_ns;
    /// Reading messages off the descriptor.
    Read read_ns;
    /// Mirroring fork, mremap, madvise and munmap.
    Events events_ns;
    /// The pager's own lists: queue, maps, read-ahead, budget.
    Lists lists_ns;
    /// Page directory: finding and verifying records.
    Lookup lookup_ns;
    /// Copying ciphertext out of the store.
    Show show_ns;
    /// Decrypting and verifying.
    Open open_ns;
    /// `UFFDIO_COPY`, `UFFDIO_ZEROPAGE`.
    Fill fill_ns;
    /// Page directory and store: dropping records that are no longer current.
    Forget forget_ns;
    /// `UFFDIO_WRITEPROTECT`: lifting the protection of a page that is written.
    Unprotect unprotect_ns;
    /// `UFFDIO_WAKE`, and the program on this CPU, which runs before it returns.
    Wake wake_ns;
    /// Evicting: choosing pages, and waiting for events to settle.
    Choose choose_ns;
    /// Evicting: from the request to the agent until its answer.
    Agent agent_ns;
    /// Evicting: copying out of the mailbox, and wiping it.
    Take take_ns;
    /// Evicting: looking whether a page is all zero.
    Zero zero_ns;
    /// Evicting: encrypting.
    Seal seal_ns;
    /// Evicting: a place in the store, and the copy to it.
    Store store_ns;
    /// Evicting: recording in the page directory.
    Record record_ns;
}

/// The sums of one thread, which only that thread writes.
#[repr(align(128))]
#[derive(Default)]
struct Account {
    ticks: [AtomicU64; PHASES],
    borders: AtomicU64,
}

thread_local! {
    static ACCOUNT: Cell<Option<&'static Account>> = const { Cell::new(None) };
    static SINCE: Cell<u64> = const { Cell::new(0) };
}

/// The accounts of all threads that joined.
pub(crate) struct Profiler {
    accounts: Mutex<Vec<&'static Account>>,
    started: Instant,
    started_ticks: u64,
}

impl Profiler {
    pub fn new() -> Self {
        let (started, started_ticks) = (Instant::now(), now_ticks());
        Profiler { accounts: Mutex::new(Vec::new()), started, started_ticks }
    }

    /// Starts measuring the calling thread. (The account is never freed: these threads live as long
    /// as the process.)
    pub fn join(&self) {
        let account: &'static Account = Box::leak(Box::default());
        self.accounts.lock().push(account);
        SINCE.set(now_ticks());
        ACCOUNT.set(Some(account));
    }

    /// The sums so far.
    pub fn sum(&self) -> Profile {
        let ticks = now_ticks().saturating_sub(self.started_ticks).max(1);
        let ns_per_tick = self.started.elapsed().as_nanos() as f64 / ticks as f64;
        let accounts = self.accounts.lock();
        let sum = |of: &dyn Fn(&Account) -> u64| accounts.iter().map(|a| of(a)).sum::<u64>();
        let ns = |phase: Phase| {
            let ticks = sum(&|account| account.ticks[phase as usize].load(Relaxed));
            (ticks as f64 * ns_per_tick).round()
        };
        Profile::of(ns, sum(&|account| account.borders.load(Relaxed)))
    }
}

/// Adds the time since the calling thread's last border to `phase`. Threads without an account are
/// not measured.
#[inline]
pub(crate) fn ended(phase: Phase) {
    let Some(account) = ACCOUNT.get() else { return };
    let now = now_ticks();
    let ticks = now.saturating_sub(SINCE.replace(now));
    // Only this thread writes here, so no locked instruction is needed.
    let add = |to: &AtomicU64, n: u64| to.store(to.load(Relaxed) + n, Relaxed);
    add(&account.ticks[phase as usize], ticks);
    add(&account.borders, 1);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn now_ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction; it reads a counter and nothing else.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_goes_where_it_was_spent() {
        let profiler = Profiler::new();
        ended(Phase::Seal);
        assert_eq!(profiler.sum().borders, 0, "a thread that did not join is not measured");
        profiler.join();
        std::thread::sleep(Duration::from_millis(30));
        let begun = Instant::now();
        ended(Phase::Idle);
        ended(Phase::Open);
        let both_ns = begun.elapsed().as_nanos() as f64;
        let sum = profiler.sum();
        assert!((29e6..3e9).contains(&sum.idle_ns), "{sum:?}");
        assert!(sum.open_ns < 1.5 * both_ns + 1e4, "{both_ns} around {sum:?}");
        assert_eq!((sum.borders, sum.seal_ns), (2, 0.0));
    }

    /// Beside a look at the counter in the same moment: a slow machine is slow at both.
    #[test]
    fn a_border_costs_a_few_looks_at_the_counter() {
        let profiler = Profiler::new();
        profiler.join();
        let look = least(|| _ = std::hint::black_box(now_ticks()));
        let border = least(|| ended(Phase::Lists));
        let most = if cfg!(debug_assertions) { 40 } else { 4 };
        assert!(border < most * look, "{border:?} for borders, {look:?} for looks");
    }

    /// The least time of several rows.
    fn least(mut work: impl FnMut()) -> Duration {
        let row = |_| {
            let started = Instant::now();
            (0..10_000).for_each(|_| work());
            started.elapsed()
        };
        (0..200).map(row).min().unwrap_or_default()
    }
}
