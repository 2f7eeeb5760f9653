//! One protected address space: which of its pages are in the Clear, and how they got there.

mod clean_bet;
mod copied;
mod vpn;

use super::Stop;
use super::rights::Rights;
use super::shared::ShareId;
use crate::attention::Attention;
use crate::hand::Hand;
use crate::pager::clear_pages::{ClearPages, PageCount};
use crate::pager::plain::Plain;
use crate::ranges::PageRanges;
use crate::readahead::Readahead;
use crate::sys::clock::Instant;
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs;
use crate::sys::uffd::{Message, Userfault};
use casemate_pages::SpaceId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

pub use clean_bet::CleanBet;
pub(crate) use copied::Copied;
pub use vpn::{Vpn, VpnMap};
pub(super) use vpn::{in_pages, keys_in};

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

/// A page that was taken out of the program and not encrypted yet.
#[derive(Debug)]
pub struct GracePage {
    /// Its contents.
    pub plain: Plain,
    /// Order of arrival.
    pub stamp: u64,
}

/// A call of the program's that was let through to the kernel, and that no other call of the space
/// may overtake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// Its thread.
    pub tid: i32,
    /// Its number.
    pub number: i64,
    /// What is waited for.
    pub until: Until,
    /// Since when.
    pub since: Instant,
}

/// How it is known that a call in flight has done what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// The child's descriptor arrives.
    Fork,
    /// The thread has left it; then the kernel is asked what is left of these pages.
    Replaced(std::ops::Range<Vpn>),
    /// The thread has left it; its events say the rest.
    Left,
}

/// Calls of `madvise` whose ranges are remembered: more than can be under way at once, as a rule.
const REMOVALS_REMEMBERED: usize = 64;

/// Faults of a forked child that wait for its agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentAsked {
    /// When the first did.
    pub first: Instant,
    /// The address of the one that does now, and since when its thread is traced to be stopped.
    pub fault: (u64, Option<Instant>),
}

/// State of a space that its lock guards.
#[derive(Default)]
pub struct SpaceState {
    /// The agent; none in a child that forked and has not needed one yet, and while it works.
    pub hand: Option<Hand>,
    /// The agent's process number, also while its hand is at work. Of the processes that had this
    /// memory any may have executed another program since; an agent never does.
    pub(crate) agent: Option<i32>,
    /// It has, or had, an agent.
    pub is_armed: bool,
    /// Once there is an agent, opened as its own.
    pub(crate) pagemap: Option<Pagemap>,
    /// What the program had advised before it was armed is known.
    pub(crate) knows_advice: bool,
    /// It has an agent, and what it advised before is known; since then each call that advises is
    /// heard.
    pub(crate) follows_advice: bool,
    /// Processes known to run in this space.
    pub pids: Vec<i32>,
    /// Pages in the Clear.
    pub pages: ClearPages,
    /// Pages in the order in which they came in; see [`ClearPage::stamp`].
    pub queue: VecDeque<(Vpn, u32)>,
    /// The same for pages that a fork shared: to take them makes room only where no other space has
    /// them.
    pub shared_queue: VecDeque<(Vpn, u32)>,
    /// Where in it [`Events::find_copied`](super::events::Events::find_copied) goes on.
    pub(crate) copies_looked_at: usize,
    pub(crate) next_stamp: u32,
    /// Pages out of the program, in plaintext still: the second chance.
    pub grace: VpnMap<GracePage>,
    /// Grace pages in order of arrival.
    pub grace_queue: VecDeque<(Vpn, u64)>,
    pub(crate) next_grace: u64,
    /// Ranges registered with the descriptor.
    pub registered: PageRanges,
    /// Of those, ranges that are just being registered. A fork whose event is read meanwhile may
    /// have copied them before: whether the child's are registered is not known.
    pub registering: PageRanges,
    /// Streams of sequential faults.
    pub readahead: Readahead,
    /// Whether clean pages pay.
    pub clean_bet: CleanBet,
    /// Access rights of ranges that are not plain read-write.
    pub rights: Rights,
    /// The program's calls are announced (SPEC section 7).
    pub is_announced: bool,
    /// The call that others have to wait for.
    pub in_flight: Option<InFlight>,
    /// Pages that a child does not get (`MADV_DONTFORK`), or gets empty (`MADV_WIPEONFORK`).
    pub unforked: PageRanges,
    /// Pages under `MADV_GUARD_INSTALL`: there is nothing, and nothing may be put there.
    pub guards: PageRanges,
    /// Faults that are served one page at a time: mappings there are too small for runs.
    pub singly: u32,
    /// What the program maps is locked, and perhaps filled before it is registered (`mlockall`
    /// before arming).
    pub locks_future: bool,
    /// The program has asked for `READ_IMPLIES_EXEC`, and its agent has not.
    pub read_implies_exec: bool,
    /// Address ranges of the agent's own.
    pub owned: Vec<std::ops::Range<u64>>,
    /// Pages of a staging were filled for the program's `mlockall`, and are to be dropped before it
    /// is used.
    pub soiled: bool,
    /// Messages read but not served yet.
    pub inbox: Vec<Message>,
    /// Threads to wake when the lock is released: (address, bytes).
    pub wakes: Vec<(u64, u64)>,
    /// Ranges that `madvise` removed last. Their pages go when the call goes on, which is after its
    /// event was read: a page may have been found, or filled, in between.
    pub(crate) removed: VecDeque<std::ops::Range<Vpn>>,
    /// A page that keeps faulting though it is there, and how often in a row.
    pub repeated: (Vpn, u32),
    /// Faults that wait for room, or for an agent.
    pub waiting: Vec<Message>,
    /// Since when there was none.
    pub waits_since: Option<Instant>,
    /// The faults of a forked child that wait for its agent.
    pub agent_asked: Option<AgentAsked>,
    /// Pages that the kernel does not let the agent take out: they are in no queue.
    pub stuck: PageRanges,
    /// Pages that others read where they cannot wait for a pager (`/proc/PID/cmdline`): they stay.
    pub kept: PageRanges,
    /// Pages that the kernel writes to when a thread ends: they stay until it has.
    pub leaving: Vec<(i32, Vec<Vpn>)>,
    /// Ranges that the program has sealed (`mseal`).
    pub sealed: PageRanges,
    /// When memory of `/dev/zero` could not be replaced last.
    pub zero_device_refused: Option<Instant>,
}

