//! Eviction of pages whose mapping may not be written (code of a just-in-time compiler, data that
//! was made read-only), so that no staging can take them: the agent moves them aside as a mapping.
//!
//! `UFFDIO_MOVE` refuses pages that are pinned for I/O; this way does not. A page can only be
//! pinned for writing from before its mapping became read-only, and only fixed buffers of io_uring
//! stay pinned for long: processes that have any keep such pages in the Clear.

use super::move_out::{Run, runs_of};
use super::{Evict, Leaving, keep};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, Hand, OPS, Op};
use crate::pager::Stop;
use crate::pager::agent::Broken;
use crate::pager::rights::{learn_rights, make_sure_of_rights, staging_for};
use crate::pager::space::{InFlight, Space, SpaceState, Until, Vpn};
use crate::sys::procfs;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Ops that take a run of pages aside, if it is locked: locked as its pages come, unlocked, moved,
/// and locked again.
const OPS_OF_A_RUN: usize = 4;

impl Evict<'_> {
    /// Takes read-only pages out of the Clear.
    pub(super) fn freeze_batch(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        pages: &[Leaving],
    ) -> Result<u64, Broken> {
        self.end_call(space, state)?;
        // The kernel refuses no mremap while the program forks: the child would get what is aside.
        let is_busy = state.calls.in_flight.is_some();
        if is_busy {
            // It may be over all the same.
            space.wants_call_over.store(true, Relaxed);
            self.attention.ring();
        }
        if is_busy || state.processes.pids.iter().any(|&pid| procfs::has_fixed_buffers(pid)) {
            pages.iter().for_each(|l| keep(&mut state.clear, l));
            return Ok(0);
        }
        self.asks.settle(space, state)?;
        // Rights may have changed, and addresses been used again, since they were last looked up.
        // What is locked is not known from the program's calls.
        let some_pid = state.processes.some_pid();
        let locked = some_pid.and_then(|pid| procfs::status_bytes(pid, "VmLck"));
        let may_be_locked = locked.is_some_and(|bytes| bytes > 0);
        match may_be_locked {
            true => learn_rights(state),
            false => make_sure_of_rights(state),
        }
        let is_read_only = |state: &SpaceState, leaving: &Leaving| {
            state.clear.pages.contains_key(&leaving.vpn)
                && staging_for(&state.mapped.rights, leaving.vpn).is_none()
        };
        let (ready, changed): (Vec<Leaving>, Vec<Leaving>) =
            pages.iter().copied().partition(|l| is_read_only(state, l));
        changed.iter().for_each(|l| keep(&mut state.clear, l));
        let locks = |vpn| state.mapped.rights.locked_mapping(vpn).filter(|_| may_be_locked);
        let locks: Vec<_> = ready.iter().map(|leaving| locks(leaving.vpn)).collect();
        let whole = runs_of(&ready).into_iter().flat_map(|run| of_one_lock(&run, &locks));
        let whole: Vec<Run> = whole.collect();
        let (mut left, torn) = self.take_aside(space, state, hand, (&ready, &locks), &whole)?;
        // A run that spans two mappings cannot be moved as one.
        let single = torn.into_iter().map(|first| Run { first, pages: 1 }).collect::<Vec<_>>();
        let (more, refused) = self.take_aside(space, state, hand, (&ready, &locks), &single)?;
        left += more;
        for i in refused {
            learn_rights(state);
            match is_read_only(state, &ready[i]) {
                // Sealed by the kernel, for example: it stays until its rights change.
                true => state.clear.stuck.insert(ready[i].vpn..ready[i].vpn + 1),
                false => keep(&mut state.clear, &ready[i]),
            }
        }
        Ok(left)
    }

    /// Ends a call in flight that is over, and of which nothing else tells: a fork that failed, or
    /// `munlockall`. (Or it would be taken for one under way until the program makes another call
    /// that is announced.)
    fn end_call(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop> {
        let is_silent = |call: &&InFlight| matches!(call.until, Until::Fork | Until::Unlocked);
        let Some(call) = state.calls.in_flight.as_ref().filter(is_silent).cloned() else {
            return Ok(());
        };
        if call.has_left() == Some(true) {
            // A child's descriptor may just have arrived.
            self.asks.settle(space, state)?;
            if state.calls.in_flight.take_if(|other| *other == call).is_some() {
                state.clear.release(&(0..Vpn::MAX));
            }
        }
        Ok(())
    }

    /// Takes runs of `group` aside. Returns how many pages left, and which pages of `group` did
    /// not.
    fn take_aside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        (group, locks): (&[Leaving], &[Option<Range<Vpn>>]),
        runs: &[Run],
    ) -> Result<(u64, Vec<usize>), Broken> {
        let (mut left, mut stayed) = (0, Vec::new());
        for runs in runs.chunks(OPS / OPS_OF_A_RUN) {
            let (ops, moves) = ops_for(runs, group, locks);
            let sources: Vec<u64> = runs.iter().map(|run| source(run, group)).collect();
            let results = self.asks.run_attended(space, state, hand, &ops, &sources)?;
            self.was_undisturbed(space, state, group)?;
            for (run, at) in runs.iter().zip(moves) {
                let pages = run.first..run.first + run.pages;
                if results[at].result != run.pages as i64 {
                    stayed.extend(pages);
                    continue;
                }
                for (i, leaving) in pages.clone().zip(&group[pages]) {
                    self.has_left(space, state, hand, i, leaving)?;
                    left += 1;
                }
            }
        }
        Ok((left, stayed))
    }

    /// Unlike `UFFDIO_MOVE` the kernel does not refuse to move pages aside while another call is
    /// changing the same range. If one was, it is not known whose pages they were.
    fn was_undisturbed(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        group: &[Leaving],
    ) -> Result<(), Stop> {
        let mut pages = group.iter().map(|leaving| leaving.vpn);
        if self.asks.settle_beside(space, state, &mut pages)? {
            return Ok(());
        }
        Err(Stop::Internal(format!(
            "read-only memory at {:#x} was being evicted while another thread unmapped or moved \
             it, and it cannot be told whose contents were taken",
            group[0].vpn * PAGE_BYTES as u64
        )))
    }
}

