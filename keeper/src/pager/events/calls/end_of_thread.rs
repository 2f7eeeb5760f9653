//! What the kernel stores to when a thread ends: its robust mutexes, and the word by which its end
//! is waited for.

use crate::config::PAGE_BYTES;
use crate::pager::space::{Space, Vpn};
use crate::sys::{process, procfs};

/// Robust mutexes of a thread that are looked at; the kernel's own limit.
const MOST_MUTEXES: usize = 2048;
/// How far before its list of robust mutexes the C library keeps the word that tells of a thread's
/// end.
const BACK_TO_TID: u64 = 16;
/// Pages from a thread's last stack frame on in which the word of its end is sought.
const NEAR_PAGES: u64 = 2;
/// Words that are held where a thread's own is not known; a quarter of the pages that the least
/// Clear has.
const MOST_WORDS: usize = 128;

/// The pages that the kernel stores to when all threads of a process end at once. Where the process
/// is the only one of its memory, no thread is left to wait for words that the C library keeps.
pub(super) fn pages_stored_at_end_of_all(space: &Space, tid: i32) -> Vec<Vpn> {
    let first = space.state.lock().processes.pids.first().copied();
    let is_beside_another = procfs::process_of(tid) != first;
    let stored_by = |tid| {
        let words = Words { space, tid };
        let is_awaited = || match words.end_word() {
            EndWord::Of(word) => !words.is_usual(word),
            EndWord::Among(others) => others.iter().any(|word| !words.is_usual(*word)),
        };
        if is_beside_another || words.hold_mutexes() || is_awaited() {
            words.pages_stored_at_end()
        } else {
            Vec::new()
        }
    };
    procfs::threads(tid).into_iter().flat_map(stored_by).collect()
}

/// The word by which a thread's end is waited for.
enum EndWord {
    /// At this address.
    Of(u64),
    /// At one of these, or at none.
    Among(Vec<u64>),
}

/// The words of a thread's memory, as far as they can be read at once.
pub(super) struct Words<'a> {
    pub(super) space: &'a Space,
    pub(super) tid: i32,
}

impl Words<'_> {
    /// A word, 0 where there is none. Memory that is not ours is not read if that might have to
    /// wait for a program: for a pager, or a file system, of the thread's own.
    fn at(&self, address: u64) -> u64 {
        let bytes = PAGE_BYTES as u64;
        let mut pages = address / bytes..=address.saturating_add(7) / bytes;
        let is_read = pages
            .all(|vpn| self.is_here(vpn) || !procfs::may_wait_for_a_program(self.tid, vpn * bytes));
        is_read.then(|| process::read_u64(self.tid, address).ok()).flatten().unwrap_or(0)
    }

    /// Whether a page is under the pager, or in the page table.
    fn is_here(&self, vpn: Vpn) -> bool {
        let mut state = self.space.state.lock();
        state.mapped.registered.contains(vpn)
            || matches!(state.processes.holds_page(vpn * PAGE_BYTES as u64), Ok(Some(true)))
    }

    /// Whether the thread has robust mutexes, or is about to lock or unlock one.
    fn hold_mutexes(&self) -> bool {
        process::robust_list(self.tid)
            .is_some_and(|head| self.at(head) & !1 != head || self.at(head.wrapping_add(16)) != 0)
    }

    /// The pages that the kernel stores to when the thread ends, as far as they can be known.
    pub(super) fn pages_stored_at_end(&self) -> Vec<Vpn> {
        let words = match self.end_word() {
            EndWord::Of(word) => vec![word],
            EndWord::Among(words) => words,
        };
        let mutexes = process::robust_list(self.tid).map(|head| self.mutexes(head));
        let of_words = words.into_iter().map(|at| (at, 4));
        let all = of_words.chain(mutexes.into_iter().flatten().map(|at| (at, 8)));
        let page = |at: u64| at / PAGE_BYTES as u64;
        let pages = all.flat_map(|(at, bytes)| page(at)..=page(at.saturating_add(bytes - 1)));
        pages.chain(self.pages_near_stack()).collect()
    }

    /// The thread has ended, as far as its words are concerned.
    pub(super) fn forget(&self) {
        if let EndWord::Of(word) = self.end_word() {
            self.space.state.lock().end_words.end(word);
        }
    }

    /// The robust mutexes of the list at `head`, and the list.
    fn mutexes(&self, head: u64) -> Vec<u64> {
        let [first, offset, pending] = [0, 8, 16].map(|at| self.at(head.wrapping_add(at)));
        let mut addresses = vec![head, head.wrapping_add(16)];
        let mut entry = first;
        let mut left = MOST_MUTEXES;
        // The lowest bit says which kind of mutex it is.
        while entry & !1 != head && entry != 0 && left > 0 {
            addresses.extend([entry & !1, (entry & !1).wrapping_add(offset)]);
            entry = self.at(entry & !1);
            left -= 1;
        }
        if pending != 0 {
            addresses.push((pending & !1).wrapping_add(offset));
        }
        addresses
    }

    /// The word by which the thread's end is waited for: where the C library keeps it, or one that
    /// a `clone` gave. Its value is the thread's number, as a rule; if it is not, any may be the
    /// thread's that has a value. (musl's one word is 0 while no thread ends.)
    fn end_word(&self) -> EndWord {
        let usual = self.usual();
        let given = {
            let state = self.space.state.lock();
            match usual.filter(|usual| state.end_words.contains(*usual)) {
                Some(usual) => return EndWord::Of(usual),
                None => state.end_words.youngest_first(),
            }
        };
        let mut others = Vec::new();
        for address in usual.into_iter().chain(given) {
            match self.at(address) as u32 {
                value if value == self.tid as u32 => return EndWord::Of(address),
                0 => {}
                _ => others.push(address),
            }
        }
        others.truncate(MOST_WORDS);
        EndWord::Among(others)
    }

    /// Where the C library keeps the word, if the thread has its list of mutexes.
    fn usual(&self) -> Option<u64> {
        process::robust_list(self.tid).map(|head| head.saturating_sub(BACK_TO_TID))
    }

    fn is_usual(&self, address: u64) -> bool {
        self.usual() == Some(address)
    }

    /// Where the C library keeps the word that tells of a thread's end: near the start of its
    /// stack, whatever list the thread has.
    fn pages_near_stack(&self) -> Vec<Vpn> {
        let Some(stack) = procfs::stack_pointer(self.tid) else { return Vec::new() };
        let first = stack / PAGE_BYTES as u64;
        (first..first + NEAR_PAGES).collect()
    }
}