impl SpaceState {
    /// Whether the kernel has a page there: in memory, in its own swap, or on its way to another
    /// frame. None if it cannot be asked, since no process of the space is known (any more).
    pub(crate) fn holds_page(&mut self, address: u64) -> Result<Option<bool>, Stop> {
        let Some(pagemap) = self.pagemap()? else { return Ok(None) };
        match pagemap.holds_page(address) {
            Ok(holds) => Ok(Some(holds)),
            // The address space is no more.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => {
                Err(Stop::Internal(format!("asking for the page at {address:#x}: {error}")))
            }
        }
    }

    /// The page table; none if no process of the space is known (any more).
    pub(super) fn pagemap(&mut self) -> Result<Option<&Pagemap>, Stop> {
        if self.pagemap.is_none() {
            let Some(pid) = self.some_pid() else { return Ok(None) };
            // It stays that of this address space, whatever its processes execute.
            match Pagemap::open(pid) {
                Ok(pagemap) => self.pagemap = Some(pagemap),
                // It ended meanwhile.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {
                    return Ok(None);
                }
                Err(error) => {
                    return Err(Stop::Internal(format!(
                        "opening the page table of process {pid}: {error}"
                    )));
                }
            }
        }
        Ok(self.pagemap.as_ref())
    }

    /// A fault has to wait. A thread that was stopped meanwhile faults anew.
    pub fn put_off(&mut self, fault: Message) {
        let is_same = |other: &Message| other.fault_address() == fault.fault_address();
        if !self.waiting.iter().any(is_same) {
            self.waiting.push(fault);
        }
    }

    /// Puts a page at the end of the queue.
    pub fn enqueue(&mut self, vpn: Vpn, clean: bool, referenced: bool) {
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

    /// Remembers that `madvise` is about to remove a range.
    pub fn note_removal(&mut self, range: std::ops::Range<Vpn>) {
        if self.removed.len() >= REMOVALS_REMEMBERED {
            self.removed.pop_front();
        }
        self.removed.push_back(range);
    }

    /// Whether a page of the Clear may have been removed after it was found or filled.
    pub fn may_be_removed(&self, vpn: Vpn) -> bool {
        self.pages.get(&vpn).is_some_and(|page| !page.clean)
            && self.removed.iter().any(|range| range.contains(&vpn))
    }

    /// The first page from `vpn` on that a reader in order would next miss: what is there does not
    /// fault. Looks at no more than `most` pages.
    pub fn next_absent(&self, vpn: Vpn, most: u64) -> Vpn {
        let is_there = |page: &Vpn| self.pages.contains_key(page) || self.grace.contains_key(page);
        (vpn..vpn + most).find(|page| !is_there(page)).unwrap_or(vpn + most)
    }

    /// Whether a page is to stay for now, and in no queue.
    pub fn is_held(&self, vpn: Vpn) -> bool {
        self.leaving.iter().any(|(_, pages)| pages.contains(&vpn))
    }

    /// Whether a call in flight may just be putting something else at a page.
    pub fn may_be_replaced(&self, vpn: Vpn) -> bool {
        self.in_flight.as_ref().is_some_and(|call| match &call.until {
            Until::Replaced(range) => range.contains(&vpn),
            Until::Fork | Until::Left => false,
        })
    }

    /// Takes the page that has been in the Clear longest, sparing referenced ones once;
    /// `with_shared`: also one that a fork shared.
    pub fn coldest(&mut self, with_shared: bool) -> Option<(Vpn, ClearPage)> {
        loop {
            let own = front(&mut self.queue, &self.pages);
            let shared = front(&mut self.shared_queue, &self.pages).filter(|_| with_shared);
            let is_own = match (own, shared) {
                (Some(own), Some(shared)) => (own.wrapping_sub(shared) as i32) < 0,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return None,
            };
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

    /// Puts a page on the grace list.
    pub fn spare(&mut self, vpn: Vpn, plain: Plain) {
        self.next_grace += 1;
        let stamp = self.next_grace;
        self.grace.insert(vpn, GracePage { plain, stamp });
        self.grace_queue.push_back((vpn, stamp));
    }

    /// Takes the page that has been on the grace list longest off it.
    pub fn take_oldest_grace(&mut self) -> Option<(Vpn, Plain)> {
        loop {
            let (vpn, stamp) = self.grace_queue.pop_front()?;
            if self.grace.get(&vpn).is_some_and(|page| page.stamp == stamp) {
                return self.grace.remove(&vpn).map(|page| (vpn, page.plain));
            }
        }
    }

    /// A process that has this memory: the agent, or one of the program's.
    pub(crate) fn some_pid(&self) -> Option<i32> {
        self.agent.or_else(|| self.pids.iter().find_map(|&pid| procfs::living_thread(pid)))
    }

    /// The space has an agent from now on.
    ///
    /// # Errors
    /// Where the agent's page table cannot be opened.
    pub fn take_hand(&mut self, hand: Hand) -> Result<(), Stop> {
        self.agent = Some(hand.agent_pid());
        self.hand = Some(hand);
        self.pagemap = None;
        self.pagemap().map(drop)
    }

    /// The agent has ended, or is to: its hand, if it is not at work.
    pub fn lose_hand(&mut self) -> Option<Hand> {
        self.agent = None;
        self.hand.take()
    }

    /// A range is mapped no more, or something new is mapped there: nothing that was said of it
    /// holds.
    pub fn unmapped(&mut self, range: &std::ops::Range<Vpn>) {
        self.registered.remove(range.clone());
        self.unforked.remove(range.clone());
        self.guards.remove(range.clone());
        self.rights.clear(range);
        self.stuck.remove(range.clone());
        self.sealed.remove(range.clone());
    }

    /// Pages that were stuck may not be any more.
    pub fn release(&mut self, range: &std::ops::Range<Vpn>) {
        for vpn in self.stuck.common_with(range).into_iter().flatten() {
            if let Some(page) = self.pages.get(&vpn).copied() {
                self.enqueue(vpn, page.clean, false);
            }
        }
        self.stuck.remove(range.clone());
    }

    /// A page address that is certainly not registered, for [`Userfault::quiet`].
    pub fn unregistered_address(&self) -> u64 {
        const LOWEST_MAPPABLE: u64 = 0x1_0000;
        let mut vpn = LOWEST_MAPPABLE / 4096;
        while self.registered.contains(vpn) {
            vpn += self.registered.run_from(vpn);
        }
        vpn * 4096
    }
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

/// An address space under the pager.
pub struct Space {
    /// Its number in the page directory.
    pub id: SpaceId,
    /// Its faults and events.
    pub uffd: Userfault,
    /// Everything else.
    pub state: Mutex<SpaceState>,
    /// How many pages `state` has in the Clear, readable without its lock.
    pub clear_pages: PageCount,
    /// The agent's process, 0 if there is none.
    pub agent: AtomicI32,
    /// The program's calls are announced, and made by the agent.
    pub announced: AtomicBool,
    /// CPUs whose handler listens to this space, one bit each.
    pub listeners: AtomicU64,
    /// Some handler listens to it.
    pub heard: AtomicBool,
    /// Has ended; messages are ignored.
    pub gone: AtomicBool,
    /// It has no agent and room is short: it is to get one soon.
    pub wants_agent: AtomicBool,
    /// It has no agent, and cannot get one.
    pub unarmable: AtomicBool,
    /// Some thread of it waits for room.
    pub waits: AtomicBool,
    /// When the space was born, for [`Space::age`].
    born: Instant,
}

impl Space {
    /// A space that no handler listens to yet.
    pub fn new(id: SpaceId, uffd: Userfault, state: SpaceState) -> Arc<Self> {
        Arc::new(Space {
            id,
            uffd,
            clear_pages: state.pages.count(),
            announced: AtomicBool::new(state.is_announced && state.hand.is_some()),
            agent: AtomicI32::new(state.hand.as_ref().map_or(0, Hand::agent_pid)),
            state: Mutex::new(state),
            listeners: AtomicU64::new(0),
            heard: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            wants_agent: AtomicBool::new(false),
            unarmable: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            born: Instant::now(),
        })
    }

    /// Time since the pager took it on.
    pub fn age(&self) -> std::time::Duration {
        self.born.elapsed()
    }

    /// Whether what the program maps is registered as it is mapped.
    pub fn registers_new(&self) -> bool {
        self.announced.load(Relaxed)
    }

    /// Whether nothing can be taken from it, but could if it got an agent.
    pub fn may_be_armed(&self) -> bool {
        self.agent.load(Relaxed) == 0 && !self.is_gone() && !self.unarmable.load(Relaxed)
    }

    /// Whether it has ended.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Its memory is no more: the watcher cleans up.
    pub(crate) fn mark_gone(&self, attention: &Attention) {
        self.gone.store(true, Relaxed);
        attention.ring();
    }

    /// Wakes whom `state.wakes` names. Call it after the lock is released: a woken thread may take
    /// this CPU at once.
    pub fn wake_all(&self, wakes: &[(u64, u64)]) {
        for &(address, bytes) in wakes {
            self.uffd.wake(address, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referenced_pages_get_a_second_chance() {
        let mut state = SpaceState::default();
        state.enqueue(1, false, true);
        state.enqueue(2, false, false);
        assert_eq!(state.coldest(true).map(|(v, _)| v), Some(2));
        state.pages.remove(&2);
        assert_eq!(state.coldest(true).map(|(v, _)| v), Some(1), "spared once, not for ever");
    }

    #[test]
    fn a_stream_goes_on_behind_what_is_there() {
        let mut state = SpaceState::default();
        assert_eq!(state.next_absent(5, 64), 5);
        (5..9).for_each(|vpn| state.enqueue(vpn, false, false));
        assert_eq!((state.next_absent(5, 64), state.next_absent(5, 2)), (9, 7));

        let guess = state.readahead.on_fault(100);
        assert_eq!(guess.window_pages, 1);
        let asked = state.readahead.on_fault(101).window_pages;
        assert!(asked > 1);
        // One page came, the three behind it were there: the reader misses the fifth next.
        state.readahead.came_short(101, asked, 4);
        assert!(state.readahead.on_fault(105).hit);
    }

    /// A process of the space may have executed another program since.
    #[test]
    fn while_its_hand_works_the_agent_stands_for_a_space() {
        let pids = vec![std::process::id() as i32];
        let mut state = SpaceState { agent: Some(1), pids, ..Default::default() };
        assert_eq!(state.some_pid(), Some(1));
        assert!(state.lose_hand().is_none());
        assert_eq!(state.some_pid(), Some(std::process::id() as i32));
    }
}
