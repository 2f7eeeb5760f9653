//! The words of memory that a call points at. A page that is in no page table may have to come from
//! a program: one that handles a userfaultfd, or serves a file system. The announcer does not wait
//! for it: that program may have a call announced first.

use crate::config::PAGE_BYTES;
use crate::sys::pagemap::Pagemap;
use crate::sys::process;
use crate::sys::seccomp::Announced;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

const WORDS: usize = 3;

/// The first words of a call's argument; none where it cannot be read.
pub(super) type Argument = Option<[u64; WORDS]>;

/// Arguments that threads of their own read, by the number of their call.
#[derive(Default)]
pub(super) struct Words {
    under_way: HashMap<u64, Arc<OnceLock<Argument>>>,
}

impl Words {
    /// The argument of a call that has one in memory which matters; none as long as it is being
    /// read.
    pub fn of(&mut self, call: &Announced) -> Option<Argument> {
        let Some(address) = address(call) else { return Some(None) };
        if let Some(read) = self.under_way.get(&call.id) {
            let argument = *read.get()?;
            self.under_way.remove(&call.id);
            return Some(argument);
        }
        if are_in_page_table(call.tid, address) {
            return Some(read(call.tid, address));
        }
        let slot = Arc::new(OnceLock::new());
        let (filled, tid) = (Arc::clone(&slot), call.tid);
        // It is set once: here.
        let work = move || _ = filled.set(read(tid, address));
        match std::thread::Builder::new().name("words".into()).spawn(work) {
            Ok(_) => {
                self.under_way.insert(call.id, slot);
                None
            }
            // Unknown, as where the kernel refuses to read it.
            Err(_) => Some(None),
        }
    }
}

/// Where a call's argument lies: that of `clone3` or of `ioctl(UFFDIO_REGISTER)`.
fn address(call: &Announced) -> Option<u64> {
    match call.number {
        libc::SYS_clone3 => Some(call.arguments[0]),
        libc::SYS_ioctl => Some(call.arguments[2]),
        _ => None,
    }
}

/// The flags of a `clone3`, if they can be read without waiting for a program.
pub(super) fn flags_at_once(tid: i32, address: u64) -> Option<u64> {
    are_in_page_table(tid, address).then(|| process::read_u64(tid, address).ok()).flatten()
}

fn read(tid: i32, address: u64) -> Argument {
    let mut words = [0; WORDS];
    for (number, word) in words.iter_mut().enumerate() {
        *word = process::read_u64(tid, address.wrapping_add(8 * number as u64)).ok()?;
    }
    Some(words)
}

fn are_in_page_table(tid: i32, address: u64) -> bool {
    let bytes = PAGE_BYTES as u64;
    let mut pages = address / bytes..=address.saturating_add(8 * WORDS as u64 - 1) / bytes;
    Pagemap::open(tid)
        .is_ok_and(|map| pages.all(|vpn| map.holds_page(vpn * bytes).is_ok_and(|holds| holds)))
}
