//! Faults that wait: for the agent of a forked child, or for room.

use super::Fault;
use crate::event_counts::add;
use crate::pager::space::{AgentAsked, Space, SpaceState, Tried, WaitsForRoom};
use crate::sys::clock::Instant;
use crate::sys::process;
use crate::sys::procfs::{self, CurrentCall};
use crate::sys::uffd::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long faults wait for room, where others hold all of it, and were asked for some in vain.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long they wait for pages that do leave and are taken by others.
const MOST_PATIENCE: Duration = Duration::from_secs(20);
/// The same in a system call of a process that has no agent: it cannot get one before it is out of
/// the call.
const PATIENCE_IN_CALL: Duration = Duration::from_millis(2);
/// How long the faults of a forked child wait for its agent, from the first of them on.
const PATIENCE_FOR_AGENT: Duration = Duration::from_secs(2);
/// How long one of them waits once its thread is traced by a thread of ours that is to stop it.
/// Where the kernel itself stores before it returns to the program (a signal's frame, the area of
/// restartable sequences), the thread is in no call, and cannot be stopped either. The time before
/// it is traced does not count: on a busy machine that alone takes longer, and giving up then lets
/// the child copy what it inherited beyond the Clear.
const PATIENCE_FOR_STOP: Duration = Duration::from_millis(20);

impl Fault<'_> {
    /// Whether a fault waits for the agent of a forked child, which is asked for at its first
    /// fault: what the child has cannot leave without it, and once a call of the child's touches
    /// more than there is room for it is too late, since a thread that waits inside a call cannot
    /// be stopped to make the agent.
    pub(super) fn waits_for_agent(
        &self,
        space: &Space,
        state: &mut SpaceState,
        fault: &Message,
    ) -> bool {
        let (Message::Missing { address, tid, .. } | Message::Protected { address, tid }) = *fault
        else {
            return false;
        };
        // The child is recognised by a page that it has.
        if state.has_agent()
            || !space.may_be_armed()
            || state.clear.pages.is_empty()
            || !may_be_stopped(tid)
        {
            return false;
        }
        state.faults.is_held = state.faults.is_held && procfs::tracer(tid).is_some();
        if state.faults.is_held {
            return false;
        }
        let now = Instant::now();
        let asked = state
            .faults
            .agent_asked
            .get_or_insert(AgentAsked { first: now, fault: (address, None) });
        if asked.fault.0 != address {
            asked.fault = (address, None);
        }
        // On a busy machine it takes a while until that is so.
        if procfs::tracer(tid).is_some_and(process::is_own_thread) {
            asked.fault.1.get_or_insert(now);
        }
        let cannot_stop = asked.fault.1.is_some_and(|since| since.elapsed() > PATIENCE_FOR_STOP);
        if cannot_stop || asked.first.elapsed() > PATIENCE_FOR_AGENT {
            return false;
        }
        space.wants_agent.store(true, Relaxed);
        self.attention.ring();
        true
    }

    /// Whether a fault has to wait since there is no room, and others can make some.
    pub(super) fn waits_for_room(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        tid: i32,
    ) -> bool {
        if self.budget.free() > 0 {
            state.faults.waits = None;
            return false;
        }
        // It is the agent's own fault, or the agent works, or a thread of ours reads the program's
        // memory: a thread of ours waits until that is done, and cannot make room meanwhile.
        if state.has_agent() && state.agent.hand.is_none() || process::is_own_thread(tid) {
            return false;
        }
        let may_give = |other: &Arc<Space>| {
            other.may_be_armed() || other.id != space.id && other.clear_pages.get() > 0
        };
        // Pages that may not be written leave when a call is over that the program makes now. Its
        // own thread does not wait: the call may end only with the fault.
        let in_flight = state.calls.in_flight.as_ref().filter(|call| call.tid != tid);
        let waits_for_call = in_flight.is_some() && space.wants_call_over.load(Relaxed);
        if !waits_for_call && !self.spaces.all().iter().any(may_give) {
            return false;
        }
        let is_in_call = || matches!(procfs::current_call(tid), CurrentCall::In { .. });
        let tried = Tried {
            left: self.counts.left(),
            in_vain: self.counts.all_asked_in_vain.load(Relaxed),
            beyond_help: self.counts.found_beyond_help.load(Relaxed),
        };
        let has_agent = state.has_agent();
        let waits = state.faults.waits.get_or_insert_with(|| WaitsForRoom::begin(tried));
        let waited = waits.since.elapsed();
        let is_hurried = !has_agent && waited >= PATIENCE_IN_CALL && is_in_call();
        let patience = if is_hurried { PATIENCE_IN_CALL } else { PATIENCE };
        let goes_on = waits.is_in_vain(tried, patience)
            || waited >= patience && self.budget.has_slack()
            || waited >= MOST_PATIENCE;
        if goes_on {
            add(&self.counts.filled_without_room, 1);
        }
        if waited >= MOST_PATIENCE {
            // The next begins anew: the first page that one gets may be all that it needs.
            state.faults.waits = None;
        }
        !goes_on
    }
}

