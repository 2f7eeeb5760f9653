//! The pages of a space that are in the Clear, and the order in which they leave it.

use super::{CleanBet, Vpn};
use crate::pager::clear_pages::ClearPages;
use crate::pager::shared::ShareId;
use crate::ranges::PageRanges;
use crate::sys::clock::Instant;
use crate::sys::procfs::{self, CurrentCall};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How long a page that was pinned stays before it is tried again to take it out: to take it aside
/// and put it back takes some ten microseconds, and a program may have thousands pinned for good.
const PINNED_PAUSE: Duration = Duration::from_millis(250);
/// How many are tried again first, and for how long none is after a refusal: together a twentieth
/// of the time.
const ASKED_FIRST: usize = 16;
const PAUSE_BETWEEN: Duration = Duration::from_millis(10);
/// The same where room is short, and pages are tried again however recently they were pinned:
/// meanwhile a thread can bring in some ten others.
const PAUSE_WHEN_SHORT: Duration = Duration::from_micros(200);
/// The most that are tried again at a time.
const MOST_ASKED_AGAIN: usize = 64;

/// A page in the Clear that the pager knows of.
#[derive(Debug, Clone, Copy)]
pub struct ClearPage {
    /// Write-protected since it came in, so its record and ciphertext are still current.
    pub clean: bool,
    /// Came back once already: spared the next time it is its turn (second chance).
    pub referenced: bool,
    /// Of the queue entry that stands for it; older entries are stale.
    pub stamp: u32,
    /// One page of RAM with those of other spaces, since a fork.
    pub shared: Option<ShareId>,
    /// Write-protected because of a fork.
    pub protected: bool,
}

/// Pages that stay for a thread's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The thread.
    pub tid: i32,
    /// The process that its call ends: the kernel stores for each of that one's threads.
    pub ending: Option<i32>,
    /// The pages, in order.
    pub pages: Vec<Vpn>,
}

/// A page that was pinned when it was to leave.
struct Pinned {
    /// When that was.
    since: Instant,
    vpn: Vpn,
    /// That of the page since then.
    stamp: u32,
}

impl Pinned {
    /// Whether it stays for that reason still, as far as is known.
    fn is_so(&self, pages: &ClearPages, stuck: &PageRanges) -> bool {
        let page = pages.get(&self.vpn);
        page.is_some_and(|page| page.stamp == self.stamp) && stuck.contains(self.vpn)
    }
}

/// Calls by which the kernel stores to memory without waiting.
const STORING: [i64; 5] =
    [libc::SYS_exit, libc::SYS_exit_group, libc::SYS_futex, libc::SYS_execve, libc::SYS_execveat];

impl Held {
    /// Whether the call that the pages are held for may not be over.
    pub fn may_be_needed(&self) -> bool {
        if let Some(pid) = self.ending {
            return procfs::living_thread(pid).is_some();
        }
        match procfs::current_call(self.tid) {
            CurrentCall::Gone | CurrentCall::Outside => false,
            CurrentCall::Unknown => true,
            CurrentCall::In { number, .. } => STORING.contains(&number),
        }
    }
}

/// What is in the Clear, which of it leaves next, and which of it stays.
#[derive(Default)]
pub struct Clear {
    /// Pages in the Clear.
    pub pages: ClearPages,
    /// Pages in the order in which they came in; see [`ClearPage::stamp`].
    pub queue: VecDeque<(Vpn, u32)>,
    /// The same for pages that a fork shared: to take them makes room only where no other space has
    /// them.
    pub shared_queue: VecDeque<(Vpn, u32)>,
    /// Where in it [`Events::find_copied`](crate::pager::events::Events::find_copied) goes on.
    pub(crate) copies_looked_at: usize,
    next_stamp: u32,
    /// Whether clean pages pay.
    pub clean_bet: CleanBet,
    /// Pages of the Clear that the kernel does not let the agent take out: they are in no queue.
    pub stuck: PageRanges,
    /// Those of `stuck` that were pinned, in the order in which they were refused.
    pinned: VecDeque<Pinned>,
    /// Those that are being tried again, how many that were the last time, or none since one of
    /// them was refused, and when they were tried or refused last.
    asked: PageRanges,
    asked_at_once: usize,
    asked_last: Option<Instant>,
    /// Pages that it did not let out when that was tried last.
    refused: PageRanges,
    /// Pages that others read where they cannot wait for a pager (`/proc/PID/cmdline`): they stay.
    pub kept: PageRanges,
    /// Pages that the kernel stores to during a thread's call, without waiting for a pager.
    pub held: Vec<Held>,
}

