//! The injections in progress: whose turn it is, and what comes of each.

use super::armed::{announced, hear};
use super::{Arming, PATIENCE};
use crate::announcer::CallsWait;
use crate::hand::{Announcements, Hand, InjectError, Injection, Progress};
use crate::handlers::Handlers;
use crate::pager::{Pager, Stop};
use crate::sys::sched;
use crate::watch::family::Family;
use crate::watch::precedence::Precedence;
use casemate_pages::SpaceId;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time that the watcher spends on injections without a pause, while other programs
/// grow that may pass the limit meanwhile.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);
/// The longest such time, where a look at very many processes takes longer than [`PATIENCE`].
const MOST_PATIENCE: Duration = Duration::from_millis(50);
/// Injections that go on at the same time. Of the processes that wait for theirs all are stopped.
const MOST_UNDER_WAY: usize = 4;
/// After so long an injection that does not end lets the next one go on.
const TURN: Duration = Duration::from_millis(20);
/// A process that has been stopped for so long is passed over for no other.
const LONGEST_PASSED_OVER: Duration = Duration::from_millis(50);

/// An injection in progress, and the space of the process when it began.
pub(super) struct Pending {
    pub injection: Injection,
    /// The process that owns the memory: this one, or the parent whose memory it uses since a
    /// vfork.
    pub owner: i32,
    space: Option<SpaceId>,
    /// When it was begun, which stops the process.
    pub begun: Instant,
    /// When it was first asked how far it is, in its turn.
    since: Option<Instant>,
    /// Whether its agent is known to the family.
    is_noted: bool,
}

impl Pending {
    /// One that begins now.
    pub fn new(injection: Injection, owner: i32, space: Option<SpaceId>) -> Self {
        Pending { injection, owner, space, begun: Instant::now(), since: None, is_noted: false }
    }

    /// Whether it has had its turn, which is over then.
    fn ends_turn(&mut self) -> bool {
        let is_over = self.since.is_some_and(|since| since.elapsed() > TURN);
        if is_over {
            self.since = None;
        }
        is_over
    }

    /// Makes its agent known to the family, once there is one. It may be given up before a census
    /// sees it.
    fn note_agent(&mut self, family: &mut Family, progress: &Progress) {
        self.is_noted = self.is_noted
            || match (progress, self.injection.agent_pid()) {
                (Progress::Done(hand), _) => {
                    family.note_agent(hand.agent_pid(), || !hand.has_ended())
                }
                (_, Some(agent)) => family.note_agent(agent, || self.injection.agent_lives()),
                (_, None) => false,
            };
    }
}

impl Arming {
    pub(super) fn sort_pending(&mut self, asking: &[i32]) {
        let waits =
            |of: &Pending| asking.contains(&of.owner) || asking.contains(&of.injection.pid());
        self.pending.sort_by_key(|pending| turn(pending.begun.elapsed(), waits(pending)));
    }

    /// Takes the steps that are due, without sleeping for a while: until its agent is in place, the
    /// program can touch new memory.
    pub(super) fn proceed(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        looked: Instant,
        precedence: &mut Precedence,
    ) -> Result<(), Stop> {
        // Of many processes a look takes long. At least half of the time is for their agents.
        let least = match pager.budget.may_overflow() && family.unarmed_growing() > 0 {
            true => LEAST_PATIENCE,
            false => PATIENCE,
        };
        // A small limit is kept by announced calls, and judged at looks: these come often.
        let most = if pager.budget.is_small() { PATIENCE } else { MOST_PATIENCE };
        let patience = looked.elapsed().clamp(least, most);
        let until = Instant::now() + patience;
        while !self.pending.is_empty() && Instant::now() < until {
            self.step(pager, handlers, family, until)?;
            precedence.see_to();
            sched::give_way();
        }
        Ok(())
    }

