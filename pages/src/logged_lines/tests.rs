use super::*;
use crate::adversary::{HostileMemory, Image};
use crate::keys::KeySet;
use casemate_core::checks::{AllChecks, broken};
use casemate_core::random::Random;
use proptest::prelude::*;

const LINES: u64 = 64;

type Array<C> = LoggedLines<HostileMemory, C>;

fn array<C: Checks>(cache_bytes: usize) -> Array<C> {
    let keys = KeySet::from_master(&[5; 32]);
    let port = BytesPort::new(HostileMemory::default(), &keys.directory);
    let mut array = LoggedLines::new(port, cache_bytes);
    array.extend(LINES).expect("untrusted memory is unchanged");
    array
}

fn line(value: u64) -> Line {
    let mut line = ZERO_LINE;
    line[..8].copy_from_slice(&value.to_le_bytes());
    line
}

fn put<C: Checks>(array: &mut Array<C>, index: u64, value: u64) -> Result<(), Violation> {
    array.amend(index, (), |old| *old = line(value))
}

fn get<C: Checks>(array: &mut Array<C>, index: u64) -> Result<u64, Violation> {
    let (line, ()) = array.read(index, ())?;
    Ok(u64::from_le_bytes(*line.first_chunk().expect("a line is longer")))
}

/// Everything is in untrusted memory.
fn out<C: Checks>(array: &mut Array<C>) -> &mut HostileMemory {
    array.flush_and_forget().expect("nothing is read");
    array.port.untrusted()
}

/// A line and its time stamp are as they were; its neighbours' time stamps stay.
fn replay(memory: &mut HostileMemory, old: &Image, index: u64) {
    memory.replay(leaf(index), old);
    let (place, at) = stamp_at(index);
    let stamps = old.line(place);
    let stamp = at..at + STAMP_BYTES;
    memory.change(place, |now| now[stamp.clone()].copy_from_slice(&stamps[stamp]));
}

/// Exchanges two lines with their time stamps.
fn exchange(memory: &mut HostileMemory, a: u64, b: u64) {
    memory.splice(leaf(a), leaf(b));
    let before = memory.image();
    for (from, to) in [(a, b), (b, a)] {
        let ((from, source), (to, target)) = (stamp_at(from), stamp_at(to));
        let stamps = before.line(from);
        memory.change(to, |now| {
            now[target..target + STAMP_BYTES]
                .copy_from_slice(&stamps[source..source + STAMP_BYTES]);
        });
    }
}

#[test]
fn what_is_put_is_got_through_many_checks() {
    for (seed, cache_bytes) in [(1, 0), (2, 20 * 153), (3, 64 << 10)] {
        let mut random = Random::new(seed);
        let mut array = array::<AllChecks>(cache_bytes);
        let (mut model, mut lines) = (vec![0; 4096], LINES);
        for step in 1..200_000 {
            let index = random.below(lines);
            match random.below(2000) {
                0 => drop(array.check().expect("untrusted memory is unchanged")),
                1 => drop(out(&mut array)),
                2 if lines < 4096 => {
                    lines += 32;
                    array.extend(lines).expect("untrusted memory is unchanged");
                }
                3..1000 => {
                    put(&mut array, index, step).expect("untrusted memory is unchanged");
                    model[index as usize] = step;
                }
                _ => assert_eq!(get(&mut array, index), Ok(model[index as usize])),
            }
        }
        assert!(array.check().expect("untrusted memory is unchanged") > 0);
        let beyond = array.read(lines, ()).map(|_| ());
        assert_eq!(beyond, Err(Violation::MalformedRecord { index: lines }));
    }
}

#[test]
fn a_flipped_bit_is_noticed_where_it_is_read() {
    for bit in 0..8 * LINE_BYTES {
        let mut array = array::<AllChecks>(0);
        put(&mut array, 7, 1).expect("untrusted memory is unchanged");
        out(&mut array).flip(leaf(7), bit);
        assert_eq!(get(&mut array, 7), Err(Violation::MetadataLine { level: 0, index: 7 }));
        assert_eq!(get(&mut array, 8), Err(Violation::Poisoned));
    }
    let mut unverified = array::<broken::LeavesUnverified>(0);
    out(&mut unverified).flip(leaf(7), 0);
    assert_eq!(get(&mut unverified, 7), Ok(1), "without a comparison it is believed");
    assert_eq!(unverified.check(), Err(Violation::LogMismatch), "as in LHash: until the check");
}

/// An old line is believed, and the check says so, whatever happens in between.
fn after_a_replay<C: Checks>(put_back: bool) -> Result<u64, Violation> {
    let mut array = array::<C>(0);
    put(&mut array, 7, 1)?;
    let old = out(&mut array).image();
    put(&mut array, 7, 2)?;
    let new = out(&mut array).image();
    replay(array.port.untrusted(), &old, 7);
    assert_eq!(get(&mut array, 7), Ok(1), "an old line is believed until the check");
    if put_back {
        replay(out(&mut array), &new, 7);
        assert_eq!(get(&mut array, 7), Ok(2));
    }
    array.check()
}

