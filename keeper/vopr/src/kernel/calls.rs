//! The calls that change an address space.

use super::{Kernel, Mapping, PAGE, Pte, Raw, Rights, State, Verdict, Wait};
use crate::canary::Canary;
use crate::scheduler;
use std::ops::Range;

/// Where the heap begins, and the most that it may have.
const HEAP: u64 = 0x4000;
const MOST_HEAP_PAGES: u64 = 0x1000;
/// Where the kernel begins to look for a place.
const LOWEST: u64 = 0x1_0000;

const EINVAL: i64 = -(libc::EINVAL as i64);
const ENOMEM: i64 = -(libc::ENOMEM as i64);
const EFAULT: i64 = -(libc::EFAULT as i64);
const ENODEV: i64 = -(libc::ENODEV as i64);

/// A file that can be mapped.
pub const FILE: u64 = 3;
/// A file whose mapping is refused before anything is replaced.
pub const REFUSED_FILE: u64 = 4;
/// A file that refuses to be mapped when what it was to replace is gone.
pub const BROKEN_FILE: u64 = 5;

/// The last argument of an mremap that takes pages aside, or puts them back: to the program they
/// stay where they are.
pub const ASIDE: u64 = 1;

/// Advice that changes something here.
const MADV_POPULATE_WRITE: u64 = 23;
const MADV_GUARD_INSTALL: u64 = 102;
const MADV_GUARD_REMOVE: u64 = 103;

impl Kernel {
    /// A call of the program's: announced, if it is armed.
    pub fn call(&self, tid: i32, number: i64, arguments: [u64; 6]) -> i64 {
        scheduler::point();
        let is_guard = number == libc::SYS_madvise
            && matches!(arguments[2], MADV_GUARD_INSTALL | MADV_GUARD_REMOVE);
        let is_unheard = is_guard && Canary::UnheardGuards.is_put_back();
        if self.lock().nature.announces && !is_unheard {
            let id = {
                let mut state = self.lock();
                // It is in the call, as far as can be seen, from here on.
                if let Some(task) = state.tasks.get_mut(&tid) {
                    task.call = Some(number);
                }
                let id = state.number();
                state.announced.push_back((id, tid, number, arguments));
                id
            };
            scheduler::trace(|| format!("announces {number} {arguments:x?}"));
            scheduler::wake(Wait::Listener.into());
            loop {
                let verdict = self.lock().verdicts.remove(&id);
                match verdict {
                    Some(Verdict::Result(result)) => {
                        if let Some(task) = self.lock().tasks.get_mut(&tid) {
                            task.call = None;
                        }
                        return result;
                    }
                    Some(Verdict::GoOn) => break,
                    None => drop(scheduler::sleep(Wait::Answer(tid).into(), None)),
                }
            }
        }
        self.perform(tid, number, arguments)
    }

    /// Makes a call, as thread or agent `tid`.
    pub fn perform(&self, tid: i32, number: i64, arguments: [u64; 6]) -> i64 {
        let mm = {
            let mut state = self.lock();
            let Some(task) = state.tasks.get_mut(&tid) else { return EFAULT };
            task.call = Some(number);
            task.mm
        };
        let [a, b, c, ..] = arguments;
        let result = match number {
            libc::SYS_mmap => self.map(mm, arguments),
            libc::SYS_munmap => self.unmap(mm, a, b),
            libc::SYS_mremap => self.remap(mm, arguments),
            libc::SYS_brk => self.set_break(mm, a),
            libc::SYS_mprotect => self.set_rights(mm, a, b, c),
            libc::SYS_madvise => self.advise(tid, mm, a, b, c),
            libc::SYS_fork => self.fork(tid, mm),
            _ => EINVAL,
        };
        scheduler::trace(|| format!("makes {number} {arguments:x?}: {result:#x}"));
        if let Some(task) = self.lock().tasks.get_mut(&tid) {
            task.call = None;
        }
        result
    }