    /// Takes a step with each of the first injections, or with as many of them as there is time
    /// for.
    fn step(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        until: Instant,
    ) -> Result<(), Stop> {
        let (mut still, mut had_turn, mut asked) = (Vec::new(), Vec::new(), 0);
        for mut pending in std::mem::take(&mut self.pending) {
            pager.growing.lock().stop(pending.injection.pid(), &pending.injection.stopping());
            let is_over = pending.injection.is_over();
            if !is_over && (asked == MOST_UNDER_WAY || Instant::now() >= until) {
                still.push(pending);
                continue;
            }
            asked += usize::from(!is_over);
            pending.since.get_or_insert_with(Instant::now);
            let progress = pending.injection.poll();
            pending.note_agent(family, &progress);
            let is_armed = match progress {
                Progress::Pending => {
                    let turn_is_over = pending.ends_turn();
                    if turn_is_over { &mut had_turn } else { &mut still }.push(pending);
                    continue;
                }
                Progress::Done(hand) => self.done(pager, handlers, family, &mut pending, hand)?,
                Progress::Failed(error) => {
                    self.gave_up(pager, family, &mut pending, &error)?;
                    false
                }
            };
            if is_armed {
                self.armed.push((pending.injection, Instant::now()));
            } else if !pending.injection.let_go() {
                self.thawing.push(pending.injection);
            }
        }
        still.extend(had_turn);
        self.pending = still;
        Ok(())
    }

    /// An injection has made its agent. Whether the process is armed with it: the process may have
    /// executed another program meanwhile, or been found to be a forked child. Then the agent holds
    /// the wrong userfaultfd, and the injection starts again.
    fn done(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        pending: &mut Pending,
        hand: Hand,
    ) -> Result<bool, Stop> {
        let pid = pending.injection.pid();
        let space = family.processes.get(&pending.owner).map(|p| p.space);
        let (is_announced, listener) =
            announced(pager, pid, pending.injection.take_announcements());
        let mut is_armed = false;
        if space == Some(pending.space) {
            // Of those that slept some may be awake. Their calls wait until the space exists;
            // otherwise the announcer would let them through unseen.
            match CallsWait::begin(pager, pid) {
                Ok(_calls_wait) => {
                    pager.growing.lock().forget(Instant::now(), pid);
                    self.arm(pager, handlers, family, pending.owner, hand, is_announced)?;
                    is_armed = true;
                }
                Err(stopping) => {
                    self.stopping.extend(stopping);
                    self.failed(pager, family, pid, &InjectError::Unsettled);
                }
            }
        }
        listener.map_or(Ok(()), |listener| hear(pager, pid, listener))?;
        Ok(is_armed)
    }

    /// An injection has made no agent.
    fn gave_up(
        &mut self,
        pager: &Arc<Pager>,
        family: &mut Family,
        pending: &mut Pending,
        error: &InjectError,
    ) -> Result<(), Stop> {
        let pid = pending.injection.pid();
        self.lost.extend(pending.injection.take_lost());
        // Under the filter its calls wait for an answer, whether the process is armed or not.
        if let Announcements::Listener(listener) = pending.injection.take_announcements() {
            hear(pager, pid, listener)?;
        }
        self.failed(pager, family, pid, error);
        Ok(())
    }
}

/// The order of processes that wait for their agents: those first that have been stopped for long,
/// the longest first, then those whose calls wait. Where processes come all the time, and each
/// makes such a call, others would never have their turn.
fn turn(stopped: Duration, waits: bool) -> (u8, Reverse<Duration>) {
    match stopped > LONGEST_PASSED_OVER {
        true => (0, Reverse(stopped)),
        false => (1 + u8::from(!waits), Reverse(Duration::ZERO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_been_stopped_for_long_is_passed_over_for_no_other() {
        let ms = Duration::from_millis;
        let mut all = [(ms(1), false), (ms(60), false), (ms(2), true), (ms(90), true)];
        all.sort_by_key(|&(stopped, waits)| turn(stopped, waits));
        assert_eq!(all, [(ms(90), true), (ms(60), false), (ms(2), true), (ms(1), false)]);
        // The others stay in the order in which they came.
        assert_eq!(turn(ms(1), true), turn(ms(50), true));
    }
}
