//! The order of events. The kernel queues an event after the call's locks are gone, so the events
//! of different threads can be read in another order than their calls took effect.
//!
//! Which order was possible follows from what is registered: nothing is moved to where something
//! registered still is, and nothing is unmapped where nothing registered is. Where two orders were
//! possible that differ in their result, the program is stopped: in doubt, no byte is handed out.

use super::space::Vpn;
use crate::config::PAGE_BYTES;
use crate::ranges::PageRanges;
use crate::sys::uffd::{Message, Userfault};
use std::ops::Range;

/// A change of the address space, in pages.
#[derive(Debug)]
pub(super) enum Change {
    /// fork.
    Fork(Userfault),
    /// Contents moved; what was mapped at the source is unmapped if the call did so.
    Move { from: Range<Vpn>, to: Range<Vpn>, unmaps: bool },
    /// Contents dropped, the mapping stays.
    Remove(Range<Vpn>),
    /// Unmapped.
    Unmap(Range<Vpn>),
}

/// Turns events, in the order in which they were read, into changes. A plain mremap raises two: the
/// move, and the unmapping of its source, which by then must not be taken for anything else.
pub(super) fn changes(events: Vec<Message>) -> Vec<Change> {
    let pages = |start: u64, end: u64| start / PAGE_BYTES as u64..end.div_ceil(PAGE_BYTES as u64);
    let mut changes: Vec<Change> = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Message::Fork(uffd) => changes.push(Change::Fork(uffd)),
            Message::Remove { start, end } => changes.push(Change::Remove(pages(start, end))),
            Message::Remap { from, to, len } => changes.push(Change::Move {
                from: pages(from, from + len),
                to: pages(to, to + len),
                unmaps: false,
            }),
            Message::Unmap { start, end } => {
                let range = pages(start, end);
                let source = changes.iter_mut().find_map(|change| match change {
                    Change::Move { from, unmaps, .. } if *from == range && !*unmaps => Some(unmaps),
                    _ => None,
                });
                match source {
                    Some(unmaps) => *unmaps = true,
                    None => changes.push(Change::Unmap(range)),
                }
            }
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => {}
        }
    }
    changes
}

/// Two orders were possible.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doubt;

/// Takes the change that happened first out of `changes`.
pub(super) fn first(
    changes: &mut Vec<Change>,
    registered: &PageRanges,
) -> Result<Option<Change>, Doubt> {
    let Some(head) = changes.first() else { return Ok(None) };
    let Change::Move { to, .. } = head else { return Ok(Some(changes.remove(0))) };
    if !touches(registered, to) {
        return Ok(Some(changes.remove(0)));
    }
    // Its target was still taken when it was read: something behind it gave the target up before.
    let target = to.clone();
    let gives_up = |change: &Change| match change {
        Change::Move { from, .. } => overlap(from, &target),
        Change::Unmap(range) => overlap(range, &target),
        Change::Fork(_) | Change::Remove(_) => false,
    };
    let found: Vec<usize> = (1..changes.len()).filter(|&i| gives_up(&changes[i])).collect();
    let all_unmap = found.iter().all(|&i| matches!(changes[i], Change::Unmap(_)));
    match found.as_slice() {
        // Nothing did: what we think is registered there is not (any more).
        [] => Ok(Some(changes.remove(0))),
        [only] => Ok(Some(changes.remove(*only))),
        [earliest, ..] if all_unmap => Ok(Some(changes.remove(*earliest))),
        _ => Err(Doubt),
    }
}

fn touches(registered: &PageRanges, range: &Range<Vpn>) -> bool {
    let gaps = registered.missing_from(range.clone());
    gaps.iter().map(|g| g.end - g.start).sum::<u64>() < range.end - range.start
}

fn overlap(a: &Range<Vpn>, b: &Range<Vpn>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Whether a change concerns a page.
pub(super) fn touches_page(changes: &[Change], vpn: Vpn) -> bool {
    changes.iter().any(|change| match change {
        Change::Fork(_) => false,
        Change::Move { from, to, .. } => from.contains(&vpn) || to.contains(&vpn),
        Change::Remove(range) | Change::Unmap(range) => range.contains(&vpn),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = PAGE_BYTES as u64;

    fn remap(from: u64, to: u64) -> [Message; 2] {
        let unmap = Message::Unmap { start: from * P, end: (from + 10) * P };
        [Message::Remap { from: from * P, to: to * P, len: 10 * P }, unmap]
    }

    fn order(events: Vec<Message>, taken: &[u64]) -> Result<Vec<(u64, u64)>, Doubt> {
        let mut registered = PageRanges::default();
        taken.iter().for_each(|&start| registered.insert(start..start + 10));
        let mut changes = changes(events);
        let mut moves = Vec::new();
        while let Some(change) = first(&mut changes, &registered)? {
            match change {
                Change::Move { from, to, .. } => {
                    moves.push((from.start, to.start));
                    registered.remove(from);
                    registered.insert(to);
                }
                Change::Unmap(range) => {
                    moves.push((range.start, 0));
                    registered.remove(range);
                }
                _ => {}
            }
        }
        Ok(moves)
    }

    #[test]
    fn a_move_to_a_taken_place_waits_for_the_one_that_leaves_it() {
        // Thread A moved 100 away, thread B moved 200 to 100; B's events were read first.
        let [b1, b2] = remap(200, 100);
        let [a1, a2] = remap(100, 300);
        assert_eq!(order(vec![b1, b2, a1, a2], &[100, 200]), Ok(vec![(100, 300), (200, 100)]));
    }

    #[test]
    fn a_move_to_a_taken_place_waits_for_its_unmapping() {
        let [b1, b2] = remap(200, 100);
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        assert_eq!(order(vec![b1, b2, unmap], &[100, 200]), Ok(vec![(100, 0), (200, 100)]));
    }

    #[test]
    fn what_is_in_order_stays_in_order() {
        let [b1, b2] = remap(200, 100);
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        assert_eq!(order(vec![b1, b2, unmap], &[200]), Ok(vec![(200, 100), (100, 0)]));
    }

    #[test]
    fn two_possible_orders_are_a_doubt() {
        let [b1, b2] = remap(200, 100);
        let [a1, a2] = remap(100, 300);
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        assert_eq!(order(vec![b1, b2, a1, a2, unmap], &[100, 200]), Err(Doubt));
    }
}
