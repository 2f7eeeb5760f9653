//! The keeper's threads beside the pager, as `handlers` and `watch` have them, and the kernel's
//! own: those that make room, listen, and move pages about.

use crate::hand::Hand;
use crate::kernel::Wait;
use crate::pager::evict::{IdleSince, Moment, Taken};
use crate::pager::plain;
use crate::pager::space::Space;
use crate::pager::{Pager, Stop};
use crate::scheduler;
use crate::world::TAKEN;
use casemate_keeper::ClearSize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The clock of the machine must decide nothing.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// A handler.
pub fn handle(pager: &Arc<Pager>) {
    let kernel = scheduler::kernel();
    loop {
        let uffd = kernel.poll();
        let spaces = pager.all_spaces();
        let Some(space) = spaces.into_iter().find(|space| space.uffd.number() == uffd) else {
            continue;
        };
        if let Err(stop) = pager.fault().attend(&space, &mut |_, _, _| {}) {
            pager.stop(stop);
        }
    }
}

/// The watcher.
pub fn watch(pager: &Arc<Pager>, resizes: bool) {
    let mut wanted = None;
    while pager.ending().is_none() {
        let looked = look(pager);
        let looked =
            looked.and_then(|()| if resizes { resize(pager, &mut wanted) } else { Ok(()) });
        if let Err(stop) = looked {
            pager.stop(stop);
        }
        pager.attention.await_ring(20 + scheduler::random(400));
    }
}

fn look(pager: &Arc<Pager>) -> Result<(), Stop> {
    measure(pager);
    for space in pager.all_spaces() {
        if space.is_gone() {
            pager.events().retire(&space);
            continue;
        }
        if !space.heard.swap(true, Relaxed) {
            scheduler::kernel().hear(space.uffd.number());
        }
        pager.fault().serve_left_over(&space)?;
        recognise(&space);
        arm(pager, &space)?;
        check_alive(&space);
        if let Some(mut state) = space.state.try_lock() {
            pager.events().find_copied(&mut state)?;
        }
        retire_idle(pager, &space)?;
        let pid = space.state.try_lock().and_then(|state| state.processes.pids.first().copied());
        if let Some(pid) = pid.filter(|_| !space.is_gone()) {
            pager.events().survey(&space, pid, FOR_EVER)?;
        }
    }
    pager.events().drop_ended()?;
    pager.evict().reclaim(FOR_EVER, Taken::PassOver)?;
    pager.evict().keep_quotas(FOR_EVER).map(drop)
}

/// What is resident and not tracked is counted anew: a survey adopts pages that may have come since
/// the last look, and takes them off that count.
fn measure(pager: &Pager) {
    let tracked: u64 = pager.all_spaces().iter().map(|space| space.clear_pages.get()).sum();
    let untracked = scheduler::kernel().lock().resident.saturating_sub(tracked);
    pager.budget.set_found(TAKEN + untracked, 0, 0);
}

/// Now and then the Clear gets another size, as `watch::resize` does it: a smaller one when all
/// fits.
fn resize(pager: &Pager, wanted: &mut Option<ClearSize>) -> Result<(), Stop> {
    if wanted.is_none() && scheduler::random(8) == 0 {
        let quarters = 4 + scheduler::random(5);
        let size = ClearSize::Bytes(ClearSize::FLOOR_BYTES / 4 * quarters);
        pager.plain.resize(plain::grace_pages(size));
        *wanted = Some(size);
    }
    let Some(size) = *wanted else { return Ok(()) };
    let budget = &pager.budget;
    let target = budget.limit_of(size);
    if target < budget.limit() {
        budget.aim_at(target);
    }
    let has_grown = target >= budget.limit_of(budget.promised());
    if has_grown || pager.evict().fit(FOR_EVER)? && budget.used() <= target {
        budget.promise(size);
        *wanted = None;
    }
    Ok(())
}

/// Now and then all that a space has counts as idle.
fn retire_idle(pager: &Pager, space: &Arc<Space>) -> Result<(), Stop> {
    if scheduler::random(16) > 0 || space.is_gone() {
        return Ok(());
    }
    let Some(mut state) = space.state.try_lock() else { return Ok(()) };
    let now = Moment::of(&state);
    let since = IdleSince { clear: now, grace: now, keeps_shared: scheduler::random(2) == 0 };
    while pager.evict().can_store_idle() && pager.evict().retire_idle(space, &mut state, since)? {}
    drop(state);
    pager.fault().serve_left_over(space)
}