impl Clear {
    /// Puts a page at the end of the queue. If one that was there before was stuck, this is
    /// another, or it is to be tried again.
    pub fn enqueue(&mut self, vpn: Vpn, clean: bool, referenced: bool) {
        if !self.stuck.is_empty() {
            self.stuck.remove(vpn..vpn + 1);
        }
        self.next_stamp = self.next_stamp.wrapping_add(1);
        let stamp = self.next_stamp;
        let before = self.pages.get(&vpn);
        let shared = before.and_then(|page| page.shared);
        let protected = before.is_some_and(|page| page.protected);
        let page = ClearPage { clean, referenced, stamp, shared, protected };
        self.pages.insert(vpn, page);
        let pages = &self.pages;
        let queue = if shared.is_some() { &mut self.shared_queue } else { &mut self.queue };
        queue.push_back((vpn, stamp));
        if queue.len() > 2 * pages.len() + 4096 {
            queue.retain(|(vpn, stamp)| pages.get(vpn).is_some_and(|p| p.stamp == *stamp));
        }
    }

    /// Notes that pages are write-protected that are not clean.
    pub fn shield(&mut self, pages: Range<Vpn>) {
        for vpn in pages {
            if let Some(page) = self.pages.get_mut(&vpn) {
                page.protected = true;
            }
        }
    }

    /// The stamp of the page that came last.
    pub fn last_stamp(&self) -> u32 {
        self.next_stamp
    }

    /// A stamp before which all pages came but the last `count` that are in a queue. Those that are
    /// tried again, though they stayed before, are none of these.
    pub fn stamp_before_last(&self, count: usize) -> u32 {
        let live = |&&(vpn, stamp): &&(Vpn, u32)| {
            self.pages.get(&vpn).is_some_and(|page| page.stamp == stamp)
                && !self.asked.contains(vpn)
        };
        let latest = |queue: &VecDeque<(Vpn, u32)>| -> Vec<u32> {
            queue.iter().rev().filter(live).take(count).map(|&(_, stamp)| stamp).collect()
        };
        let mut stamps = latest(&self.queue);
        stamps.extend(latest(&self.shared_queue));
        // The age of a stamp, for they go round.
        let age = |stamp: &u32| self.next_stamp.wrapping_sub(*stamp);
        stamps.sort_unstable_by_key(age);
        stamps.truncate(count);
        stamps.last().map_or(self.next_stamp, |oldest| oldest.wrapping_sub(1))
    }

    /// Takes the page that has been in the Clear longest, sparing referenced ones once;
    /// `with_shared`: also one that a fork shared; `until`: only one that came with this stamp or
    /// before.
    pub fn coldest(&mut self, with_shared: bool, until: Option<u32>) -> Option<(Vpn, ClearPage)> {
        loop {
            let own = front(&mut self.queue, &self.pages);
            let shared = front(&mut self.shared_queue, &self.pages).filter(|_| with_shared);
            let is_own = match (own, shared) {
                (Some(own), Some(shared)) => is_later(shared, own),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return None,
            };
            let oldest = if is_own { own } else { shared };
            if until.zip(oldest).is_some_and(|(until, oldest)| is_later(oldest, until)) {
                return None;
            }
            let queue = if is_own { &mut self.queue } else { &mut self.shared_queue };
            let (vpn, _) = queue.pop_front()?;
            let page = *self.pages.get(&vpn)?;
            if page.referenced {
                self.enqueue(vpn, page.clean, false);
                continue;
            }
            return Some((vpn, page));
        }
    }

    /// Whether a page is to stay for now, and in no queue.
    pub fn is_held(&self, vpn: Vpn) -> bool {
        self.held.iter().any(|held| held.pages.contains(&vpn))
    }

    /// Pages that were to stay leave like any other.
    pub fn keep_no_longer(&mut self) {
        for vpn in std::mem::take(&mut self.kept).iter().flatten() {
            if let Some(page) = self.pages.get(&vpn).copied() {
                self.enqueue(vpn, page.clean, page.referenced);
            }
        }
    }

    /// The kernel let the agent take a page out.
    pub fn was_let_out(&mut self, vpn: Vpn) {
        for pages in [&mut self.refused, &mut self.asked] {
            if !pages.is_empty() {
                pages.remove(vpn..vpn + 1);
            }
        }
    }

    /// Notes that the kernel refused that. Whether it is for the first time since it let the page
    /// out last.
    pub fn is_refused_first(&mut self, vpn: Vpn) -> bool {
        let is_first = !self.refused.contains(vpn);
        match is_first {
            true => self.refused.insert(vpn..vpn + 1),
            false => self.refused.remove(vpn..vpn + 1),
        }
        is_first
    }