    fn map(&self, mm: u32, arguments: [u64; 6]) -> i64 {
        let [wish, len, prot, flags, file, _] = arguments;
        let pages = len.div_ceil(PAGE);
        if pages == 0 || !wish.is_multiple_of(PAGE) {
            return EINVAL;
        }
        let has = |flag: i32| flags & flag as u64 != 0;
        let is_fixed = has(libc::MAP_FIXED);
        let of_file = has(libc::MAP_PRIVATE) && !has(libc::MAP_ANONYMOUS);
        scheduler::point();
        let (range, told, result) = self.write(mm, |state| {
            let wish = wish / PAGE;
            let start = match is_fixed {
                true => wish,
                false if wish != 0 && state.mm(mm).is_free(&(wish..wish + pages)) => wish,
                false => state.mm(mm).gap(LOWEST, pages),
            };
            let range = start..start + pages;
            if of_file && file == REFUSED_FILE {
                // The event is raised all the same.
                let told = state.told_of(mm, &range);
                told.iter().for_each(|&uffd| state.announce_event(uffd));
                return (range, told, ENOMEM);
            }
            let told = state.unmap_told(mm, &range);
            if of_file && file == BROKEN_FILE {
                return (range, told, ENODEV);
            }
            let mapping = Mapping { of_file, ..Mapping::new(range.end, Rights::of(prot)) };
            state.mm(mm).mappings.insert(range.start, mapping);
            state.mm(mm).merge(&range);
            let at = (range.start * PAGE) as i64;
            (range, told, at)
        });
        self.tell_unmapped(&told, &range);
        result
    }

    /// The break that is set, or the one that was where the other is refused.
    fn set_break(&self, mm: u32, end: u64) -> i64 {
        scheduler::point();
        let (told, range, pages) = self.write(mm, |state| {
            let before = state.mm(mm).heap_pages;
            let wanted = end.div_ceil(PAGE).checked_sub(HEAP).filter(|&w| w <= MOST_HEAP_PAGES);
            let Some(after) = wanted else { return (Vec::new(), 0..0, before) };
            let (grown, gone) = (HEAP + before..HEAP + after, HEAP + after..HEAP + before);
            if after > before && !state.mm(mm).is_free(&grown) {
                return (Vec::new(), 0..0, before);
            }
            state.mm(mm).heap_pages = after;
            if after > before {
                let mapping = Mapping::new(grown.end, Rights::of(3));
                state.mm(mm).mappings.insert(grown.start, mapping);
                state.mm(mm).merge(&grown);
                return (Vec::new(), 0..0, after);
            }
            let told = if gone.is_empty() { Vec::new() } else { state.unmap_told(mm, &gone) };
            (told, gone, after)
        });
        self.tell_unmapped(&told, &range);
        ((HEAP + pages) * PAGE) as i64
    }

    fn unmap(&self, mm: u32, addr: u64, len: u64) -> i64 {
        if !addr.is_multiple_of(PAGE) || len == 0 {
            return EINVAL;
        }
        let range = addr / PAGE..(addr + len).div_ceil(PAGE);
        scheduler::point();
        let told = self.write(mm, |state| state.unmap_told(mm, &range));
        self.tell_unmapped(&told, &range);
        0
    }

    fn tell_unmapped(&self, told: &[usize], range: &Range<u64>) {
        let message = Raw::Unmap { start: range.start * PAGE, end: range.end * PAGE };
        told.iter().for_each(|&uffd| self.raise(uffd, message));
    }