fn source(run: &Run, group: &[Leaving]) -> u64 {
    group[run.first].vpn * PAGE_BYTES as u64
}

/// The parts of a run that are locked as one mapping, or not at all.
fn of_one_lock(run: &Run, locks: &[Option<Range<Vpn>>]) -> Vec<Run> {
    let mut first = run.first;
    let parts = locks[run.first..run.first + run.pages].chunk_by(PartialEq::eq);
    parts
        .map(|part| {
            let run = Run { first, pages: part.len() };
            first += part.len();
            run
        })
        .collect()
}

/// A move for each run, and which of the ops these are. What is moved aside leaves a mapping that
/// is locked no more, and counts as locked for ever: it is unlocked before, and locked afterwards,
/// as its pages come. Its whole mapping is, so that it stays one.
fn ops_for(runs: &[Run], group: &[Leaving], locks: &[Option<Range<Vpn>>]) -> (Vec<Op>, Vec<usize>) {
    let (mut ops, mut moves) = (Vec::new(), Vec::new());
    for run in runs {
        let (src, len) = (source(run, group), (run.pages * PAGE_BYTES) as u64);
        let lock = |addr, len, locked| Op::from(Action::Lock { addr, len, locked });
        let mapping = locks[run.first].as_ref().map(|mapping| {
            let bytes = PAGE_BYTES as u64;
            (mapping.start * bytes, (mapping.end - mapping.start) * bytes)
        });
        if let Some((start, bytes)) = mapping {
            ops.extend([lock(start, bytes, true), lock(src, len, false)]);
        }
        moves.push(ops.len());
        ops.push(Action::TakeAside { src, len, slot: run.first as u64 }.into());
        if mapping.is_some() {
            ops.push(lock(src, len, true));
        }
    }
    (ops, moves)
}
