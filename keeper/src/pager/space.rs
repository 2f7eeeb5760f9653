//! One protected address space.
//!
//! [`Space`] is what all threads see of it, [`SpaceState`] what its lock guards. The state has one
//! part for each thing that is known of the space; many steps that need only one take only that.
//!
//! | part | what it is | changed by |
//! |---|---|---|
//! | [`Agent`] | the agent: its hand, its address ranges | all stages, the watcher |
//! | [`Processes`] | who has this memory; its page table | all stages, the watcher |
//! | [`Clear`] | pages in the Clear, and the order in which they leave it | all stages |
//! | [`Grace`] | pages out of the program, in plaintext still | fault, evict, events |
//! | [`Mapped`] | what is known of mappings | events; fault: what grew; evict: rights |
//! | [`Pending`] | messages to serve, threads to wake | all stages, the watcher |
//! | [`Faults`] | faults that wait; what those before say of the next | fault |
//! | [`Calls`] | calls under way, and what they may be doing to pages | events, the watcher |
//! | [`EndWords`] | what the kernel clears when threads end | events |

mod agent;
mod calls;
mod clean_bet;
mod clear;
mod copied;
mod end_words;
mod faults;
mod grace;
mod mapped;
mod origins;
mod pending;
mod processes;
mod vpn;

use super::Stop;
use crate::attention::Attention;
use crate::hand::Hand;
use crate::pager::clear_pages::PageCount;
use crate::pager::quotas::Quota;
use crate::sys::clock::Instant;
use crate::sys::mutex::Mutex;
use crate::sys::uffd::Userfault;
use casemate_pages::SpaceId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

pub use agent::Agent;
pub use calls::{Calls, InFlight, Until};
pub use clean_bet::CleanBet;
pub use clear::{Clear, ClearPage, Held};
pub(crate) use copied::Copied;
pub use end_words::EndWords;
pub use faults::{AgentAsked, Faults, Tried, WaitsForRoom};
pub use grace::Grace;
pub use mapped::Mapped;
pub use origins::{Origin, Origins};
pub use pending::Pending;
pub use processes::Processes;
pub use vpn::{Vpn, VpnMap};
pub(super) use vpn::{in_pages, keys_in};

/// State of a space that its lock guards. What follows from several parts is a method here.
#[derive(Default)]
pub struct SpaceState {
    /// The agent.
    pub agent: Agent,
    /// The processes that have this memory.
    pub processes: Processes,
    /// Pages in the Clear.
    pub clear: Clear,
    /// Pages out of the program, in plaintext still.
    pub grace: Grace,
    /// What the program's mappings are known to be.
    pub mapped: Mapped,
    /// Messages to serve, and threads to wake.
    pub pending: Pending,
    /// Faults that wait, and what those before say of the next.
    pub faults: Faults,
    /// Calls under way.
    pub calls: Calls,
    /// What the kernel clears when threads end.
    pub end_words: EndWords,
}

impl SpaceState {
    /// That of a program's process that gets its agent before its space comes into being.
    ///
    /// # Errors
    /// Where the agent's page table cannot be opened.
    pub fn armed(pid: i32, hand: Hand, is_announced: bool) -> Result<Self, Stop> {
        let mut state = SpaceState::default();
        state.agent.is_armed = true;
        state.processes.pids = vec![pid];
        state.calls.is_announced = is_announced;
        state.take_hand(hand)?;
        Ok(state)
    }

    /// The space has an agent from now on.
    ///
    /// # Errors
    /// Where the agent's page table cannot be opened.
    pub fn take_hand(&mut self, hand: Hand) -> Result<(), Stop> {
        self.processes.agent = Some(hand.agent_pid());
        self.agent.hand = Some(hand);
        self.processes.pagemap = None;
        self.processes.pagemap().map(drop)
    }

    /// Whether it has an agent, at work or not.
    pub fn has_agent(&self) -> bool {
        self.processes.agent.is_some()
    }

    /// The agent has ended, or is to: its hand, if it is not at work.
    pub fn lose_hand(&mut self) -> Option<Hand> {
        self.processes.agent = None;
        self.agent.hand.take()
    }

    /// Whether a page of the Clear may have been removed after it was found or filled.
    pub fn may_be_removed(&self, vpn: Vpn) -> bool {
        self.clear.pages.get(&vpn).is_some_and(|page| !page.clean)
            && self.calls.removed.iter().any(|range| range.contains(&vpn))
    }