    fn remap(&self, mm: u32, arguments: [u64; 6]) -> i64 {
        let [addr, old, new, flags, to, aside] = arguments;
        let has = |flag: i32| flags & flag as u64 != 0;
        let stays = has(libc::MREMAP_DONTUNMAP);
        let is_fixed = has(libc::MREMAP_FIXED);
        let source = addr / PAGE..(addr + old) / PAGE;
        let pages = new.div_ceil(PAGE);
        let target = to / PAGE..to / PAGE + pages;
        let overlaps = is_fixed && target.start < source.end && source.start < target.end;
        let is_odd = !(addr | old | to).is_multiple_of(PAGE) || old == 0 || pages == 0;
        if is_odd || overlaps || (stays || is_fixed) && (old != new || !has(libc::MREMAP_MAYMOVE)) {
            return EINVAL;
        }
        scheduler::point();
        let mut lost_rights = false;
        let done = self.write(mm, |state| {
            let (_, mapping) = state.mm(mm).find(source.start).ok_or(EFAULT)?;
            if source.end > mapping.end {
                return Err(EFAULT);
            }
            let is_last = source.end == mapping.end;
            let mapping = mapping.clone();
            let count = source.end - source.start;
            let grown = source.end..source.start + pages;
            if !is_fixed && !stays && pages <= count {
                let tail = source.start + pages..source.end;
                let told = if tail.is_empty() { Vec::new() } else { state.unmap_told(mm, &tail) };
                return Ok(Remapped { at: source.start, moved: None, early: told, range: tail });
            }
            if !is_fixed && !stays && is_last && state.mm(mm).is_free(&grown) {
                let (start, _) = state.mm(mm).find(source.start).expect("just found");
                state.mm(mm).mappings.get_mut(&start).expect("just found").end = grown.end;
                state.mm(mm).merge(&grown);
                return Ok(Remapped {
                    at: source.start,
                    moved: None,
                    early: Vec::new(),
                    range: 0..0,
                });
            }
            if !has(libc::MREMAP_MAYMOVE) {
                return Err(ENOMEM);
            }
            let start = if is_fixed { target.start } else { state.mm(mm).gap(LOWEST, pages) };
            let target = start..start + pages;
            let truth = (aside == ASIDE).then(|| state.mm(mm).truth.clone());
            if aside == ASIDE && !stays {
                // The program may have set other rights while its pages were aside.
                let parts = state.mm(mm).parts(&target);
                lost_rights = parts.iter().any(|(_, part)| part.rights != mapping.rights);
            }
            let early = state.unmap_told(mm, &target);
            let uffd = mapping.uffd.filter(|&uffd| state.uffds[uffd].has_events);
            state.move_mapping(mm, &source, &target, mapping);
            match truth {
                Some(truth) => state.mm(mm).truth = truth,
                None => state.mm(mm).truth.shift(&source, target.start),
            }
            if !stays {
                state.unmap(mm, &source);
            }
            if let Some(uffd) = uffd {
                state.announce_event(uffd);
                if !stays {
                    state.announce_event(uffd);
                }
            }
            Ok(Remapped { at: start, moved: uffd, early, range: target })
        });
        if lost_rights {
            let what = format!("pages put back at {to:#x} have other rights than the program set");
            scheduler::end(Some(what));
        }
        let done = match done {
            Ok(done) => done,
            Err(error) => return error,
        };
        self.tell_unmapped(&done.early, &done.range);
        if let Some(uffd) = done.moved {
            self.raise(uffd, Raw::Remap { from: addr, to: done.at * PAGE, len: old });
            if !stays {
                self.raise(uffd, Raw::Unmap { start: addr, end: addr + old });
            }
        }
        (done.at * PAGE) as i64
    }

    fn set_rights(&self, mm: u32, addr: u64, len: u64, prot: u64) -> i64 {
        let range = addr / PAGE..(addr + len).div_ceil(PAGE);
        scheduler::point();
        self.write(mm, |state| {
            if !state.mm(mm).is_mapped(&range) {
                return ENOMEM;
            }
            state.mm(mm).change(&range, |mapping| mapping.rights = Rights::of(prot));
            0
        })
    }

    fn advise(&self, tid: i32, mm: u32, addr: u64, len: u64, advice: u64) -> i64 {
        if !addr.is_multiple_of(PAGE) {
            return EINVAL;
        }
        let range = addr / PAGE..(addr + len).div_ceil(PAGE);
        scheduler::point();
        let parts = self.lock().mm(mm).parts(&range);
        match advice as i32 {
            libc::MADV_DONTNEED | libc::MADV_DONTNEED_LOCKED => {
                parts.iter().for_each(|(part, mapping)| self.drop_pages(mm, part, mapping.uffd));
            }
            libc::MADV_DONTFORK => self.change(mm, &range, |m| m.not_forked = true),
            libc::MADV_DOFORK => self.change(mm, &range, |m| m.not_forked = false),
            // Of no file.
            libc::MADV_WIPEONFORK => {
                for (part, mapping) in &parts {
                    if mapping.of_file {
                        return EINVAL;
                    }
                    self.change(mm, part, |m| m.wiped_on_fork = true);
                }
            }
            libc::MADV_KEEPONFORK => self.change(mm, &range, |m| m.wiped_on_fork = false),
            _ if advice == MADV_POPULATE_WRITE => {
                for vpn in range.clone() {
                    if self.populate(tid, vpn).is_err() {
                        return EFAULT;
                    }
                }
            }
            _ if advice == MADV_GUARD_INSTALL => {
                parts.iter().for_each(|(part, _)| self.install_guards(mm, part));
            }
            _ if advice == MADV_GUARD_REMOVE => {
                let mut state = self.lock();
                for vpn in range.clone() {
                    if state.mm(mm).ptes.get(&vpn) == Some(&Pte::Guard) {
                        state.mm(mm).ptes.remove(&vpn);
                    }
                }
            }
            _ => return EINVAL,
        }
        let mapped: u64 = parts.iter().map(|(part, _)| part.end - part.start).sum();
        if mapped == range.end - range.start { 0 } else { ENOMEM }
    }

