//! Room for what an `execve` copies: arguments and environment lie on the new program's stack before its first
//! instruction, in a process that nobody sees while they are copied, and that has no agent before some milliseconds
//! later.

use super::room::small_program;
use crate::config::PAGE_BYTES;
use crate::pager::{Pager, Stop};
use crate::sys::process;
use crate::sys::procfs::{self, CurrentCall};
use crate::sys::seccomp::Announced;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// So few pages are not worth being counted.
const FEW_PAGES: u64 = 32;
/// How long the first of those that wait does so. Afterwards it goes on without the room.
const PATIENCE: Duration = Duration::from_millis(500);
/// A thread that runs for so long since its call was let through has left it.
const LONGEST: Duration = Duration::from_secs(1);
/// The most that the kernel takes (`_STK_LIM / 4 * 3`), in bytes.
const MOST_BYTES: u64 = 6 << 20;
/// Looks of the watcher after which a new program is counted: the first may have begun before it was there.
const LOOKS: u64 = 2;

/// Calls of one listener that wait for room, and room that is kept for those that were let through.
#[derive(Debug)]
pub(super) struct Executions {
    /// In the order in which they came: only the first is given room.
    waiting: VecDeque<Waiting>,
    begun: Vec<Begun>,
    /// When the first began to be so.
    first_since: Instant,
}

#[derive(Debug)]
struct Waiting {
    /// Of the call.
    id: u64,
    pages: u64,
}

#[derive(Debug)]
struct Begun {
    /// Of the call.
    id: u64,
    tid: i32,
    pages: u64,
    since: Instant,
    /// Looks of the watcher when the call was found to have ended.
    looks_at_end: Option<u64>,
}

impl Executions {
    /// None waits, and none was let through.
    pub fn new() -> Self {
        Executions { waiting: VecDeque::new(), begun: Vec::new(), first_since: Instant::now() }
    }

    /// Whether any room is kept: then [`Executions::end`] is to be called again soon.
    pub fn any(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether a call may go on: there is room for what it copies, which is kept free from now on. If not, room is made.
    pub fn may_begin(&mut self, pager: &Pager, call: &Announced) -> Result<bool, Stop> {
        if self.begun.iter().any(|begun| begun.id == call.id) {
            return Ok(true);
        }
        if self.waiting.iter().all(|waiting| waiting.id != call.id) {
            let copied = pages_copied(call);
            // The program itself needs some before it has its agent.
            let pages = copied + small_program(&pager.budget);
            if copied <= FEW_PAGES || pages > pager.budget.limit() {
                return Ok(true);
            }
            self.waiting.push_back(Waiting { id: call.id, pages });
            if self.waiting.len() == 1 {
                self.first_since = Instant::now();
            }
        }
        let Some(pages) = self.waiting.front().filter(|w| w.id == call.id).map(|w| w.pages) else {
            return Ok(false);
        };
        let now = Instant::now();
        if pager.budget.promise(pages) {
            let Announced { id, tid, .. } = *call;
            self.begun.push(Begun { id, tid, pages, since: now, looks_at_end: None });
        } else if now - self.first_since < PATIENCE {
            pager.make_room_for_program(pages)?;
            return Ok(false);
        }
        self.waiting.pop_front();
        self.first_since = now;
        Ok(true)
    }

    /// Keeps room no longer for programs that are counted by now, or that never began.
    pub fn end(&mut self, pager: &Pager) {
        self.begun.retain_mut(|begun| {
            let looks = pager.budget.looks();
            if begun.looks_at_end.is_none() && begun.has_left() {
                begun.looks_at_end = Some(looks);
            }
            let is_counted = begun.looks_at_end.is_some_and(|at_end| looks - at_end >= LOOKS);
            if is_counted {
                pager.budget.end_promise(begun.pages);
            } else {
                // A watcher that rests is to look.
                pager.attention.stir();
            }
            !is_counted
        });
    }

    /// Forgets calls that wait no more: those who made them were killed, or handle a signal.
    pub fn retain(&mut self, waits: impl Fn(u64) -> bool) {
        let first = self.waiting.front().map(|waiting| waiting.id);
        self.waiting.retain(|waiting| waits(waiting.id));
        if self.waiting.front().map(|waiting| waiting.id) != first {
            self.first_since = Instant::now();
        }
    }

    /// Keeps no room any more.
    pub fn end_all(&mut self, pager: &Pager) {
        self.begun.drain(..).for_each(|begun| pager.budget.end_promise(begun.pages));
    }
}

impl Begun {
    fn has_left(&self) -> bool {
        match procfs::current_call(self.tid) {
            CurrentCall::Gone | CurrentCall::Outside => true,
            CurrentCall::In { number, .. } => !is_execution(number),
            CurrentCall::Unknown => self.since.elapsed() > LONGEST,
        }
    }
}

/// Whether a call executes a program.
pub(super) fn is_execution(number: i64) -> bool {
    matches!(number, libc::SYS_execve | libc::SYS_execveat)
}

/// The pages that a call copies of its process's memory. Where that cannot be read the call fails.
fn pages_copied(call: &Announced) -> u64 {
    let lists = match call.number {
        libc::SYS_execveat => &call.arguments[2..4],
        _ => &call.arguments[1..3],
    };
    let mut memory = Memory::of(call.tid);
    let bytes = lists.iter().fold(0, |bytes, &list| memory.count_strings(list, bytes));
    bytes.div_ceil(PAGE_BYTES as u64)
}

/// Memory of a process, read by pages: what is asked for lies side by side as a rule.
struct Memory {
    tid: i32,
    /// `process_vm_readv` would do, but it pins a page, and of one that a fork shared the kernel makes a copy first,
    /// unheard. This makes none; it cannot wait for a page that is out.
    file: Option<File>,
    page: Option<u64>,
    bytes: [u8; PAGE_BYTES],
    read: usize,
}

impl Memory {
    fn of(tid: i32) -> Self {
        let file = File::open(format!("/proc/{tid}/mem")).ok();
        Memory { tid, file, page: None, bytes: [0; PAGE_BYTES], read: 0 }
    }