/// Whether a thread that waits for a page can be stopped meanwhile: it is in no call, and no
/// debugger holds it.
fn may_be_stopped(tid: i32) -> bool {
    procfs::current_call(tid) == CurrentCall::Outside
        && !process::is_own_thread(tid)
        && procfs::tracer(tid).is_none_or(process::is_own_thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CLEAR_ALLOWANCE_BYTES, PAGE_BYTES};
    use crate::pager::tests::pager_and_space;
    use crate::sys::uffd::Userfault;
    use casemate_pages::SpaceId;

    const SLACK: u64 = CLEAR_ALLOWANCE_BYTES / 2 / PAGE_BYTES as u64;

    /// Whether a fault waits that has waited for so long, and the last page left so long ago; all
    /// were `asked` since. `above` pages more than the limit are in use. And whether the next
    /// begins its wait anew.
    fn waits(waited: Duration, last: Duration, asked: bool, above: u64) -> (bool, bool) {
        let (pager, space) = pager_and_space();
        let file = std::fs::File::open("/dev/null").expect("there is one");
        let uffd = Userfault::unusable(file.into());
        // It may get an agent, and give room then.
        pager.add_space(&Space::new(SpaceId(2), uffd, SpaceState::default()));
        pager.budget.track(pager.budget.limit() + above);
        let ago = |time| Instant::now().checked_sub(time).expect("the machine runs for longer");
        let mut state = SpaceState::default();
        let tried = Tried { left: pager.counts.left(), in_vain: 0, beyond_help: 0 };
        pager.counts.all_asked_in_vain.store(u64::from(asked), Relaxed);
        state.faults.waits =
            Some(WaitsForRoom { since: ago(waited), last: (tried, ago(last)), helpless: None });
        // There is no thread of that number.
        let waits = pager.fault().waits_for_room(&space, &mut state, 0);
        assert_eq!(pager.counts.filled_without_room.load(Relaxed), u64::from(!waits));
        (waits, state.faults.waits.is_none())
    }

    #[test]
    fn who_waits_while_pages_leave_goes_on_only_within_what_the_bound_allows() {
        let (soon, late) = (PATIENCE / 2, PATIENCE * 2);
        assert_eq!(waits(soon, Duration::ZERO, true, 0), (true, false));
        assert_eq!(waits(late, Duration::ZERO, true, SLACK - 1), (false, false));
        assert_eq!(waits(late, Duration::ZERO, true, SLACK), (true, false));
        assert_eq!(waits(late, soon, true, SLACK), (true, false));
    }

    /// On a busy machine no page leaves because an agent has no processor, while another thread
    /// has the lock of its space and waits for it.
    #[test]
    fn where_no_page_leaves_though_all_were_asked_a_fault_is_served_without_room() {
        let late = PATIENCE * 2;
        assert_eq!(waits(late, late, true, 10 * SLACK), (false, false));
        assert_eq!(waits(late, late, false, 10 * SLACK), (true, false));
    }

    #[test]
    fn none_waits_for_ever_and_the_next_waits_as_long() {
        let nearly = MOST_PATIENCE - PATIENCE;
        assert_eq!(waits(nearly, Duration::ZERO, true, SLACK), (true, false));
        assert_eq!(waits(MOST_PATIENCE, Duration::ZERO, false, SLACK), (false, true));
    }

    #[test]
    fn a_page_that_leaves_begins_the_standstill_anew() {
        let tried = |left, in_vain| Tried { left, in_vain, beyond_help: 0 };
        let mut waits = WaitsForRoom::begin(tried(7, 1));
        waits.last.1 = waits.last.1.checked_sub(PATIENCE).expect("the machine runs for longer");
        assert!(!waits.is_in_vain(tried(7, 1), PATIENCE), "not all were asked since");
        assert!(waits.is_in_vain(tried(7, 2), PATIENCE));
        assert!(!waits.is_in_vain(tried(8, 3), PATIENCE));
        assert!(!waits.is_in_vain(tried(8, 4), PATIENCE));
    }

    /// Few pages leave one process after the other, and come back.
    #[test]
    fn where_pinned_pages_take_all_room_none_waits_longer_though_pages_leave() {
        let tried = |left, beyond_help| Tried { left, in_vain: beyond_help, beyond_help };
        let mut waits = WaitsForRoom::begin(tried(7, 1));
        assert!(!waits.is_in_vain(tried(8, 2), PATIENCE), "it has just begun");
        waits.since = waits.since.checked_sub(PATIENCE).expect("the machine runs for longer");
        assert!(waits.is_in_vain(tried(9, 2), PATIENCE));
    }
}
