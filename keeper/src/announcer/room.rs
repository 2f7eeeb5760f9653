//! Calls by which a process without an agent gets more memory when the Clear has little room.

use super::{Announcer, Home, works_for_us};
use crate::budget::Budget;
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::pager::events::calls::{Answer, MAP_DROPPABLE};
use crate::pager::events::growing::{Growing, Turn};
use crate::pager::events::recognise::owner_of_memory;
use crate::sys::clock::Instant;
use crate::sys::seccomp::Announced;
use crate::sys::{process, procfs};
use std::sync::atomic::Ordering::Relaxed;

/// Makes the kernel restart the call without the program noticing: the thread has been asked to
/// stop.
const ERESTARTNOINTR: i64 = 513;
/// More than any process may map without an agent.
const NOT_WITHOUT: u64 = 1 << 52;
/// Pages that a process may always map without an agent, so that small programs never need one.
const MOST_PAGES: u64 = 128;
/// Pages of `MAP_DROPPABLE` memory that a process may map without an agent, for glibc's generators
/// of random numbers. No userfaultfd takes such memory, so it can never be encrypted, whatever its
/// rights become; an agent maps private memory in its place.
const DROPPABLE_PAGES: u64 = 16;

impl Announcer<'_> {
    /// The answer to a call for which its process needs an agent first; none if it needs none.
    pub(super) fn room_first(&self, home: &Home, call: &Announced) -> Option<Answer> {
        let space = match home {
            Home::Space(space) if space.may_be_armed() => Some(space),
            Home::Unclaimed(_) => None,
            Home::Space(_) | Home::NotKnownYet => return None,
        };
        if !may_grow(call) {
            return None;
        }
        // It is armed before it makes another call.
        let pid = self.note(call.tid)?;
        // Memory that a program has from its file (`.bss`) takes no call.
        let has_executed = space.is_none() && self.pager.growing.lock().has_executed(pid);
        let from_file = has_executed.then(|| writable_pages(call.tid));
        let budget = &self.pager.budget;
        let moves_several = space.is_some() && moves_several(call);
        // What such a process may have without an agent, its part of the Clear has room for.
        let quota = self.pager.quotas.of_process(pid).map(|quota| quota.most_pages() / 16);
        let fits = |own| quota.is_none_or(|quota| own <= MOST_PAGES.min(quota));
        let mut growing = self.pager.growing.lock();
        if let Some(pages) = from_file {
            growing.begins(pid, pages);
        }
        let pages = if moves_several { NOT_WITHOUT } else { growth(&growing, pid, call) };
        // Memory that a thread maps for its agent needs no agent, nor does what the program maps
        // while the thread is seized: it is registered with the rest. A call that waits is the
        // program's own, even if its thread was seized since.
        let is_ours = !moves_several
            && !is_droppable(call)
            && !growing.waits(pid, call.id)
            && works_for_us(call.tid);
        let allows = |own, all| is_ours || fits(own) && allows(budget, own, all);
        match growing.ask(Instant::now(), pid, (call.id, call.tid), pages, allows) {
            Turn::Now => {
                budget.allow(if is_ours { 0 } else { pages });
                match call.number {
                    libc::SYS_brk => growing.sets_break(pid, call.arguments[0]),
                    _ if is_droppable(call) => growing.maps_droppable(pid, pages),
                    _ => {}
                }
                None
            }
            Turn::Later if self.may_wait(&mut growing, pid, call) => {
                if let Some(space) = space {
                    space.wants_agent.store(true, Relaxed);
                }
                self.pager.attention.stir();
                Some(Answer::Later)
            }
            Turn::Later | Turn::Without => {
                growing.let_go(pid, call.id);
                add(&self.pager.counts.grown_without_agent, 1);
                None
            }
            Turn::Anew => Some(Answer::Made(-ERESTARTNOINTR)),
        }
    }

    /// Whether a call can wait for an agent of its process. It cannot if it would block the
    /// injection.
    fn may_wait(&self, growing: &mut Growing, pid: i32, call: &Announced) -> bool {
        // A debugger waits for the thread to stop, and the agent for the debugger to let it go.
        if procfs::tracer(call.tid).is_some_and(|tracer| !process::is_own_thread(tracer)) {
            return false;
        }
        // A parent in a vfork cannot be stopped, so the agent is made in the child.
        let owner = owner_of_memory(pid).filter(|&owner| owner != pid);
        if let Some(owner) = owner.filter(|&owner| !procfs::sleeps_for_good(owner)) {
            growing.shares(pid, owner);
        }
        true
    }
}

/// Whether a process may map `own` pages without an agent, when all processes without agents map
/// `all` pages together.
pub(crate) fn allows(budget: &Budget, own: u64, all: u64) -> bool {
    let most = if budget.is_scarce() { MOST_PAGES.min(budget.limit() / 16) } else { budget.free() };
    // What they have not touched yet is kept free, and that is a quarter at most.
    let together = if budget.is_small() { budget.limit() / 4 } else { u64::MAX };
    own <= most && all <= budget.free().min(together).max(budget.limit() / 8)
}

/// Pages of a thread's mappings of no file that it may write, but for its stack.
fn writable_pages(tid: i32) -> u64 {
    let counts = |m: &&procfs::Mapping| m.is_protectable() && m.write && m.name != "[stack]";
    let bytes = |m: &procfs::Mapping| m.range.end - m.range.start;
    procfs::mappings(tid)
        .map_or(0, |all| all.iter().filter(counts).map(bytes).sum::<u64>() / PAGE_BYTES as u64)
}