    /// Adds the strings of a list that ends with a null pointer, and the list, to `bytes`.
    fn count_strings(&mut self, list: u64, mut bytes: u64) -> u64 {
        const WORD: u64 = size_of::<u64>() as u64;
        let mut at = list;
        while bytes < MOST_BYTES
            && let Some(string @ 1..) = self.word(at)
        {
            bytes += WORD + self.length(string, MOST_BYTES - bytes);
            at = at.wrapping_add(WORD);
        }
        bytes
    }

    /// The length of a string with its end, as far as it can be read, up to `most` bytes.
    fn length(&mut self, string: u64, most: u64) -> u64 {
        let mut length = 0;
        while length < most {
            let rest = self.from(string.wrapping_add(length));
            if let Some(end) = rest.iter().position(|&byte| byte == 0) {
                return length + end as u64 + 1;
            }
            if rest.is_empty() {
                break;
            }
            length += rest.len() as u64;
        }
        length
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; size_of::<u64>()];
        for (at, byte) in (address..).zip(&mut word) {
            *byte = *self.from(at).first()?;
        }
        Some(u64::from_ne_bytes(word))
    }

    /// What a page has from an address on; nothing if it cannot be read.
    fn from(&mut self, address: u64) -> &[u8] {
        let (page, offset) = (address / PAGE_BYTES as u64, address as usize % PAGE_BYTES);
        if self.page != Some(page) {
            let start = page * PAGE_BYTES as u64;
            let read = self.file.as_ref().map(|file| file.read_at(&mut self.bytes, start));
            self.read = match read {
                Some(Ok(read @ 1..)) => read,
                _ => process::read_memory(self.tid, start, &mut self.bytes).unwrap_or(0),
            };
            self.page = Some(page);
        }
        self.bytes[..self.read].get(offset..).unwrap_or_default()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // They are the program's.
        zeroize::Zeroize::zeroize(&mut self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_environment_are_counted_to_the_byte() {
        let long = [b"x".repeat(3 * PAGE_BYTES), vec![0]].concat();
        let words = [b"a\0".to_vec(), b"\0".to_vec(), long];
        let bytes = |words: &[Vec<u8>]| -> usize { words.iter().map(|word| 8 + word.len()).sum() };
        let list = |words: &[Vec<u8>]| -> Vec<u64> {
            let addresses = words.iter().map(|word| word.as_ptr().addr() as u64);
            addresses.chain(std::iter::once(0)).collect()
        };
        let (arguments, none) = (list(&words), list(&[]));
        let mut memory = Memory::of(std::process::id() as i32);
        let mut count =
            |list: &[u64], before| memory.count_strings(list.as_ptr().addr() as u64, before);
        assert_eq!(count(&arguments, 0), bytes(&words) as u64);
        assert_eq!(count(&none, 5), 5);
        assert_eq!(count(&arguments, MOST_BYTES), MOST_BYTES);
        // The kernel refuses such a call.
        assert_eq!(memory.count_strings(16, 0), 0);

        let [first, second] = [arguments.as_ptr().addr() as u64, none.as_ptr().addr() as u64];
        let call = |number, arguments| Announced {
            id: 1,
            tid: std::process::id() as i32,
            number,
            arguments,
        };
        let pages = bytes(&words).div_ceil(PAGE_BYTES) as u64;
        assert_eq!(pages_copied(&call(libc::SYS_execve, [0, first, second, 0, 0, 0])), pages);
        assert_eq!(pages_copied(&call(libc::SYS_execveat, [0, 0, second, first, 0, 0])), pages);
    }
}
