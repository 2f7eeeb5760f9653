//! What a run must protect at least (`--require-protected`): judged at each look of the watcher, by
//! the counts that the summary gives.

use super::family::Unprotected;
use crate::config::PAGE_BYTES;
use crate::outcome::Ending;
use std::time::Duration;

/// Less than this outside the protection is not judged: every program has its own text and its
/// libraries there before it has a heap (Python 7 MiB).
const LEAST_JUDGED_PAGES: u64 = (32 << 20) / PAGE_BYTES as u64;
/// The longest time between two looks: shared memory is touched without a fault that the keeper
/// sees.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// The time after which too small a share is looked at again.
const CONFIRMATION_PAUSE: Duration = Duration::from_millis(1);

/// How much of a run's memory is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Plaintext of the Clear, and what exists only as ciphertext: the most so far. What a program
    /// gives back did not lose its protection, and many give back their heap before the rest.
    protected_pages: u64,
    /// As [`Unprotected::pages`], now.
    unprotected_pages: u64,
}

impl Share {
    /// That of a run in which the budget counted `most_protected_pages`.
    pub fn of(most_protected_pages: u64, unprotected: Unprotected) -> Self {
        let seems = unprotected.seems_protected_pages;
        Share {
            protected_pages: most_protected_pages.saturating_sub(seems),
            unprotected_pages: unprotected.pages,
        }
    }

    fn all_pages(self) -> u64 {
        self.protected_pages + self.unprotected_pages
    }

    /// Whether it is `percent` or more, or too little is outside for that to be judged.
    fn suffices(self, percent: u8) -> bool {
        self.unprotected_pages < LEAST_JUDGED_PAGES
            || self.protected_pages * 100 >= u64::from(percent) * self.all_pages()
    }

    /// `49.9 %`, rounded down, so that what is below a whole number looks it.
    fn in_words(self) -> String {
        let permille = self.protected_pages * 1000 / self.all_pages().max(1);
        format!("{}.{} %", permille / 10, permille % 10)
    }
}

/// The requirement, and how the last look came out.
pub(super) struct Required {
    percent: u8,
    was_below: bool,
}

impl Required {
    /// That of `percent`; none for 0.
    pub fn of(percent: u8) -> Option<Self> {
        (percent > 0).then_some(Required { percent, was_below: false })
    }

    /// The time until the next look.
    pub fn wait(&self) -> Duration {
        if self.was_below { CONFIRMATION_PAUSE } else { LONGEST_PAUSE }
    }

    /// How the run ends, if it does: because the share is unknown, or was below the requirement at
    /// two looks in a row. (Handlers move pages while they are counted: one look may miss some.)
    pub fn judge(&mut self, share: Result<Share, String>) -> Option<Ending> {
        let share = match share {
            Ok(share) => share,
            Err(why) => return Some(unknown(&why)),
        };
        let is_below = !share.suffices(self.percent);
        let was_below = std::mem::replace(&mut self.was_below, is_below);
        (is_below && was_below).then(|| Ending::TooLittleProtected {
            what: format!(
                "only {} of the run's memory is protected; --require-protected asks for {} %",
                share.in_words(),
                self.percent
            ),
            protected_bytes: share.protected_pages * PAGE_BYTES as u64,
            unprotected_bytes: share.unprotected_pages * PAGE_BYTES as u64,
        })
    }
}

fn unknown(why: &str) -> Ending {
    Ending::KeeperFailed {
        what: format!(
            "what share of the memory is protected (--require-protected) is unknown: {why}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(protected_pages: u64, unprotected_pages: u64) -> Result<Share, String> {
        Ok(Share { protected_pages, unprotected_pages })
    }

    /// Two looks with the same share.
    fn ends(percent: u8, protected_pages: u64, unprotected_pages: u64) -> Option<Ending> {
        let mut required = Required::of(percent).expect("a requirement");
        let looks = [0, 1].map(|_| required.judge(share(protected_pages, unprotected_pages)));
        assert_eq!(looks[0], None, "a single look is not trusted");
        looks.into_iter().flatten().next()
    }

    #[test]
    fn a_run_ends_just_below_the_share_and_not_at_it() {
        // 10,000 pages (39 MiB) outside.
        assert_eq!(ends(50, 10_000, 10_000), None);
        assert!(ends(50, 9_999, 10_000).is_some());
        assert_eq!(ends(20, 2_500, 10_000), None);
        assert!(ends(20, 2_499, 10_000).is_some());
        assert_eq!(ends(90, 90_000, 10_000), None);
        assert!(ends(90, 89_999, 10_000).is_some());
        assert!(ends(100, 1 << 40, 10_000).is_some());
        assert!(ends(1, 0, 10_000).is_some());
    }

    /// The budget counts its plaintext as the Clear's, which nothing protects.
    #[test]
    fn memory_of_a_process_that_runs_unprotected_is_not_protected() {
        let unprotected =
            Unprotected { pages: 12_000, anonymous_pages: 10_000, seems_protected_pages: 9_000 };
        assert_eq!(Share::of(10_000, unprotected), share(1_000, 12_000).expect("a share"));
    }

    #[test]
    fn less_than_32_mib_outside_is_not_judged() {
        assert_eq!(ends(100, 0, 8191), None);
        assert!(ends(100, 0, 8192).is_some());
    }

    #[test]
    fn a_look_that_suffices_is_between_two_that_do_not() {
        let mut required = Required::of(50).expect("a requirement");
        for protected in [9_999, 10_000, 9_999] {
            assert_eq!(required.judge(share(protected, 10_000)), None);
        }
        assert_eq!(required.wait(), CONFIRMATION_PAUSE);
        assert!(required.judge(share(9_999, 10_000)).is_some());
    }

    #[test]
    fn the_sentence_has_the_share_rounded_down_and_the_amounts() {
        let Some(ending) = ends(50, 9_999, 10_000) else { panic!("the run ends") };
        let Ending::TooLittleProtected { what, protected_bytes, unprotected_bytes } = ending else {
            panic!("{ending:?}");
        };
        assert!(what.contains("only 49.9 % of") && what.contains("asks for 50 %"), "{what}");
        assert_eq!((protected_bytes, unprotected_bytes), (9_999 * 4096, 10_000 * 4096));
    }

    #[test]
    fn an_unknown_share_ends_the_run_and_0_requires_nothing() {
        let mut required = Required::of(1).expect("a requirement");
        let ending = required.judge(Err("too many open files".to_owned()));
        let Some(Ending::KeeperFailed { what }) = ending else { panic!("{ending:?}") };
        assert!(what.contains("unknown: too many open files"), "{what}");
        assert!(Required::of(0).is_none());
    }
}