    fn change(&self, mm: u32, range: &Range<u64>, how: impl Fn(&mut Mapping)) {
        self.write(mm, |state| state.mm(mm).change(range, &how));
    }

    /// `MADV_GUARD_INSTALL` of a part of one mapping, of which no event tells.
    fn install_guards(&self, mm: u32, part: &Range<u64>) {
        self.lock().mm(mm).truth.unsettle(part);
        self.begin_reading(mm);
        for vpn in part.clone() {
            scheduler::point();
            let mut state = self.lock();
            let _ = state.zap(mm, vpn);
            state.mm(mm).ptes.insert(vpn, Pte::Guard);
            state.mm(mm).truth.dropped_late(vpn);
        }
        self.lock().mm(mm).truth.settle(part);
        self.end_reading(mm);
    }

    /// `MADV_DONTNEED` of a part of one mapping. The event comes first: the pages go when it has
    /// been read.
    fn drop_pages(&self, mm: u32, part: &Range<u64>, uffd: Option<usize>) {
        let uffd = uffd.filter(|&uffd| self.lock().uffds[uffd].has_events);
        self.lock().mm(mm).truth.unsettle(part);
        if let Some(uffd) = uffd {
            loop {
                let mut state = self.lock();
                if state.uffds[uffd].busy == 0 {
                    state.announce_event(uffd);
                    break;
                }
                drop(state);
                scheduler::sleep(Wait::Mm(mm).into(), None);
            }
            self.raise(uffd, Raw::Remove { start: part.start * PAGE, end: part.end * PAGE });
        }
        self.begin_reading(mm);
        let there: Vec<u64> =
            self.lock().mm(mm).ptes.range(part.clone()).map(|(vpn, _)| *vpn).collect();
        for vpn in there {
            scheduler::point();
            let mut state = self.lock();
            // Guards stay.
            let is_guard = state.mm(mm).ptes.get(&vpn) == Some(&Pte::Guard);
            if !is_guard && state.zap(mm, vpn).is_some() {
                state.mm(mm).truth.dropped_late(vpn);
            }
        }
        self.lock().mm(mm).truth.settle(part);
        self.end_reading(mm);
    }
}

/// What an mremap came to.
struct Remapped {
    at: u64,
    /// The userfaultfd that is told of the move.
    moved: Option<usize>,
    /// The userfaultfds that are told of what was unmapped for it.
    early: Vec<usize>,
    range: Range<u64>,
}

impl State {
    /// Unmaps a range; returns the userfaultfds that must be told.
    fn unmap_told(&mut self, mm: u32, range: &Range<u64>) -> Vec<usize> {
        let told = self.told_of(mm, range);
        told.iter().for_each(|&uffd| self.announce_event(uffd));
        self.unmap(mm, range);
        told
    }

    fn move_mapping(
        &mut self,
        mm: u32,
        source: &Range<u64>,
        target: &Range<u64>,
        mapping: Mapping,
    ) {
        let space = self.mm(mm);
        let there: Vec<u64> = space.ptes.range(source.clone()).map(|(vpn, _)| *vpn).collect();
        for vpn in there {
            if let Some(pte) = space.ptes.remove(&vpn) {
                space.ptes.insert(vpn - source.start + target.start, pte);
            }
        }
        let moved = mapping.moved + source.start as i64 - target.start as i64;
        space.mappings.insert(target.start, Mapping { end: target.end, moved, ..mapping });
        space.merge(target);
    }
}
