//! The global page counter (AISE, section 4.3): where every LPID comes from.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::violation::Violation;

/// A logical page identifier: the address-independent part of a seed (AISE, section 4.3).
///
/// Casemate takes a fresh one for every encryption, so LPID and seed are one thing, and the minor
/// counters of the paper's Figure 3 are not needed at page granularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpid(pub u64);

impl fmt::Display for Lpid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Hands out logical page identifiers, each once. It never wraps.
///
/// The paper keeps the counter in non-volatile memory, because its key outlives a reboot. Here
/// the key dies with the keeper, so a counter that starts at 1 beside a fresh key is enough;
/// a key that is kept must be kept together with its counter.
pub struct GlobalPageCounter {
    next: AtomicU64,
}

impl GlobalPageCounter {
    /// A counter beside a fresh key. The first LPID is 1.
    pub const fn new() -> Self {
        Self::starting_at(Lpid(1))
    }

    /// A counter that goes on where an earlier one under the same key stopped.
    pub const fn starting_at(first: Lpid) -> Self {
        Self { next: AtomicU64::new(first.0) }
    }

    /// The next LPID. At the end of the 64-bit range it fails, and goes on failing.
    #[allow(clippy::should_implement_trait)] // an iterator could be cloned; this must not be
    pub fn next(&self) -> Result<Lpid, Violation> {
        // Relaxed is enough: uniqueness needs atomicity of this one variable, not an order of
        // others.
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1))
            .map(Lpid)
            .map_err(|_| Violation::SeedsExhausted)
    }

    /// The LPID that [`next`](Self::next) gives if no other thread takes it first.
    pub fn upcoming(&self) -> Lpid {
        Lpid(self.next.load(Ordering::Relaxed))
    }

    /// Passes over all LPIDs before this one.
    pub fn skip_to(&self, lpid: Lpid) {
        self.next.fetch_max(lpid.0, Ordering::Relaxed);
    }

    /// How many LPIDs were taken or passed over since the counter started at 1.
    pub fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed).saturating_sub(1)
    }
}

impl Default for GlobalPageCounter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_one_and_counts() {
        let gpc = GlobalPageCounter::new();
        assert_eq!([gpc.next(), gpc.next()], [Ok(Lpid(1)), Ok(Lpid(2))]);
        assert_eq!(gpc.taken(), 2);
    }

    #[test]
    fn never_goes_back() {
        let gpc = GlobalPageCounter::new();
        gpc.skip_to(Lpid(100));
        gpc.skip_to(Lpid(50));
        assert_eq!((gpc.upcoming(), gpc.next()), (Lpid(100), Ok(Lpid(100))));
    }

    #[test]
    fn fails_at_the_end_and_stays_there() {
        let gpc = GlobalPageCounter::starting_at(Lpid(u64::MAX - 1));
        assert_eq!(gpc.next(), Ok(Lpid(u64::MAX - 1)));
        assert_eq!(gpc.next(), Err(Violation::SeedsExhausted));
        assert_eq!(gpc.next(), Err(Violation::SeedsExhausted));
    }
}
