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
    Fork(Newborn),
    /// Contents moved; what was mapped at the source is unmapped if the call did so.
    Move { from: Range<Vpn>, to: Range<Vpn>, unmaps: bool },
    /// Contents dropped, the mapping stays.
    Remove(Range<Vpn>),
    /// Unmapped.
    Unmap(Range<Vpn>),
}

/// A child of a fork that nobody serves yet.
#[derive(Debug)]
pub(super) struct Newborn {
    /// Its faults and events.
    pub uffd: Userfault,
    /// What it has changed since, as far as its events have been read.
    pub changes: Vec<Change>,
    /// Its faults that were read with them.
    pub faults: Vec<Message>,
}

/// Turns events, in the order in which they were read, into changes. A plain mremap raises two: the
/// move, and the unmapping of its source, which by then must not be taken for anything else.
pub(super) fn changes(events: Vec<Message>) -> Vec<Change> {
    let pages = |start: u64, end: u64| start / PAGE_BYTES as u64..end.div_ceil(PAGE_BYTES as u64);
    let mut changes: Vec<Change> = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Message::Fork(uffd) => {
                let (theirs, faults) = (Vec::new(), Vec::new());
                changes.push(Change::Fork(Newborn { uffd, changes: theirs, faults }));
            }
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

/// Looks at a child: which of these ranges are registered in it, each as a whole. Notes what the child
/// has changed before that. None if the child is no more.
pub(super) type Look<'a> = dyn FnMut(&mut Newborn, &[Range<Vpn>]) -> Option<Vec<bool>> + 'a;

/// Puts changes into the order in which they happened.
pub(super) fn resolve(
    changes: Vec<Change>,
    registered: &PageRanges,
    look: &mut Look<'_>,
) -> Result<Vec<Change>, Doubt> {
    if changes.len() < 2 {
        return Ok(changes);
    }
    let mut forks = Vec::new();
    let mut others = Vec::with_capacity(changes.len());
    for change in changes {
        match change {
            Change::Fork(child) => forks.push((others.len(), child)),
            other => others.push(other),
        }
    }
    let mut ordered = Vec::with_capacity(others.len());
    let mut states = vec![registered.clone()];
    let mut now = registered.clone();
    while let Some(change) = first(&mut others, &now)? {
        change.happen(&mut now);
        states.push(now.clone());
        ordered.push(change);
    }
    // Where each fork belongs is asked before any is put in its place.
    let mut places = Vec::with_capacity(forks.len());
    for (read_at, mut child) in forks {
        let at = place_of_fork(read_at, &ordered, &states, &mut child, look)?;
        places.push((at, child));
    }
    // From the last to the first, so that what comes before stays where it is.
    places.sort_by_key(|&(at, _)| at);
    for (at, child) in places.into_iter().rev() {
        ordered.insert(at, Change::Fork(child));
    }
    Ok(ordered)
}

impl Change {
    fn happen(&self, registered: &mut PageRanges) {
        match self {
            Change::Fork(_) | Change::Remove(_) => {}
            Change::Unmap(range) => registered.remove(range.clone()),
            Change::Move { from, to, unmaps } => {
                if *unmaps {
                    registered.remove(from.clone());
                }
                registered.insert(to.clone());
            }
        }
    }

    fn ranges(&self) -> impl Iterator<Item = &Range<Vpn>> {
        let (one, other) = match self {
            Change::Fork(_) | Change::Remove(_) => (None, None),
            Change::Unmap(range) => (Some(range), None),
            Change::Move { from, to, .. } => (Some(from), Some(to)),
        };
        one.into_iter().chain(other)
    }
}

/// After how many of `changes` a fork happened: as many as were read before it, unless the child
/// holds what it would then not hold, or the other way round. (What `madvise` removes at the same
/// time as a fork the child may see or not: either order is one that the program allowed.)
fn place_of_fork(
    read_at: usize,
    changes: &[Change],
    states: &[PageRanges],
    child: &mut Newborn,
    look: &mut Look<'_>,
) -> Result<usize, Doubt> {
    // Ranges whose registration tells the time: at one moment all there, at another not at all.
    let telling: Vec<Range<Vpn>> = changes
        .iter()
        .flat_map(Change::ranges)
        .filter(|range| {
            states.iter().any(|s| covers(s, range)) && states.iter().any(|s| !touches(s, range))
        })
        .cloned()
        .collect();
    if telling.is_empty() {
        return Ok(read_at);
    }
    let Some(held) = look(child, &telling) else { return Ok(read_at) };
    let agrees = |at: usize| {
        let mut now = states[at].clone();
        child.changes.iter().for_each(|change| change.happen(&mut now));
        telling
            .iter()
            .zip(&held)
            .all(|(range, &held)| if held { touches(&now, range) } else { !covers(&now, range) })
    };
    let mut places: Vec<usize> = (0..=changes.len()).collect();
    places.sort_by_key(|at| at.abs_diff(read_at));
    places.into_iter().find(|&at| agrees(at)).ok_or(Doubt)
}

/// Takes the change that happened first out of `changes`, which hold no fork.
fn first(changes: &mut Vec<Change>, registered: &PageRanges) -> Result<Option<Change>, Doubt> {
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

fn covers(registered: &PageRanges, range: &Range<Vpn>) -> bool {
    registered.run_from(range.start) >= range.end - range.start
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

    /// The order found: (from, to) of moves, (start, 0) of unmappings, (0, 0) of forks.
    fn order(events: Vec<Message>, taken: &[u64], child: &[u64]) -> Result<Vec<(u64, u64)>, Doubt> {
        let mut registered = PageRanges::default();
        taken.iter().for_each(|&start| registered.insert(start..start + 10));
        let mut look = |_: &mut Newborn, ranges: &[Range<Vpn>]| {
            Some(ranges.iter().map(|range| child.contains(&range.start)).collect())
        };
        let changes = resolve(changes(events), &registered, &mut look)?;
        Ok(changes
            .iter()
            .filter_map(|change| match change {
                Change::Move { from, to, .. } => Some((from.start, to.start)),
                Change::Unmap(range) => Some((range.start, 0)),
                Change::Fork(_) => Some((0, 0)),
                Change::Remove(_) => None,
            })
            .collect())
    }

    fn fork() -> Message {
        let file = std::fs::File::open("/dev/null").expect("a device of every Linux");
        Message::Fork(Userfault::unusable(file.into()))
    }

    #[test]
    fn a_move_to_a_taken_place_waits_for_the_one_that_leaves_it() {
        // Thread A moved 100 away, thread B moved 200 to 100; B's events were read first.
        let [b1, b2] = remap(200, 100);
        let [a1, a2] = remap(100, 300);
        assert_eq!(order(vec![b1, b2, a1, a2], &[100, 200], &[]), Ok(vec![(100, 300), (200, 100)]));
    }

    #[test]
    fn a_move_to_a_taken_place_waits_for_its_unmapping() {
        let [b1, b2] = remap(200, 100);
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        assert_eq!(order(vec![b1, b2, unmap], &[100, 200], &[]), Ok(vec![(100, 0), (200, 100)]));
    }

    #[test]
    fn what_is_in_order_stays_in_order() {
        let [b1, b2] = remap(200, 100);
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        assert_eq!(order(vec![b1, b2, unmap], &[200], &[]), Ok(vec![(200, 100), (100, 0)]));
    }

    #[test]
    fn two_possible_orders_are_a_doubt() {
        let [b1, b2] = remap(200, 100);
        let [a1, a2] = remap(100, 300);
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        assert_eq!(order(vec![b1, b2, a1, a2, unmap], &[100, 200], &[]), Err(Doubt));
    }

    #[test]
    fn a_fork_goes_where_the_childs_memory_says() {
        let unmap = || Message::Unmap { start: 100 * P, end: 110 * P };
        // The child has what was unmapped: the fork came first, whatever was read first.
        for events in [vec![unmap(), fork()], vec![fork(), unmap()]] {
            assert_eq!(order(events, &[100], &[100]), Ok(vec![(0, 0), (100, 0)]));
        }
        for events in [vec![unmap(), fork()], vec![fork(), unmap()]] {
            assert_eq!(order(events, &[100], &[]), Ok(vec![(100, 0), (0, 0)]));
        }
    }

    #[test]
    fn a_fork_between_two_moves_is_found() {
        let events = || {
            let [a1, a2] = remap(100, 300);
            let [b1, b2] = remap(200, 100);
            vec![fork(), a1, a2, b1, b2]
        };
        let moves = [(100, 300), (200, 100)];
        let with_fork_at = |at: usize| {
            let mut all = moves.to_vec();
            all.insert(at, (0, 0));
            Ok(all)
        };
        assert_eq!(order(events(), &[100, 200], &[100, 200]), with_fork_at(0));
        assert_eq!(order(events(), &[100, 200], &[300, 200]), with_fork_at(1));
        assert_eq!(order(events(), &[100, 200], &[300, 100]), with_fork_at(2));
        assert_eq!(order(events(), &[100, 200], &[]), Err(Doubt));
    }

    #[test]
    fn what_is_removed_at_the_same_time_as_a_fork_stays_as_read() {
        let remove = Message::Remove { start: 100 * P, end: 101 * P };
        let unmap = Message::Unmap { start: 100 * P, end: 110 * P };
        let ordered = order(vec![remove, fork(), unmap], &[100], &[100]);
        assert_eq!(ordered, Ok(vec![(0, 0), (100, 0)]));
    }

    #[test]
    fn what_the_child_did_since_is_taken_into_account() {
        // The child was forked before 100 was unmapped, and has unmapped it itself.
        let events = vec![fork(), Message::Unmap { start: 100 * P, end: 110 * P }];
        let mut registered = PageRanges::default();
        registered.insert(100..110);
        let mut look = |child: &mut Newborn, ranges: &[Range<Vpn>]| {
            child.changes = vec![Change::Unmap(100..110)];
            Some(vec![false; ranges.len()])
        };
        let ordered = resolve(changes(events), &registered, &mut look).expect("no doubt");
        assert!(matches!(ordered[..], [Change::Fork(_), Change::Unmap(_)]));
    }
}