    /// Pages of plaintext that the pager holds: in the Clear, and on the grace list.
    pub fn plaintext_pages(&self) -> u64 {
        (self.clear.pages.len() + self.grace.pages.len()) as u64
    }

    /// The first page from `vpn` on that a reader in order would next miss: what is there does not
    /// fault. Looks at no more than `most` pages.
    pub fn next_absent(&self, vpn: Vpn, most: u64) -> Vpn {
        (vpn..vpn + most).find(|&page| !self.holds(page)).unwrap_or(vpn + most)
    }

    /// Whether a page is in the Clear, on the grace list or not.
    pub fn holds(&self, vpn: Vpn) -> bool {
        self.clear.pages.contains_key(&vpn) || self.grace.pages.contains_key(&vpn)
    }

    /// A range is mapped no more, or something new is mapped there: nothing that was said of it
    /// holds.
    pub fn unmapped(&mut self, range: &std::ops::Range<Vpn>) {
        self.mapped.unmapped(range);
        self.clear.stuck.remove(range.clone());
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
    /// What its program may have of the Clear; none: as much as the run.
    pub quota: Option<Arc<Quota>>,
    /// Anonymous pages that the pager cannot hold, when they were last counted.
    pub outside_pages: AtomicU64,
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
    /// Pages stay until the call in flight is over: whether it is has to be asked.
    pub wants_call_over: AtomicBool,
    /// The program has mapped data of a file since it was last surveyed.
    pub has_mapped_data: AtomicBool,
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
        Self::within(None, id, uffd, state)
    }

    /// The same, of a program that may have that part of the Clear.
    pub fn within(
        quota: Option<Arc<Quota>>,
        id: SpaceId,
        uffd: Userfault,
        state: SpaceState,
    ) -> Arc<Self> {
        quota.iter().for_each(|quota| quota.begins());
        Arc::new(Space {
            id,
            uffd,
            quota,
            outside_pages: AtomicU64::new(0),
            clear_pages: state.clear.pages.count(),
            announced: AtomicBool::new(state.calls.is_announced && state.agent.hand.is_some()),
            agent: AtomicI32::new(state.agent.hand.as_ref().map_or(0, Hand::agent_pid)),
            state: Mutex::new(state),
            listeners: AtomicU64::new(0),
            heard: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            wants_agent: AtomicBool::new(false),
            wants_call_over: AtomicBool::new(false),
            has_mapped_data: AtomicBool::new(false),
            unarmable: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            born: Instant::now(),
        })
    }

    /// Time since the pager took it on.
    pub fn age(&self) -> std::time::Duration {
        self.born.elapsed()
    }

    /// The most pages of plaintext that the pager may hold of it, if its program has a quota.
    pub fn most_held(&self) -> Option<u64> {
        self.quota.as_ref().map(|quota| quota.most_held(self.outside_pages.load(Relaxed)))
    }

    /// Notes what its program has of the Clear.
    pub fn note_plaintext(&self, state: &SpaceState) {
        if let Some(quota) = &self.quota {
            quota.note(state.plaintext_pages() + self.outside_pages.load(Relaxed));
        }
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

    /// Wakes the threads that `state.pending.wakes` names. Call it after the lock is released: a
    /// woken thread may take this CPU at once.
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
    fn a_stream_goes_on_behind_what_is_there() {
        let mut state = SpaceState::default();
        assert_eq!(state.next_absent(5, 64), 5);
        (5..9).for_each(|vpn| state.clear.enqueue(vpn, false, false));
        assert_eq!((state.next_absent(5, 64), state.next_absent(5, 2)), (9, 7));

        let readahead = &mut state.faults.readahead;
        let guess = readahead.on_fault(100);
        assert_eq!(guess.window_pages, 1);
        let asked = readahead.on_fault(101).window_pages;
        assert!(asked > 1);
        // One page came, the three behind it were there: the reader misses the fifth next.
        readahead.came_short(101, asked, 4);
        assert!(readahead.on_fault(105).hit);
    }

    /// A process of the space may have executed another program since.
    #[test]
    fn while_its_hand_works_the_agent_stands_for_a_space() {
        let mut state = SpaceState::default();
        state.processes.pids = vec![std::process::id() as i32];
        state.processes.agent = Some(1);
        assert_eq!(state.processes.some_pid(), Some(1));
        assert!(state.lose_hand().is_none());
        assert_eq!(state.processes.some_pid(), Some(std::process::id() as i32));
    }
}
