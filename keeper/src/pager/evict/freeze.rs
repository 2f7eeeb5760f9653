//! Eviction of pages whose mapping may not be written (code of a just-in-time compiler, data that
//! was made read-only), so that no staging can take them: the agent moves them aside as a mapping.
//!
//! What was pinned for I/O before its mapping became read-only may still be written to by a device,
//! and a mapping moves with its pinned pages. So what lies aside leaves by `UFFDIO_MOVE`, which
//! refuses pinned pages. If it refuses one, all that was moved aside with it is put back.

use super::move_out::{Run, lock_as_meant, ready_staging, runs_of};
use super::{Evict, Leaving, keep};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, Hand, OPS, Op, StagingKind};
use crate::pager::Stop;
use crate::pager::agent::Broken;
use crate::pager::aside::Aside;
use crate::pager::rights::{learn_rights, make_sure_of_rights, staging_for};
use crate::pager::space::{InFlight, Space, SpaceState, Until, Vpn, in_pages};
use crate::sys::clock::Instant;
use crate::sys::{procfs, sched};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Results of a [`Action::TakeAside`] from here on are addresses; below they count pages.
const PLACES: i64 = PAGE_BYTES as i64;
/// How long it is waited for a thread that may be changing rights: a hundred times as long as the
/// call takes.
const MOST_FOR_RIGHTS: Duration = Duration::from_millis(1);
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
            pages.iter().for_each(|l| keep(&mut state.clear, l));
            return Ok(0);
        }
        if !ready_staging(space, state, hand, StagingKind::Rw)? {
            pages.iter().for_each(|l| state.clear.pin(l.vpn));
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
        let first = self.take_aside(space, state, hand, (&ready, &locks), &whole)?;
        // A run that spans two mappings cannot be moved as one; of one that was put back some pages
        // may be pinned, and others not.
        let torn = first.stayed.into_iter().chain(first.put_back);
        let single = torn.map(|first| Run { first, pages: 1 }).collect::<Vec<_>>();
        let second = self.take_aside(space, state, hand, (&ready, &locks), &single)?;
        second.put_back.iter().for_each(|&i| state.clear.pin(ready[i].vpn));
        for i in second.stayed {
            learn_rights(state);
            match is_read_only(state, &ready[i]) {
                // Sealed by the kernel, for example: it stays until its rights change.
                true => state.clear.stuck.insert(ready[i].vpn..ready[i].vpn + 1),
                false => keep(&mut state.clear, &ready[i]),
            }
        }
        Ok(first.left + second.left)
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

    /// Takes runs of `group` aside.
    fn take_aside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        (group, locks): (&[Leaving], &[Option<Range<Vpn>>]),
        runs: &[Run],
    ) -> Result<Taken, Broken> {
        let mut taken = Taken::default();
        for runs in runs.chunks(OPS / OPS_OF_A_RUN) {
            let (ops, moves) = ops_for(runs, group, locks);
            let mut aside = Aside::taking(runs.iter().map(|run| source(run, group)).collect());
            let results = self.asks.run_attended(space, state, hand, &ops, &mut aside)?;
            self.was_undisturbed(space, state, group)?;
            // What was copied is there until the next request only.
            let mut aside_still = Vec::new();
            for (run, at) in runs.iter().zip(moves) {
                let pages = run.first..run.first + run.pages;
                match results[at].result {
                    ..0 => taken.stayed.extend(pages),
                    place @ PLACES.. => aside_still.push((run, place as u64)),
                    0..PLACES => {
                        for (i, leaving) in pages.clone().zip(&group[pages]) {
                            self.has_left(space, state, hand, i, leaving)?;
                            taken.left += 1;
                        }
                    }
                }
            }
            for (run, place) in aside_still {
                let from = (place, source(run, group), locks[run.first].is_some());
                self.put_back(space, state, hand, &mut aside, from)?;
                self.was_undisturbed(space, state, group)?;
                taken.put_back.extend(run.first..run.first + run.pages);
            }
        }
        Ok(taken)
    }

    /// Puts back what lies aside at `place`: the kernel refused to move all of it on.
    fn put_back(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        aside: &mut Aside,
        (place, source, is_locked): (u64, Range<u64>, bool),
    ) -> Result<(), Broken> {
        let len = source.end - source.start;
        wait_for_rights(state, &in_pages(source.start, source.end));
        let prot = rights_at(state, source.start)?;
        let back = Action::PutBack { aside: place, len, dst: source.start, prot };
        let mut ops = vec![Op::from(back)];
        if is_locked {
            ops.push(Action::Lock { addr: source.start, len, locked: true }.into());
        }
        aside.puts_back(source.clone());
        let results = self.asks.run_attended(space, state, hand, &ops, aside)?;
        if results[0].error != 0 {
            return Err(Broken::Stop(Stop::Internal(format!(
                "memory at {:#x} was moved aside to be evicted and cannot be put back: error {}",
                source.start, results[0].error
            ))));
        }
        // What is pinned may be written to without a fault; and what a fork shared is its own now.
        for vpn in source.step_by(PAGE_BYTES).map(|address| address / PAGE_BYTES as u64) {
            self.account.part(state, vpn);
            if let Some(page) = state.clear.pages.get_mut(&vpn).filter(|page| page.clean) {
                page.clean = false;
                self.records.forget(space.id, vpn)?;
            }
        }
        lock_as_meant(state, hand, StagingKind::Rw)?;
        Ok(())
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

/// What came of taking some runs aside: pages by their numbers in the group.
#[derive(Default)]
struct Taken {
    /// How many left.
    left: u64,
    /// The kernel did not move their mapping.
    stayed: Vec<usize>,
    /// One of their run is pinned, or could not be moved on for another reason.
    put_back: Vec<usize>,
}

fn source(run: &Run, group: &[Leaving]) -> Range<u64> {
    let start = group[run.first].vpn * PAGE_BYTES as u64;
    start..start + (run.pages * PAGE_BYTES) as u64
}

/// Waits until no thread is known that may be changing the rights of these pages: what is put back
/// has the rights that are read then. A thread that runs may have made its call long ago, and one
/// that makes the next may wait for the lock that we hold: none gets more time than the call needs.
fn wait_for_rights(state: &mut SpaceState, pages: &Range<Vpn>) {
    let begun = Instant::now();
    while state.calls.may_protect(pages) {
        if begun.elapsed() > MOST_FOR_RIGHTS {
            state.calls.forget_protecting(pages);
            return;
        }
        sched::give_way();
    }
}

/// The rights (`PROT_` bits) of the mapping at an address, as the kernel has them.
fn rights_at(state: &SpaceState, address: u64) -> Result<u32, Stop> {
    let in_doubt = |why: &str| {
        Stop::Internal(format!("the rights of the mapping at {address:#x} are not known: {why}"))
    };
    let pid = state.processes.some_pid().ok_or_else(|| in_doubt("its process has ended"))?;
    let mappings = procfs::mappings(pid).map_err(|error| in_doubt(&error.to_string()))?;
    let found = mappings.iter().find(|mapping| mapping.range.contains(&address));
    let found = found.ok_or_else(|| in_doubt("nothing is mapped there"))?;
    let bit = |has: bool, bit: i32| if has { bit as u32 } else { 0 };
    Ok(bit(found.read, libc::PROT_READ)
        | bit(found.write, libc::PROT_WRITE)
        | bit(found.exec, libc::PROT_EXEC))
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
        let Range { start: src, end } = source(run, group);
        let len = end - src;
        let lock = |addr, len, locked| Op::from(Action::Lock { addr, len, locked });
        let mapping = locks[run.first].as_ref().map(|mapping| {
            let bytes = PAGE_BYTES as u64;
            (mapping.start * bytes, (mapping.end - mapping.start) * bytes)
        });
        if let Some((start, bytes)) = mapping {
            ops.extend([lock(start, bytes, true), lock(src, len, false)]);
        }
        moves.push(ops.len());
        let (slot, staging) = (run.first as u64, StagingKind::Rw.id());
        ops.push(Action::TakeAside { src, len, slot, staging }.into());
        if mapping.is_some() {
            ops.push(lock(src, len, true));
        }
    }
    (ops, moves)
}