#[test]
fn a_replayed_line_is_noticed_by_the_check() {
    for put_back in [false, true] {
        assert_eq!(after_a_replay::<AllChecks>(put_back), Err(Violation::LogMismatch));
        assert!(after_a_replay::<broken::LogsNotCompared>(put_back).is_ok(), "the canary");
    }
}

#[test]
fn a_dropped_write_is_noticed_by_the_check() {
    let mut array = array::<AllChecks>(0);
    let old = out(&mut array).image();
    put(&mut array, 9, 3).expect("untrusted memory is unchanged");
    out(&mut array).roll_back(&old, |_| true);
    assert_eq!(array.check(), Err(Violation::LogMismatch), "although nothing used it");
}

#[test]
fn exchanged_lines_are_noticed_where_they_are_read() {
    fn both<C: Checks>() -> (Result<u64, Violation>, Result<u64, Violation>) {
        let mut array = array::<C>(0);
        put(&mut array, 3, 30).expect("untrusted memory is unchanged");
        put(&mut array, 4, 40).expect("untrusted memory is unchanged");
        exchange(out(&mut array), 3, 4);
        let read = get(&mut array, 3);
        // Both are read, so that both are in the log.
        (read, get(&mut array, 4).and_then(|_| array.check()))
    }
    let noticed = Err(Violation::MetadataLine { level: 0, index: 3 });
    assert_eq!(both::<AllChecks>(), (noticed, Err(Violation::Poisoned)));
    let (read, check) = both::<broken::AddressesNotLogged>();
    assert!(read == Ok(40) && check.is_ok(), "the canary: {read:?}, {check:?}");
}

/// Two periods between checks in which the same is written at the same times. What the first wrote
/// late is given to the second early, and the other way round: the same triples are read, in
/// another order. Time stamps from the future are all that tells (LHash, Figure 3, read-chunk).
fn out_of_order<C: Checks>() -> Result<[u64; 2], Violation> {
    const AT: u64 = 5;
    let mut array = array::<C>(0);
    let mut images = Vec::new();
    for period in 0..2 {
        out(&mut array);
        array.check()?;
        let start = out(&mut array).image();
        let mut seen = [0; 2];
        if period == 1 {
            replay(array.port.untrusted(), &images[1], AT);
        }
        seen[0] = get(&mut array, AT)?;
        put(&mut array, AT, 100)?;
        let first = out(&mut array).image();
        if period == 1 {
            replay(array.port.untrusted(), &start, AT);
        }
        seen[1] = get(&mut array, AT)?;
        put(&mut array, AT, 200)?;
        images = vec![start, first, out(&mut array).image()];
        if period == 1 {
            array.check()?;
            return Ok(seen);
        }
    }
    unreachable!("the second period returns")
}

#[test]
fn time_stamps_from_the_future_are_refused() {
    let place = BlockPlace { region: "the page directory", index: 5 };
    assert_eq!(out_of_order::<AllChecks>(), Err(Violation::TimeStampAhead { place }));
    // Right would be 200, 100.
    assert_eq!(out_of_order::<broken::TimeStampsUnchecked>(), Ok([100, 200]), "the canary");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Between two checks an adversary replays and exchanges what it likes, at random. If anything
    /// wrong was read, the check fails, or a call did before; if nothing was touched, none does.
    #[test]
    fn no_check_passes_over_a_wrong_line(seed: u64, is_hostile: bool) {
        let mut random = Random::new(seed);
        let mut array = array::<AllChecks>(if random.one_in(2) { 0 } else { 40 * 153 });
        let mut model = [0; LINES as usize];
        let mut images = vec![out(&mut array).image()];
        let (mut was_wrong, mut touched) = (false, false);
        let mut outcome = Ok(0);
        for step in 1..400 {
            let index = random.below(LINES);
            let result = match random.below(20) {
                0 => {
                    images.push(out(&mut array).image());
                    Ok(())
                }
                1..3 if is_hostile => {
                    touched = true;
                    let image = random.one_of(&images);
                    let memory = array.port.untrusted();
                    match random.below(4) {
                        0 => drop(memory.roll_back(image, |_| true)),
                        1 => exchange(memory, index, random.below(LINES)),
                        _ => replay(memory, image, index),
                    }
                    Ok(())
                }
                3..10 => put(&mut array, index, step).map(|()| model[index as usize] = step),
                10 if !was_wrong => array.check().map(drop),
                _ => get(&mut array, index).map(|value| was_wrong |= value != model[index as usize]),
            };
            if result.is_err() {
                outcome = result.map(|()| 0);
                break;
            }
        }
        let outcome = outcome.and_then(|_| array.check());
        prop_assert!(outcome.is_err() || !was_wrong, "{was_wrong} {touched} {outcome:?}");
        prop_assert!(outcome.is_ok() || touched, "{was_wrong} {touched} {outcome:?}");
    }
}