/// Whether a call can give its process writable private memory.
fn may_grow(call: &Announced) -> bool {
    let [_, _, rights, flags, ..] = call.arguments;
    match call.number {
        libc::SYS_mmap if is_droppable(call) => true,
        libc::SYS_mmap => {
            rights & libc::PROT_WRITE as u64 != 0
                && flags & libc::MAP_TYPE as u64 == libc::MAP_PRIVATE as u64
        }
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => rights & libc::PROT_WRITE as u64 != 0,
        libc::SYS_mremap | libc::SYS_brk => true,
        _ => false,
    }
}

/// Whether a call maps memory that the kernel may drop.
fn is_droppable(call: &Announced) -> bool {
    call.number == libc::SYS_mmap && call.arguments[3] & libc::MAP_TYPE as u64 == MAP_DROPPABLE
}

/// Whether a forked child without an agent moves memory that it made as one mapping and that the
/// kernel keeps as several, since inherited memory is registered and newly mapped memory is not.
/// The kernel refuses such a move; an agent moves the mappings one by one.
fn moves_several(call: &Announced) -> bool {
    let [start, bytes, ..] = call.arguments;
    let is_one = |mapping: &procfs::Mapping| {
        mapping.range.start <= start && start.saturating_add(bytes) <= mapping.range.end
    };
    call.number == libc::SYS_mremap
        && !procfs::mappings(call.tid).is_ok_and(|mappings| mappings.iter().any(is_one))
}

/// The most pages that such a call gives its process.
fn growth(growing: &Growing, pid: i32, call: &Announced) -> u64 {
    let [first, bytes, third, ..] = call.arguments;
    let pages = bytes.div_ceil(PAGE_BYTES as u64);
    match call.number {
        libc::SYS_brk => growing.growth_by_break(pid, first, || procfs::start_of_heap(call.tid)),
        libc::SYS_mremap => third.saturating_sub(bytes).div_ceil(PAGE_BYTES as u64),
        _ if is_droppable(call) && growing.droppable_pages(pid) + pages > DROPPABLE_PAGES => {
            NOT_WITHOUT
        }
        _ => pages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClearSize;

    fn call(number: i64, arguments: [u64; 4]) -> Announced {
        let [a, b, c, d] = arguments;
        Announced { id: 1, tid: 2, number, arguments: [a, b, c, d, 0, 0] }
    }

    #[test]
    fn what_gives_a_process_memory_of_its_own_is_counted() {
        let (read, write) = (libc::PROT_READ as u64, (libc::PROT_READ | libc::PROT_WRITE) as u64);
        let (own, shared) = (libc::MAP_PRIVATE as u64, libc::MAP_SHARED as u64);
        let pages = |number, arguments| {
            let call = call(number, arguments);
            may_grow(&call).then(|| growth(&Growing::default(), 3, &call))
        };
        assert_eq!(pages(libc::SYS_mmap, [0, 8193, write, own]), Some(3));
        assert_eq!(pages(libc::SYS_mmap, [0, 8193, read, own]), None);
        assert_eq!(pages(libc::SYS_mmap, [0, 8193, write, shared]), None);
        assert_eq!(pages(libc::SYS_mmap, [0, 65536, write, MAP_DROPPABLE]), Some(16));
        assert_eq!(pages(libc::SYS_mmap, [0, 8193, 0, MAP_DROPPABLE]), Some(3));
        assert_eq!(pages(libc::SYS_mmap, [0, 65537, write, MAP_DROPPABLE]), Some(NOT_WITHOUT));
        let (mut growing, one) =
            (Growing::default(), call(libc::SYS_mmap, [0, 4096, write, MAP_DROPPABLE]));
        growing.maps_droppable(3, 15);
        assert_eq!(growth(&growing, 3, &one), 1);
        growing.maps_droppable(3, 1);
        assert_eq!(growth(&growing, 3, &one), NOT_WITHOUT);
        assert_eq!(pages(libc::SYS_mprotect, [0, 4096, write, 0]), Some(1));
        assert_eq!(pages(libc::SYS_mprotect, [0, 4096, read, 0]), None);
        assert_eq!(pages(libc::SYS_mremap, [0, 4096, 16384, 0]), Some(3));
        assert_eq!(pages(libc::SYS_mremap, [0, 16384, 4096, 0]), Some(0));
        assert_eq!(pages(libc::SYS_munmap, [0, 16384, 0, 0]), None);
    }

    #[test]
    fn small_programs_need_no_agent_and_others_do_where_room_is_scarce() {
        let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
        assert!(budget.is_scarce());
        let alone = |budget: &Budget, pages| allows(budget, pages, pages);
        assert!(alone(&budget, 128) && !alone(&budget, 129));
        let budget = Budget::new(ClearSize::Bytes(2 << 20), 0);
        assert!(alone(&budget, 32) && !alone(&budget, 33));
        let budget = Budget::new(ClearSize::Bytes(64 << 20), 0);
        assert!(!budget.is_scarce());
        assert!(alone(&budget, 16384) && !alone(&budget, 16385));
        budget.track(13000);
        assert!(!alone(&budget, 129));
    }

    #[test]
    fn what_small_programs_may_have_together_is_what_is_free_of_a_quarter_or_an_eighth() {
        let budget = Budget::new(ClearSize::Bytes(8 << 20), 0);
        assert!(allows(&budget, 1, 512) && !allows(&budget, 1, 513));
        budget.track(1700);
        assert!(allows(&budget, 1, 348) && !allows(&budget, 1, 349));
        budget.track(300);
        assert!(allows(&budget, 1, 256) && !allows(&budget, 1, 257));
    }
}