    /// A page is pinned: it stays for a while, and is in no queue. (It may have been queued since
    /// it was chosen, by a fault of the agent's.)
    pub fn pin(&mut self, vpn: Vpn) {
        self.next_stamp = self.next_stamp.wrapping_add(1);
        let stamp = self.next_stamp;
        let Some(page) = self.pages.get_mut(&vpn) else { return };
        page.stamp = stamp;
        self.stuck.insert(vpn..vpn + 1);
        if self.asked.contains(vpn) {
            self.asked.remove(vpn..vpn + 1);
            (self.asked_at_once, self.asked_last) = (0, Some(Instant::now()));
        }
        if self.pinned.len() as u64 > 2 * self.stuck.pages() + 4096 {
            let (pages, stuck) = (&self.pages, &self.stuck);
            self.pinned.retain(|pinned| pinned.is_so(pages, stuck));
        }
        self.pinned.push_back(Pinned { since: Instant::now(), vpn, stamp });
    }

    /// Room is short: the page is next that was refused longest ago, though that is not long, and
    /// after one that left more of them. Their pins may have ended since, and others come.
    pub fn ask_pinned_again(&mut self, now: Instant) {
        let asked = self.pinned_to_ask(now, PAUSE_WHEN_SHORT, 1, Duration::ZERO);
        for vpn in asked.into_iter().rev() {
            self.stuck.remove(vpn..vpn + 1);
            self.enqueue_first(vpn);
        }
    }

    /// Queues pages again that were pinned a while ago.
    pub fn release_pinned(&mut self, now: Instant) {
        for vpn in self.pinned_to_ask(now, PAUSE_BETWEEN, ASKED_FIRST, PINNED_PAUSE) {
            self.release(&(vpn..vpn + 1));
        }
    }

    /// Pages that were refused `age` ago or longer, those first that were so longest: `least` of
    /// them if none was tried again, or refused then, for `pause`, and while the kernel lets them
    /// out twice as many each time.
    fn pinned_to_ask(
        &mut self,
        now: Instant,
        pause: Duration,
        least: usize,
        age: Duration,
    ) -> Vec<Vpn> {
        let is_recent = self.asked_last.is_some_and(|asked| now < asked + pause);
        if self.asked_at_once == 0 && is_recent {
            return Vec::new();
        }
        let most = (2 * self.asked_at_once).clamp(least, MOST_ASKED_AGAIN);
        let mut asked = Vec::new();
        while asked.len() < most
            && let Some(pinned) = self.pinned.front()
            && now >= pinned.since + age
        {
            if pinned.is_so(&self.pages, &self.stuck) {
                asked.push(pinned.vpn);
                self.asked.insert(pinned.vpn..pinned.vpn + 1);
            }
            self.pinned.pop_front();
        }
        if !asked.is_empty() {
            (self.asked_at_once, self.asked_last) = (most, Some(now));
        }
        asked
    }

    /// Puts a page before all others.
    fn enqueue_first(&mut self, vpn: Vpn) {
        let fronts = [self.queue.front(), self.shared_queue.front()];
        let stamps = fronts.into_iter().flatten().map(|&(_, stamp)| stamp);
        let first = stamps.reduce(|one, other| if is_later(one, other) { other } else { one });
        let stamp = first.unwrap_or(self.next_stamp).wrapping_sub(1);
        let Some(page) = self.pages.get_mut(&vpn) else { return };
        page.stamp = stamp;
        let is_shared = page.shared.is_some();
        let queue = if is_shared { &mut self.shared_queue } else { &mut self.queue };
        queue.push_front((vpn, stamp));
    }

    /// Pages that may be asked for: those that are not known to stay.
    pub fn not_stuck(&self) -> usize {
        self.pages.len().saturating_sub(self.stuck.pages() as usize)
    }

    /// Pages that were stuck may not be any more.
    pub fn release(&mut self, range: &Range<Vpn>) {
        self.refused.remove(range.clone());
        let stuck = self.stuck.common_with(range);
        self.stuck.remove(range.clone());
        for vpn in stuck.into_iter().flatten() {
            if let Some(page) = self.pages.get(&vpn).copied() {
                self.enqueue(vpn, page.clean, false);
            }
        }
    }
}

/// Whether the first of two stamps was given after the second. (They go round.)
fn is_later(stamp: u32, than: u32) -> bool {
    (stamp.wrapping_sub(than) as i32) > 0
}

