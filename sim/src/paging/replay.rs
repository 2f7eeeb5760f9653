//! A policy in so much memory, fed with a program's references.

use casemate_replacement::catalogue::{Named, Sees};
use casemate_replacement::{Page, Pages};
use serde::Serialize;

use super::ReferenceString;

/// Whether the access that faulted sets the accessed bit of the page that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultSets {
    /// It does, as processors do when the access is made again.
    TheBit,
    /// It does not, as most descriptions of policies have it.
    Nothing,
}

/// What a policy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Pages that came in for the first time: as many under every policy.
    pub first_touches: u64,
    /// Pages that came in again: hard faults.
    pub page_ins: u64,
    /// Pages that were unmapped and used again before they left.
    pub soft_faults: u64,
    /// Accessed bits that were looked at.
    pub bits_read: u64,
    /// Of these, those that were set, and were cleared.
    pub bits_cleared: u64,
}

const KNOWN: u8 = 1;
const PRESENT: u8 = 2;
const UNMAPPED: u8 = 4;
const ACCESSED: u8 = 8;

/// The page table, as far as policies see it.
struct Table {
    flags: Vec<u8>,
    counts: Counts,
}

impl Pages for Table {
    fn accessed(&mut self, page: Page) -> bool {
        self.counts.bits_read += 1;
        let flags = &mut self.flags[page as usize];
        let was = *flags & ACCESSED != 0;
        *flags &= !ACCESSED;
        self.counts.bits_cleared += u64::from(was);
        was
    }

    fn unmap(&mut self, page: Page) {
        self.flags[page as usize] |= UNMAPPED;
    }
}

/// Runs a policy with `capacity` pages of memory through all references.
///
/// # Panics
/// `capacity` is 0, or the policy names a page as a victim that is not in memory.
#[must_use]
pub fn replay(
    string: &ReferenceString,
    named: &Named,
    capacity: usize,
    fault_sets: FaultSets,
) -> Counts {
    assert!(capacity > 0, "a program needs a page");
    let mut policy = (named.new)(capacity);
    let mut table = Table { flags: vec![0; string.pages() as usize], counts: Counts::default() };
    let mut present = 0;
    for &page in string.references() {
        let flags = table.flags[page as usize];
        if flags & PRESENT != 0 {
            if flags & UNMAPPED != 0 {
                table.counts.soft_faults += 1;
                policy.used_again(page);
            }
            table.flags[page as usize] = flags & !UNMAPPED | ACCESSED;
            if named.sees == Sees::References {
                policy.referred(page);
            }
            continue;
        }
        if present == capacity {
            let victim = policy.victim(Some(page), &mut table).expect("memory is full");
            let flags = &mut table.flags[victim as usize];
            assert!(*flags & PRESENT != 0, "{}: a victim that is not in memory", named.name);
            *flags = KNOWN;
        } else {
            present += 1;
        }
        match flags & KNOWN {
            0 => table.counts.first_touches += 1,
            _ => table.counts.page_ins += 1,
        }
        table.flags[page as usize] = match fault_sets {
            FaultSets::TheBit => KNOWN | PRESENT | ACCESSED,
            FaultSets::Nothing => KNOWN | PRESENT,
        };
        policy.entered(page);
    }
    table.counts
}
