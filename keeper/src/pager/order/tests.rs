//! Orders, and places of forks, on events that are made up.

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
    let changes = resolve(changes(events), &registered, &[], &mut look).map_err(|u| u.doubt)?;
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
    let ordered = order(vec![b1, b2, a1, a2, unmap], &[100, 200], &[]);
    assert_eq!(ordered, Err(Doubt::Several(3)));
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
    assert_eq!(order(events(), &[100, 200], &[]), Err(Doubt::None(2)));
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
    let ordered = resolve(changes(events), &registered, &[], &mut look).expect("no doubt");
    assert!(matches!(ordered[..], [Change::Fork(_), Change::Unmap(_)]));
}

fn unmap(start: u64) -> Message {
    Message::Unmap { start: start * P, end: (start + 10) * P }
}

#[test]
fn a_fork_may_fall_between_calls_that_were_read_the_other_way_round() {
    // As it was seen: two threads each moved a chunk to a place that was registered already, which
    // raises an unmapping, the move, and the unmapping of the source. Thread A's call came before the
    // fork, thread B's after; but B's unmapping was read before A's move.
    let [a1, a2] = remap(100, 300);
    let [b1, b2] = remap(200, 400);
    let events = vec![unmap(300), fork(), unmap(400), a1, a2, b1, b2];
    let ordered = order(events, &[100, 200, 300, 400], &[200, 300, 400]);
    let moves = [(300, 0), (100, 300), (0, 0), (400, 0), (200, 400)];
    assert_eq!(ordered, Ok(moves.to_vec()));
}

#[test]
fn what_cannot_have_been_first_is_no_other_order() {
    // As it was seen: 100 is given up twice, but the second time cannot have been before the first.
    let chain = [(200, 100), (100, 300), (400, 200), (500, 400), (100, 500)];
    let events: Vec<Message> = chain.iter().flat_map(|&(from, to)| remap(from, to)).collect();
    let expected = vec![(100, 300), (200, 100), (400, 200), (500, 400), (100, 500)];
    assert_eq!(order(events, &[100, 200, 400, 500], &[]), Ok(expected));
}

#[test]
fn orders_that_come_to_the_same_are_no_doubt() {
    let [a1, a2] = remap(200, 100);
    let events = vec![a1, a2, unmap(100), unmap(100)];
    let ordered = order(events, &[100, 200], &[]);
    assert_eq!(ordered, Ok(vec![(100, 0), (200, 100), (100, 0)]));
}

#[test]
fn a_fork_before_or_after_three_moves_in_a_circle_is_a_doubt() {
    // The same places are taken before and after, but by others.
    let circle = [(100, 300), (200, 100), (300, 200)];
    let mut events: Vec<Message> = circle.iter().flat_map(|&(from, to)| remap(from, to)).collect();
    events.push(fork());
    assert_eq!(order(events, &[100, 200], &[100, 200]), Err(Doubt::Several(3)));
    // But what was put somewhere after the fork had been read is used no earlier.
    let mut events = vec![fork()];
    events.extend(circle.iter().flat_map(|&(from, to)| remap(from, to)));
    let ordered = order(events, &[100, 200], &[100, 200]);
    assert_eq!(ordered, Ok([&[(0, 0)], &circle[..]].concat()));
}

#[test]
fn a_child_lacks_what_was_registered_after_its_fork() {
    let mut registered = PageRanges::default();
    registered.insert(100..110);
    for held in [false, true] {
        let mut look = |_: &mut Newborn, ranges: &[Range<Vpn>]| Some(vec![held; ranges.len()]);
        let fresh = std::slice::from_ref(&(100..110));
        let ordered = resolve(changes(vec![fork()]), &registered, fresh, &mut look);
        let Ok([Change::Fork(child)]) = ordered.as_deref() else { panic!("{ordered:?}") };
        assert_eq!(child.lacks.is_empty(), held);
    }
}