/// Finds the process behind a child's descriptor, a while after the fork.
fn recognise(space: &Space) {
    if scheduler::random(3) > 0 {
        return;
    }
    let Some(mut state) = space.state.try_lock() else { return };
    if state.processes.pids.is_empty() {
        let kernel = scheduler::kernel();
        let kernel = kernel.lock();
        let mm = kernel.uffds[space.uffd.number()].mm;
        let found = kernel.tasks.values().find(|task| task.mm == mm && !task.is_agent);
        state.processes.pids.extend(found.map(|task| task.pid));
    }
}

/// A forked child gets an agent when it is to have one, as `watch::arming` does it.
fn arm(pager: &Pager, space: &Arc<Space>) -> Result<(), Stop> {
    if !space.may_be_armed() || !space.wants_agent.load(Relaxed) {
        return Ok(());
    }
    let mm = scheduler::kernel().lock().uffds[space.uffd.number()].mm;
    if space.state.lock().processes.pids.is_empty() || scheduler::kernel().lock().mm(mm).users == 0
    {
        return Ok(());
    }
    // Its staging is made when the first page leaves, and cannot always be.
    let hand = Hand::new(mm, space.uffd.number());
    let mut state = space.state.lock();
    space.agent.store(hand.agent_pid(), Relaxed);
    state.take_hand(hand)?;
    pager.events().is_armed(&mut state);
    space.announced.store(state.calls.is_announced, Relaxed);
    pager.events().begin_to_announce(space, &mut state)?;
    drop(state);
    pager.fault().serve_left_over(space)
}

/// A space ends with its last process; its agent with it.
fn check_alive(space: &Space) {
    let Some(mut state) = space.state.try_lock() else { return };
    let kernel = scheduler::kernel();
    if state.agent.hand.is_some() {
        state.processes.pids.retain(|&pid| !kernel.lock().threads_of(pid).is_empty());
        if state.processes.pids.is_empty() {
            drop(state.lose_hand());
            space.agent.store(0, Relaxed);
        }
    }
    let mm = kernel.lock().uffds[space.uffd.number()].mm;
    if kernel.lock().mm(mm).users == 0 {
        space.gone.store(true, Relaxed);
    }
}

/// The kernel moves pages to other frames, as compaction does.
pub fn compact() {
    let kernel = scheduler::kernel();
    loop {
        scheduler::sleep(Wait::Bell(0).into(), Some(1 + scheduler::random(60)));
        let chosen = {
            let mut state = kernel.lock();
            let count = state.frames.len() as u64;
            let at = if count == 0 { continue } else { scheduler::random(count) as usize };
            let is_mapped = state.frames[at].maps > 0;
            state.frames[at].migrating = is_mapped;
            is_mapped.then_some(at)
        };
        if let Some(at) = chosen {
            scheduler::sleep(Wait::Bell(0).into(), Some(1 + scheduler::random(40)));
            kernel.lock().frames[at].migrating = false;
            scheduler::wake(Wait::Migration.into());
        }
    }
}

/// An adversary that has the store's memory.
pub fn attack(pager: &Arc<Pager>, attacks: &std::sync::atomic::AtomicU64) {
    use std::os::fd::AsRawFd;
    let mut old: Vec<(i64, [u8; 4096])> = Vec::new();
    loop {
        scheduler::sleep(Wait::Bell(0).into(), Some(200 + scheduler::random(2000)));
        let Some(fds) = pager.store.adversary_fds() else { return };
        let slots = fds.crypt_bytes / 4096;
        if slots == 0 {
            continue;
        }
        let at = (scheduler::random(slots) * 4096) as i64;
        let mut page = [0_u8; 4096];
        let fd = fds.crypt.as_raw_fd();
        // SAFETY: the buffer is live and its length is passed.
        unsafe { libc::pread(fd, page.as_mut_ptr().cast(), 4096, at) };
        let (to, written) = match scheduler::random(4) {
            0 => {
                page[scheduler::random(4096) as usize] ^= 1 << scheduler::random(8);
                (at, page)
            }
            1 => ((scheduler::random(slots) * 4096) as i64, page),
            2 if !old.is_empty() => {
                let which = scheduler::random(old.len() as u64) as usize;
                old.swap_remove(which)
            }
            _ => {
                old.push((at, page));
                continue;
            }
        };
        // SAFETY: as above.
        unsafe { libc::pwrite(fd, written.as_ptr().cast(), 4096, to) };
        attacks.fetch_add(1, Relaxed);
        scheduler::trace(|| format!("attacks slot {}", to / 4096));
    }
}
