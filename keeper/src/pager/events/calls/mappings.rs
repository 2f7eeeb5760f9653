//! mmap, munmap, mremap, brk and mprotect.

use super::locks::refuses_to_map_locked;
use super::{
    Answer, EFAULT, EINVAL, ENOMEM, EPERM, beside_agent, bytes, in_bytes, touches_agent, wait_for,
};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, Op};
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::space::{InFlight, Processes, Space, SpaceState, Until, Vpn, in_pages};
use crate::sys;
use crate::sys::clock::Instant;
use crate::sys::procfs;
use crate::sys::seccomp::Announced;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const MAP_TYPE: u64 = libc::MAP_TYPE as u64;
const MAP_PRIVATE: u64 = libc::MAP_PRIVATE as u64;
/// Linux 6.11.
pub(crate) const MAP_DROPPABLE: u64 = 8;
/// The page at which the addresses of programs end that ask for none above.
const END_OF_ADDRESSES: Vpn = (1 << 35) - 1;

impl Events<'_> {
    pub(super) fn map(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, prot, flags, fd, _] = call.arguments;
        let has = |flag: i32| flags & flag as u64 != 0;
        let replaces = has(libc::MAP_FIXED) && !has(libc::MAP_FIXED_NOREPLACE);
        let range = bytes(addr, len);
        if replaces && touches_agent(&state.agent, &range) {
            return Ok(Answer::Made(ENOMEM));
        }
        let is_anonymous = has(libc::MAP_ANONYMOUS)
            || has(libc::MAP_PRIVATE) && procfs::is_zero_device(call.tid, fd as i32);
        if !is_anonymous || has(libc::MAP_HUGETLB) {
            if has(libc::MAP_PRIVATE) && prot & libc::PROT_WRITE as u64 != 0 {
                space.has_mapped_data.store(true, Relaxed);
            }
            let matters = replaces && state.mapped.registered.touches(&range);
            return Ok(match matters {
                true => wait_for(&mut state.calls, call, Until::Replaced(range)),
                false => Answer::GoOn,
            });
        }
        let is_misplaced = has(libc::MAP_FIXED) && !addr.is_multiple_of(PAGE_BYTES as u64);
        if has(libc::MAP_LOCKED) && len > 0 && !is_misplaced {
            let refusal = refuses_to_map_locked(&state.agent, call, len);
            let is_droppable = flags & MAP_TYPE == MAP_DROPPABLE;
            if let Some(refusal) = refusal.or(is_droppable.then_some(EINVAL)) {
                return Ok(Answer::Made(refusal));
            }
        }
        // What is populated before it is registered would be counted by no budget.
        let eager = (libc::MAP_POPULATE | libc::MAP_LOCKED) as u64;
        let mut given = (flags | libc::MAP_ANONYMOUS as u64) & !eager;
        let is_droppable = flags & MAP_TYPE == MAP_DROPPABLE;
        if is_droppable {
            // The kernel may drop it, and need not. It is empty in a child.
            given = given & !MAP_TYPE | (libc::MAP_PRIVATE | libc::MAP_NORESERVE) as u64;
        }
        let implied = state.mapped.read_implies_exec && prot & libc::PROT_READ as u64 != 0;
        let prot = if implied { prot | libc::PROT_EXEC as u64 } else { prot };
        let map = Action::Map { addr, len, prot: prot as u32, flags: given as u32 };
        let made = self.make(space, state, &[map.into()])?;
        let result = made.results[0].result;
        if result == EPERM && !state.mapped.registered.touches(&range) {
            // The program may have rights that its agent gave up.
            return Ok(Answer::GoOn);
        }
        if result < 0 {
            // An event is raised for what was to be replaced, also if it was not.
            self.look_again(space, state, &range)?;
            return Ok(Answer::Made(result));
        }
        self.change_all(space, state, made.events)?;
        let range = bytes(result as u64, len);
        state.unmapped(&range);
        state.mapped.rights.set(&range, prot);
        if matches!(given & MAP_TYPE, MAP_PRIVATE) {
            self.take_on(space, state, &range)?;
        }
        let (addr, len) = (result as u64, (range.end - range.start) * PAGE_BYTES as u64);
        if is_droppable {
            let advice = libc::MADV_WIPEONFORK as u32;
            self.make(space, state, &[Action::Advise { addr, len, advice }.into()])?;
            state.mapped.unforked.insert(range.clone());
        }
        if has(libc::MAP_LOCKED) {
            self.lock_new(space, state, addr, len)?;
        }
        Ok(Answer::Made(result))
    }

    pub(super) fn unmap(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, ..] = call.arguments;
        let range = bytes(addr, len);
        let touches_agent = touches_agent(&state.agent, &range);
        if !addr.is_multiple_of(PAGE_BYTES as u64)
            || !touches_agent && !state.mapped.registered.touches(&range)
        {
            return Ok(Answer::GoOn);
        }
        if touches_agent && range.end > END_OF_ADDRESSES {
            return Ok(Answer::Made(EINVAL));
        }
        // An agent may lie in what the program reserved, and stays when that is given back.
        for part in beside_agent(&state.agent, &range) {
            let (addr, len) = in_bytes(&part);
            let made = self.make(space, state, &[Action::Unmap { addr, len }.into()])?;
            let result = made.results[0].result;
            if result < 0 {
                self.look_again(space, state, &part)?;
                return Ok(Answer::Made(result));
            }
            self.change_all(space, state, made.events)?;
            state.unmapped(&part);
        }
        Ok(Answer::Made(0))
    }

    pub(super) fn remap(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, old_len, new_len, flags, new_addr, _] = call.arguments;
        let is_fixed = flags & libc::MREMAP_FIXED as u64 != 0;
        let source = bytes(addr, old_len.max(1));
        let target = if is_fixed { bytes(new_addr, new_len) } else { 0..0 };
        if touches_agent(&state.agent, &source) || touches_agent(&state.agent, &target) {
            return Ok(Answer::Made(EINVAL));
        }
        if !state.mapped.registered.touches(&source) && !state.mapped.registered.touches(&target) {
            return Ok(Answer::GoOn);
        }
        let was_ours = state.mapped.registered.contains(source.start);
        let was_unforked = state.mapped.unforked.contains(source.end - 1);
        let moves_all =
            is_fixed && old_len == new_len && flags & libc::MREMAP_DONTUNMAP as u64 == 0;
        // The kernel would move those that are not registered, and then refuse.
        if moves_all && sys::moves_several() && parts_of(&state.processes, &source).len() > 1 {
            return self.move_several(space, state, &source, new_addr);
        }
        if new_len > old_len
            && old_len > 0
            && let Some(refusal) = self.lock_as_pages_come(space, state, addr, old_len)?
        {
            return Ok(refusal);
        }
        let action = Action::Remap { addr, old_len, new_len, flags: flags as u32, new_addr };
        let made = self.make(space, state, &[action.into()])?;
        let result = made.results[0].result;
        if result < 0 {
            self.look_again(space, state, &source)?;
            self.look_again(space, state, &target)?;
            return Ok(Answer::Made(result));
        }
        self.change_all(space, state, made.events)?;
        if was_ours && new_len > old_len {
            // The kernel extends a registered mapping; only what was there is in its event.
            let (old, new) = (bytes(result as u64, old_len), bytes(result as u64, new_len));
            let grown = old.end..new.end;
            let origin = state.mapped.origins.of(old.end - 1);
            state.unmapped(&grown);
            if let Some(origin) = origin {
                state.mapped.origins.set(&grown, &origin.file, origin.number + 1);
            }
            state.mapped.registered.insert(grown.clone());
            if was_unforked {
                // What was advised of the mapping holds for all of it.
                state.mapped.unforked.insert(grown);
            }
        }
        Ok(Answer::Made(result))
    }

    /// Linux moves several mappings at once since 6.17, but not if a userfaultfd is told of it:
    /// they are moved one by one, as the kernel itself would.
    pub(super) fn move_several(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        source: &Range<Vpn>,
        to: u64,
    ) -> Result<Answer, Stop> {
        let bytes_of = |range: &Range<Vpn>| (range.end - range.start) * PAGE_BYTES as u64;
        let parts = parts_of(&state.processes, source);
        let target = bytes(to, bytes_of(source));
        let overlaps = target.start < source.end && source.start < target.end;
        if overlaps || parts.first().is_none_or(|first| first.start != source.start) {
            return Ok(Answer::Made(EFAULT));
        }
        let unmap = Action::Unmap { addr: to, len: bytes_of(source) };
        let made = self.make(space, state, &[unmap.into()])?;
        self.change_all(space, state, made.events)?;
        state.unmapped(&target);
        for part in parts {
            let (addr, len) = (part.start * PAGE_BYTES as u64, bytes_of(&part));
            let new_addr = to + (part.start - source.start) * PAGE_BYTES as u64;
            let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u32;
            let remap = Action::Remap { addr, old_len: len, new_len: len, flags, new_addr };
            let made = self.make(space, state, &[remap.into()])?;
            let result = made.results[0].result;
            if result < 0 {
                self.look_again(space, state, &part)?;
                return Ok(Answer::Made(result));
            }
            self.change_all(space, state, made.events)?;
        }
        Ok(Answer::Made(to as i64))
    }

    pub(super) fn set_break(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        if state.mapped.read_implies_exec {
            // The agent's heap would not be executable. What the program adds is found by the next
            // survey.
            space.announced.store(false, Relaxed);
            return Ok(wait_for(&mut state.calls, call, Until::Left));
        }
        let ask = |end| Op::from(Action::Break { end });
        let made = self.make(space, state, &[ask(0), ask(call.arguments[0])])?;
        let ends = [made.results[0].result as u64, made.results[1].result as u64];
        self.change_all(space, state, made.events)?;
        let [before, after] = ends.map(|end| end.div_ceil(PAGE_BYTES as u64));
        if after > before {
            state.unmapped(&(before..after));
            self.take_on(space, state, &(before..after))?;
        }
        Ok(Answer::Made(ends[1] as i64))
    }

    /// New private memory of the program's comes under the pager before the program can touch it.
    pub(super) fn take_on(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
    ) -> Result<(), Stop> {
        // Nothing should be recorded there; what is would be the contents of an earlier mapping.
        self.dropped(space, state, range.clone())?;
        let bytes = PAGE_BYTES as u64;
        let (start, len) = (range.start * bytes, (range.end - range.start) * bytes);
        if space.uffd.register(start, len).is_err() {
            // It counts as unprotected when its pages are next counted.
            return Ok(());
        }
        state.mapped.registered.insert(range.clone());
        if state.mapped.locks_future {
            self.adopt_present(space, state, std::slice::from_ref(range))?;
        }
        Ok(())
    }
}

/// The rights are a hint only: where the call fails, a page that is to be moved out tells.
pub(super) fn protect(state: &mut SpaceState, call: &Announced) -> Answer {
    let [addr, len, prot, ..] = call.arguments;
    let range = bytes(addr, len);
    if touches_agent(&state.agent, &range) {
        return Answer::Made(ENOMEM);
    }
    if state.mapped.registered.touches(&range) {
        let (tid, number) = (call.tid, call.number);
        let call = InFlight { tid, number, until: Until::Left, since: Instant::now() };
        state.calls.protects(call, range.clone());
    }
    for part in state.mapped.registered.common_with(&range) {
        state.mapped.rights.set(&part, prot);
        state.clear.release(&part);
    }
    Answer::GoOn
}

/// The parts of mappings that lie in a range.
fn parts_of(processes: &Processes, range: &Range<Vpn>) -> Vec<Range<Vpn>> {
    let mappings =
        processes.some_pid().and_then(|pid| procfs::mappings(pid).ok()).unwrap_or_default();
    let parts = mappings.iter().map(|m| in_pages(m.range.start, m.range.end));
    parts
        .map(|part| part.start.max(range.start)..part.end.min(range.end))
        .filter(|part| part.start < part.end)
        .collect()
}
