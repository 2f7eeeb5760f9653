//! What becomes of a process that got no agent.

use super::{Arming, FEW_TRIES, MOST_WHILE_REFUSED, TRIES};
use crate::hand::InjectError;
use crate::outcome::Ending;
use crate::pager::Pager;
use crate::sys::{process, procfs};
use crate::watch::family::Family;
use crate::watch::process::Process;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Arming {
    pub(super) fn failed(
        &mut self,
        pager: &Pager,
        family: &mut Family,
        pid: i32,
        error: &InjectError,
    ) {
        if let InjectError::Disturbed { .. } = error {
            // It is killed, and may have ended before it could be found unprotected.
            let what = format!("process {pid} was stopped: {error}");
            return pager.stop_as(Ending::Unprotectable { what });
        }
        if let InjectError::Unheard(_) = error {
            let what = format!("process {pid} was stopped: {error}");
            return pager.stop_as(Ending::KeeperFailed { what });
        }
        let Some(failed) = family.processes.get_mut(&pid) else { return };
        failed.tried = Some(Instant::now());
        match error {
            InjectError::Gone | InjectError::Cancelled => {
                failed.refused_at_pages = None;
                return;
            }
            // The tracer is a thread of the keeper, which will detach or see the process end.
            InjectError::Traced { tracer } if process::is_own_thread(*tracer) => return,
            InjectError::Unsettled => {
                failed.unsettled += 1;
                return;
            }
            _ => {}
        }
        let final_error = failed.outgrows(pager)
            || match error {
                // It ends by itself, and the process takes no more meanwhile.
                InjectError::Executing => false,
                InjectError::Not64Bit
                | InjectError::NoSyscallInstruction
                | InjectError::Strict
                | InjectError::OwnEvents
                | InjectError::Deadline
                | InjectError::Dispatched(_)
                | InjectError::PidNamespace => true,
                // The limit on files, to which an agent's mailbox counts, does not change.
                InjectError::Keeper(why) if why.raw_os_error() == Some(libc::EFBIG) => true,
                // It has closed itself to its user, and this keeper may not look into it.
                InjectError::Keeper(why) if why.raw_os_error() == Some(libc::EACCES) => true,
                InjectError::Filtered { .. }
                | InjectError::Limited { .. }
                | InjectError::NoPlace => {
                    failed.tries += 1;
                    failed.tries > FEW_TRIES
                }
                _ => {
                    failed.tries += 1;
                    failed.tries > TRIES
                }
            };
        // A forked child's inherited memory is under the pager, but memory that it maps is not, and
        // none of its pages can be evicted.
        if final_error {
            self.unprotectable(pager, family, pid, &error.to_string());
        }
    }

    pub(super) fn unprotectable(&self, pager: &Pager, family: &mut Family, pid: i32, why: &str) {
        // It was to have an agent for a smaller Clear, which is given up. If it needs one for the
        // Clear that there is as well, that is tried next.
        let is_for_aim = family.processes.get(&pid).is_some_and(|p| p.is_tried_for_aim);
        if !self.allow_unprotected && (is_for_aim || pager.budget.has_room_but_for_aim()) {
            pager.budget.refuse_aim();
            return;
        }
        if let Some(process) = family.processes.get_mut(&pid) {
            pager.growing.lock().give_up(pid);
            process.unprotectable = true;
            if let Some(space) = process.space.and_then(|id| pager.space(id)) {
                space.unarmable.store(true, Relaxed);
            }
        }
        if !self.allow_unprotected && !procfs::has_ended(pid) {
            let name = procfs::printable(&procfs::name(pid).unwrap_or_default());
            pager.stop_as(Ending::Unprotectable {
                what: format!(
                    "process {pid} ({name}) cannot be protected: {why}; \
                     use --allow-unprotected to let it run all the same"
                ),
            });
            // Before it is let go: it may outrun those that are to end the run.
            process::signal(pid, libc::SIGKILL);
        }
    }
}

impl Process {
    /// Whether it has grown, since an agent was first refused it, by more than it may have without
    /// room. A refusal that passes is waited for only as long as it does not.
    fn outgrows(&mut self, pager: &Pager) -> bool {
        let now = self.resident.anon_pages;
        let before = *self.refused_at_pages.get_or_insert(now);
        now > before + MOST_WHILE_REFUSED && pager.budget.used() > pager.budget.limit()
    }
}
