//! The grace list: pages that have left the program, in plaintext still.

use super::{Vpn, VpnMap};
use crate::pager::plain::Plain;
use std::collections::VecDeque;

/// A page that was taken out of the program and not encrypted yet.
#[derive(Debug)]
pub struct GracePage {
    /// Its contents.
    pub plain: Plain,
    /// Order of arrival.
    pub stamp: u64,
}

/// Pages out of the program, in plaintext still: the second chance.
#[derive(Default)]
pub struct Grace {
    /// By their number.
    pub pages: VpnMap<GracePage>,
    /// In order of arrival; entries of another stamp than their page are stale.
    queue: VecDeque<(Vpn, u64)>,
    next_stamp: u64,
}

impl Grace {
    /// Puts a page on the list.
    pub fn spare(&mut self, vpn: Vpn, plain: Plain) {
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        self.pages.insert(vpn, GracePage { plain, stamp });
        self.queue.push_back((vpn, stamp));
    }

    /// The stamp of the page that came last.
    pub fn last_stamp(&self) -> u64 {
        self.next_stamp
    }

    /// How many pages came with this stamp or before.
    pub fn count_until(&self, stamp: u64) -> usize {
        self.pages.values().filter(|page| page.stamp <= stamp).count()
    }

    /// Takes the page that has been on the list longest off it.
    pub fn take_oldest(&mut self) -> Option<(Vpn, Plain)> {
        loop {
            let (vpn, stamp) = self.queue.pop_front()?;
            if self.pages.get(&vpn).is_some_and(|page| page.stamp == stamp) {
                return self.pages.remove(&vpn).map(|page| (vpn, page.plain));
            }
        }
    }
}