/// The stamp of the oldest page of a queue. Entries that stand for nothing any more are taken off.
fn front(queue: &mut VecDeque<(Vpn, u32)>, pages: &ClearPages) -> Option<u32> {
    loop {
        let &(vpn, stamp) = queue.front()?;
        if pages.get(&vpn).is_some_and(|page| page.stamp == stamp) {
            return Some(stamp);
        }
        queue.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referenced_pages_get_a_second_chance() {
        let mut clear = Clear::default();
        clear.enqueue(1, false, true);
        clear.enqueue(2, false, false);
        assert_eq!(clear.coldest(true, None).map(|(v, _)| v), Some(2));
        clear.pages.remove(&2);
        assert_eq!(clear.coldest(true, None).map(|(v, _)| v), Some(1), "spared once, not for ever");
    }

    #[test]
    fn the_last_pages_are_told_from_those_before_by_their_stamps() {
        let mut clear = Clear::default();
        (0..8).for_each(|vpn| clear.enqueue(vpn, false, false));
        // What stays counts for none of those that may leave, nor what is another page by now.
        [3, 6].into_iter().for_each(|vpn| clear.pin(vpn));
        clear.enqueue(1, false, false);
        let mut leave = |count| {
            let until = clear.stamp_before_last(count);
            clear.coldest(true, Some(until)).map(|(vpn, _)| vpn)
        };
        // In order: 0, 2, 4, 5, 7, 1.
        assert_eq!([leave(6), leave(5), leave(5), leave(4)], [None, Some(0), None, Some(2)]);
        assert_eq!(Clear::default().stamp_before_last(3), 0);
    }

    #[test]
    fn pinned_pages_are_asked_again_early_in_the_order_in_which_they_were_refused() {
        let mut clear = Clear::default();
        for vpn in 0..8 {
            clear.enqueue(vpn, false, false);
        }
        for _ in 0..7 {
            let (vpn, _) = clear.coldest(true, None).expect("there are eight");
            clear.pin(vpn);
        }
        assert_eq!(clear.not_stuck(), 1);
        let next = |clear: &mut Clear| clear.coldest(true, None).map(|(vpn, _)| vpn);
        let later = || Instant::now() + PAUSE_WHEN_SHORT;
        for asked in [vec![0], vec![1, 2]] {
            clear.ask_pinned_again(later());
            for vpn in asked {
                assert_eq!(next(&mut clear), Some(vpn));
                clear.pages.remove(&vpn);
                clear.was_let_out(vpn);
            }
        }
        clear.ask_pinned_again(later());
        assert_eq!(next(&mut clear), Some(3));
        clear.pin(3);
        assert_eq!([(); 3].map(|()| next(&mut clear)), [4, 5, 6].map(Some));
        clear.ask_pinned_again(Instant::now());
        assert_eq!(clear.pinned.len(), 1, "one was tried and refused just now");
        clear.ask_pinned_again(later() + PAUSE_WHEN_SHORT);
        assert_eq!(next(&mut clear), Some(3), "it was refused, so it is the only one");
        assert_eq!(clear.coldest(true, None).map(|(vpn, _)| vpn), Some(7));
        assert!(clear.stuck.is_empty());
    }

    #[test]
    fn a_page_that_was_pinned_twice_is_queued_once() {
        let mut clear = Clear::default();
        clear.enqueue(1, false, false);
        clear.coldest(true, None);
        clear.pin(1);
        clear.release(&(1..2));
        clear.pin(1);
        // By a fault of the agent's, between its choice and its refusal.
        clear.enqueue(1, false, false);
        clear.pin(1);
        (0..2).for_each(|_| clear.ask_pinned_again(Instant::now() + PAUSE_WHEN_SHORT));
        assert!(clear.pinned.is_empty() && clear.stuck.is_empty());
        // One that is gone is not stuck.
        clear.pin(5);
        assert!(clear.pinned.is_empty() && clear.stuck.is_empty());
        assert_eq!(clear.coldest(true, None).map(|(vpn, _)| vpn), Some(1));
        assert_eq!(clear.coldest(true, None).map(|(vpn, _)| vpn), None);
    }

    #[test]
    fn what_was_kept_leaves_again() {
        let mut clear = Clear::default();
        clear.enqueue(1, false, false);
        clear.kept.insert(1..3);
        // It is passed over, and in no queue then.
        assert_eq!(clear.coldest(true, None).map(|(vpn, _)| vpn), Some(1));
        clear.keep_no_longer();
        assert!(clear.kept.is_empty());
        assert_eq!(clear.coldest(true, None).map(|(vpn, _)| vpn), Some(1));
        assert!(!clear.pages.contains_key(&2), "what was not there is not made up");
    }

    #[test]
    fn only_pages_that_came_before_a_moment_are_taken_for_being_idle() {
        let mut clear = Clear { next_stamp: u32::MAX - 1, ..Clear::default() };
        clear.enqueue(1, false, false);
        clear.enqueue(2, false, true);
        let moment = clear.last_stamp();
        clear.enqueue(3, false, false);
        let taken: Vec<Vpn> = std::iter::from_fn(|| {
            let (vpn, _) = clear.coldest(true, Some(moment))?;
            clear.pages.remove(&vpn);
            Some(vpn)
        })
        .collect();
        assert_eq!(taken, [1], "2 was asked for again, and 3 came later");
        assert_eq!(clear.coldest(true, None).map(|(vpn, _)| vpn), Some(3));
    }
}