#[test]
fn a_move_to_a_fresh_place_does_not_wait_for_who_gives_it_up_later() {
    let chain = [(200, 100), (100, 300)];
    let events: Vec<Message> = chain.iter().flat_map(|&(from, to)| remap(from, to)).collect();
    let mut registered = PageRanges::default();
    [100, 200].iter().for_each(|&start| registered.insert(start..start + 10));
    let mut look = |_: &mut Newborn, ranges: &[Range<Vpn>]| Some(vec![false; ranges.len()]);
    let fresh = std::slice::from_ref(&(100..110));
    let ordered = resolve(changes(events), &registered, fresh, &mut look).expect("no doubt");
    let starts: Vec<Vpn> =
        ordered.iter().flat_map(Change::ranges).map(|range| range.start).collect();
    assert_eq!(starts, [200, 100, 100, 300]);
}

#[test]
fn what_the_child_has_given_up_makes_no_difference() {
    // The child unmapped more than its parent's other thread did: it cannot say what it had.
    let mut registered = PageRanges::default();
    registered.insert(100..110);
    let mut look = |child: &mut Newborn, ranges: &[Range<Vpn>]| {
        child.changes = vec![Change::Unmap(90..120)];
        Some(vec![false; ranges.len()])
    };
    let ordered = resolve(changes(vec![unmap(100), fork()]), &registered, &[], &mut look);
    assert!(matches!(ordered.as_deref(), Ok([Change::Unmap(_), Change::Fork(_)])), "{ordered:?}");
    // But a child of its own may have had it still.
    let mut look = |child: &mut Newborn, ranges: &[Range<Vpn>]| {
        let more = vec![fork(), unmap(95)];
        child.changes = changes(more);
        child.changes.push(Change::Unmap(90..120));
        Some(vec![false; ranges.len()])
    };
    let ordered = resolve(changes(vec![unmap(100), fork()]), &registered, &[], &mut look);
    assert_eq!(ordered.map_err(|u| u.doubt).err(), Some(Doubt::Several(1)));
}

#[test]
fn what_something_was_moved_to_was_not_registered_before() {
    // As it was seen at the start of a run, when all was fresh: the first child knows nothing of the
    // move, the second does.
    let [a1, a2] = remap(100, 200);
    let mut registered = PageRanges::default();
    [100, 200].iter().for_each(|&start| registered.insert(start..start + 10));
    let mut asked = 0;
    let mut look = |_: &mut Newborn, ranges: &[Range<Vpn>]| {
        asked += 1;
        let held = if asked == 1 { 100 } else { 200 };
        Some(ranges.iter().map(|range| range.start == held).collect())
    };
    let fresh = [100..110, 200..210];
    let changes = changes(vec![fork(), a1, a2, fork()]);
    let ordered = resolve(changes, &registered, &fresh, &mut look);
    let ordered = ordered.as_deref();
    assert!(
        matches!(ordered, Ok([Change::Fork(_), Change::Move { .. }, Change::Fork(_)])),
        "{ordered:?}"
    );
}

#[test]
fn a_fork_before_a_survey_or_after_a_move_of_what_was_empty_is_no_doubt() {
    // As it was seen: the child does not hold 100, because it was not registered yet, or because it had
    // been moved to 200. Nothing was known of its contents in either case.
    let [a1, a2] = remap(100, 200);
    let mut registered = PageRanges::default();
    [100, 200].iter().for_each(|&start| registered.insert(start..start + 10));
    let mut look = |_: &mut Newborn, ranges: &[Range<Vpn>]| {
        Some(ranges.iter().map(|range| range.start == 200).collect())
    };
    let fresh = [100..110, 200..210];
    let ordered =
        resolve(changes(vec![unmap(200), fork(), a1, a2]), &registered, &fresh, &mut look);
    assert!(ordered.is_ok(), "{ordered:?}");
    // Had they been known before, the child would have told.
    let mut look = |_: &mut Newborn, ranges: &[Range<Vpn>]| {
        Some(ranges.iter().map(|range| range.start == 200).collect())
    };
    let [a1, a2] = remap(100, 200);
    let ordered = resolve(changes(vec![unmap(200), fork(), a1, a2]), &registered, &[], &mut look);
    assert!(
        matches!(ordered.as_deref(), Ok([Change::Unmap(_), Change::Move { .. }, Change::Fork(_)])),
        "{ordered:?}"
    );
}
