//! The end of an injection: the process comes under the pager, in a space of its own or in that of
//! which it is a forked copy.

use super::{Arming, SURPLUS_PATIENCE};
use crate::announcer;
use crate::event_counts::add;
use crate::hand::{Announcements, Hand, InjectError, StagingKind};
use crate::handlers::Handlers;
use crate::pager::space::{Mapped, Space, SpaceState};
use crate::pager::{Pager, Stop};
use crate::sys::capabilities;
use crate::sys::process;
use crate::sys::procfs;
use crate::sys::seccomp::Listener;
use crate::sys::uffd::{Refusal, Userfault, feature};
use crate::watch::family::Family;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Arming {
    /// Called when the agent is in place: makes a space for the process, or gives its space the
    /// agent.
    pub(super) fn arm(
        &mut self,
        pager: &Arc<Pager>,
        handlers: &Handlers,
        family: &mut Family,
        pid: i32,
        mut hand: Hand,
        is_announced: bool,
    ) -> Result<(), Stop> {
        family.are_on_their_own();
        let Some(process) = family.processes.get_mut(&pid) else { return Ok(()) };
        let uffd = hand.take_program_uffd();
        let parents = process.space.and_then(|id| pager.space(id));
        let is_forked = parents.is_some();
        let space = match parents {
            Some(space) => {
                // A forked child: its memory is registered with the descriptor it inherited.
                let mut state = space.state.lock();
                let unregistered = state.mapped.unregistered_address();
                if !self.can_evict(pager, family, pid, &mut hand, (&space.uffd, unregistered)) {
                    return Ok(());
                }
                space.agent.store(hand.agent_pid(), Relaxed);
                state.take_hand(hand)?;
                pager.events().is_armed(&mut state);
                state.calls.is_announced = is_announced;
                space.announced.store(is_announced, Relaxed);
                pager.events().begin_to_announce(&space, &mut state)?;
                drop(state);
                space
            }
            None => {
                let Some(uffd) = uffd else { return Ok(()) };
                let Some(space) = self.new_space(pager, family, pid, uffd, hand, is_announced)?
                else {
                    return Ok(());
                };
                handlers.listen(&space);
                space
            }
        };
        // So have those that share its memory.
        pager.growing.lock().retain(|other| other != pid && !process::same_memory(other, pid));
        add(&pager.counts.processes_armed, 1);
        let Some(process) = family.processes.get_mut(&pid) else { return Ok(()) };
        process.space = Some(space.id);
        process.refused_at_pages = None;
        family.armed.begin(procfs::living_thread(pid).unwrap_or(pid));
        process.survey(pager, &space, SURPLUS_PATIENCE)?;
        if !is_forked {
            // A child's memory is a copy of its parent's, and the child may end soon.
            process.reconcile(pager, &space, SURPLUS_PATIENCE)?;
        }
        pager.fault().hand_left_over(&space);
        Ok(())
    }

    fn new_space(
        &mut self,
        pager: &Arc<Pager>,
        family: &mut Family,
        pid: i32,
        uffd: OwnedFd,
        mut hand: Hand,
        is_announced: bool,
    ) -> Result<Option<Arc<Space>>, Stop> {
        let enabled = capabilities::with_ptrace(|| Userfault::enable(uffd, feature::PROGRAM));
        let uffd = match enabled {
            Ok(uffd) => uffd,
            Err(error) => {
                drop(hand);
                let why = format!(
                    "the kernel refused the fork event of userfaultfd ({error}); \
                     run `casemate doctor` for the remedy"
                );
                self.unprotectable(pager, family, pid, &why);
                return Ok(None);
            }
        };
        let unregistered = Mapped::default().unregistered_address();
        if !self.can_evict(pager, family, pid, &mut hand, (&uffd, unregistered)) {
            return Ok(None);
        }
        let id = pager.new_space_id();
        let state = SpaceState::armed(pid, hand, is_announced)?;
        pager.open_space(id)?;
        let space = Space::within(pager.quotas.of_process(pid), id, uffd, state);
        space.heard.store(true, Relaxed);
        pager.add_space(&space);
        Ok(Some(space))
    }

    /// Makes the agent's first staging, without which no page can be evicted, and returns whether
    /// that succeeded. Also false if the process has executed another program: then the agent is in
    /// the new program's memory, where the space's address is not registered.
    fn can_evict(
        &self,
        pager: &Pager,
        family: &mut Family,
        pid: i32,
        hand: &mut Hand,
        (uffd, unregistered): (&Userfault, u64),
    ) -> bool {
        let mut register = |start, len| uffd.register(start, len);
        let Err(error) = hand.make_staging(StagingKind::Rw, &mut register, &mut || {}) else {
            return true;
        };
        let is_gone = uffd.quiet(unregistered) == Err(Refusal::SpaceGone);
        if !is_gone && error.raw_os_error() != Some(libc::ESRCH) {
            let error = InjectError::call(pid, "the mmap of the agent", error);
            self.unprotectable(pager, family, pid, &error.to_string());
        }
        false
    }
}

/// Whether the calls of process `pid` are announced from now on, and their listener if it is new.
pub(super) fn announced(
    pager: &Pager,
    pid: i32,
    announcements: Announcements,
) -> (bool, Option<OwnedFd>) {
    match announcements {
        Announcements::Listener(listener) => {
            let descendants = procfs::descendants(pid);
            pager.heard.lock().begin(pid, descendants);
            return (true, Some(listener));
        }
        Announcements::Inherited => {
            pager.heard.lock().insert(pid);
            return (true, None);
        }
        Announcements::Refused(why) => drop(pager.unannounced.set(why)),
        Announcements::None => {}
    }
    add(&pager.counts.processes_unannounced, 1);
    (false, None)
}

/// Starts to answer the calls of process `pid`, which have been waiting.
pub(super) fn hear(pager: &Arc<Pager>, pid: i32, listener: OwnedFd) -> Result<(), Stop> {
    announcer::listen(pager, Listener::new(listener))
        .map_err(|error| Stop::Internal(format!("hearing the calls of process {pid}: {error}")))
}
