//! The fewest page-ins that there can be (Belady 1966, MIN): the page leaves whose next reference
//! is farthest away. It has to know what comes.

use std::collections::BinaryHeap;

use casemate_replacement::Page;

use super::ReferenceString;

const NEVER: u32 = u32::MAX;

/// Page-ins with `capacity` pages of memory, first touches not among them.
///
/// # Panics
/// `capacity` is 0, or there are 2³² references.
#[must_use]
pub fn optimum(string: &ReferenceString, capacity: usize) -> u64 {
    assert!(capacity > 0, "a program needs a page");
    let next = next_references(string);
    let pages = string.pages() as usize;
    // The next reference of each page that is in memory.
    let mut comes: Vec<Option<u32>> = vec![None; pages];
    let mut is_known = vec![false; pages];
    let mut farthest: BinaryHeap<(u32, Page)> = BinaryHeap::new();
    let (mut present, mut page_ins) = (0, 0);
    for (&page, &comes_again) in string.references().iter().zip(&next) {
        if comes[page as usize].is_none() {
            page_ins += u64::from(std::mem::replace(&mut is_known[page as usize], true));
            if present == capacity {
                take_farthest(&mut farthest, &mut comes);
            } else {
                present += 1;
            }
        }
        comes[page as usize] = Some(comes_again);
        farthest.push((comes_again, page));
        // Entries of references that have passed are below all others, and would stay.
        if farthest.len() > 4 * capacity + 1024 {
            farthest.retain(|(when, page)| comes[*page as usize] == Some(*when));
        }
    }
    page_ins
}

fn take_farthest(farthest: &mut BinaryHeap<(u32, Page)>, comes: &mut [Option<u32>]) {
    while let Some((when, page)) = farthest.pop() {
        if comes[page as usize] == Some(when) {
            comes[page as usize] = None;
            return;
        }
    }
}

/// For each reference, the place of the next one to the same page.
fn next_references(string: &ReferenceString) -> Vec<u32> {
    let references = string.references();
    assert!(references.len() < NEVER as usize, "so long a string has no numbers");
    let mut next = vec![NEVER; references.len()];
    let mut seen = vec![NEVER; string.pages() as usize];
    for (at, &page) in references.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut seen[page as usize], at as u32);
    }
    next
}
