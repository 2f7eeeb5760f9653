//! How long pages stay clear, from looks at which are.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A page: its process and its address.
pub type PageId = (i32, u64);

/// Follows pages. A stay is the time from the first look that has a page to the first that has it
/// no more: it is right to within the time between two looks. A page that left and came back
/// between two of them seems to have stayed.
#[derive(Default)]
pub struct Stays {
    looks: u64,
    clear: HashMap<PageId, Stay>,
    /// Whole stays: how many of each length, in milliseconds.
    whole: BTreeMap<u64, u64>,
    /// The same of stays that began before the first look.
    cut: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy)]
struct Stay {
    begun: Duration,
    /// There at the first look already.
    is_cut: bool,
    /// The last look that had it.
    seen: u64,
}

impl Stays {
    /// Takes a look at time `now`.
    pub fn look(&mut self, now: Duration, clear: impl IntoIterator<Item = PageId>) {
        self.looks += 1;
        let new = Stay { begun: now, is_cut: self.looks == 1, seen: self.looks };
        for page in clear {
            self.clear.entry(page).or_insert(new).seen = self.looks;
        }
        let (looks, whole, cut) = (self.looks, &mut self.whole, &mut self.cut);
        self.clear.retain(|_, stay| {
            let stays = stay.seen == looks;
            if !stays {
                let lengths = if stay.is_cut { &mut *cut } else { &mut *whole };
                *lengths.entry(length_ms(*stay, now)).or_default() += 1;
            }
            stays
        });
    }

    /// What was seen until `end`. Pages that are still clear are cut off there.
    pub fn finish(mut self, end: Duration) -> (Lengths, Lengths) {
        for stay in self.clear.values() {
            *self.cut.entry(length_ms(*stay, end)).or_default() += 1;
        }
        (Lengths(self.whole), Lengths(self.cut))
    }
}

fn length_ms(stay: Stay, end: Duration) -> u64 {
    end.saturating_sub(stay.begun).as_millis() as u64
}

/// Lengths of stays, in milliseconds, and how many have each.
pub struct Lengths(BTreeMap<u64, u64>);

impl Lengths {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The least length that so many in a hundred do not exceed (the nearest rank); none if there
    /// are no stays.
    pub fn percentile_ms(&self, percent: u64) -> Option<u64> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut below = 0;
        self.0.iter().find_map(|(length, count)| {
            below += count;
            (below >= rank).then_some(*length)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Page 1 is there at the first two looks, 2 from the second to the fourth, 3 at the
    /// third and again at the fifth, 4 at all, and 5 from the fourth on.
    #[test]
    fn stays_are_whole_or_cut_off() {
        let mut stays = Stays::default();
        let looks = [&[1, 4][..], &[1, 2, 4], &[2, 3, 4], &[2, 4, 5], &[3, 4, 5], &[4, 5]];
        for (number, look) in looks.into_iter().enumerate() {
            stays.look(ms(100 * number as u64), look.iter().map(|page| (9, *page)));
        }
        let (whole, cut) = stays.finish(ms(550));
        // 2: from 100 to 400. 3: from 200 to 300, and from 400 to 500.
        assert_eq!(whole.0, [(100, 2), (300, 1)].into());
        // 1: from before the beginning to 200. 4: from before to after. 5: from 300 on.
        assert_eq!(cut.0, [(200, 1), (250, 1), (550, 1)].into());
    }

    #[test]
    fn the_same_address_in_another_process_is_another_page() {
        let mut stays = Stays::default();
        stays.look(ms(0), []);
        stays.look(ms(100), [(1, 7)]);
        stays.look(ms(200), [(2, 7)]);
        stays.look(ms(300), []);
        let (whole, cut) = stays.finish(ms(300));
        assert_eq!((whole.0, cut.count()), ([(100, 2)].into(), 0));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        // 100 stays: 50 of 1 ms, 40 of 2, 9 of 3, one of 4.
        let lengths = Lengths([(1, 50), (2, 40), (3, 9), (4, 1)].into());
        let percentiles = [1, 50, 51, 90, 91, 99, 100].map(|p| lengths.percentile_ms(p));
        assert_eq!(percentiles, [1, 1, 2, 2, 3, 3, 4].map(Some));
        // Of three, half are two.
        let three = Lengths([(10, 1), (20, 1), (30, 1)].into());
        assert_eq!(three.percentile_ms(50), Some(20));
        assert_eq!(Lengths([].into()).percentile_ms(50), None);
    }
}
