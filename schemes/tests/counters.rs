//! Every counter organisation under long random walks: a counter never decreases, no block has the
//! same counter twice, and an overflow names exactly the blocks that must be re-encrypted. The same
//! walks must notice organisations that are broken on purpose.

use std::collections::HashSet;

use casemate_schemes::counters::{
    CounterBytes, Events, Exhausted, Increment, LINE_BYTES, Organisation,
};
use proptest::prelude::*;

/// A small generator of our own: the walks are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }
}

/// Which block is written next. Each way leads to other transitions, the first from a fresh line.
const PATTERNS: [fn(&mut Random, usize, usize) -> usize; 6] = [
    // One after another: deltas converge.
    |_, step, slots| step % slots,
    // Anywhere.
    |random, _, slots| random.below(slots),
    // One after another, with now and then one anywhere.
    |random, step, slots| if step % 100 == 99 { random.below(slots) } else { step % slots },
    // Mostly one.
    |random, _, slots| if random.below(4) == 0 { random.below(slots) } else { slots / 3 },
    // A quarter of them: one delta-group.
    |random, step, slots| (step / 20_000 * slots / 4 + random.below(slots / 4)) % slots,
    // A few, then more and more.
    |random, step, slots| random.below(1 + step / 500 % slots),
];

type Step<'a> = dyn FnMut(&mut CounterBytes, usize) -> Result<Increment, Exhausted> + 'a;

fn counters(organisation: Organisation, line: &CounterBytes) -> Vec<u128> {
    (0..organisation.slots()).map(|slot| organisation.counter(line, slot)).collect()
}

fn bit(line: &CounterBytes, at: usize) -> bool {
    line[at / 8] >> (at % 8) & 1 == 1
}

/// What must hold after any increment of any line with the counters `old`. Returns the new ones.
fn check_step(
    organisation: Organisation,
    old: &[u128],
    (before, after): (&CounterBytes, &CounterBytes),
    slot: usize,
    increment: &Increment,
) -> Result<Vec<u128>, String> {
    let new = counters(organisation, after);
    let fail = |what| Err(format!("{organisation:?}, slot {slot}, {increment:?}: {what}"));
    match increment {
        Increment::Overflow(range) => {
            if !range.contains(&slot) {
                return fail("the written block is not re-encrypted");
            }
            let newest = range.clone().map(|slot| old[slot]).max();
            for other in 0..old.len() {
                if range.contains(&other) && Some(new[other]) <= newest {
                    return fail("a counter is not beyond all that were used");
                }
                if !range.contains(&other) && new[other] != old[other] {
                    return fail("a counter outside the range changed");
                }
            }
        }
        Increment::Counted | Increment::Reset | Increment::Reencoded => {
            for other in 0..old.len() {
                if new[other] != old[other] + u128::from(other == slot) {
                    return fail("a counter is not what it should be");
                }
            }
        }
    }
    let mac = organisation.mac_field().unwrap_or(0..0);
    if mac.into_iter().any(|at| bit(before, at) != bit(after, at)) {
        return fail("the MAC was touched");
    }
    Ok(new)
}

/// How often each kind of increment was seen.
#[derive(Debug, Default)]
struct Seen {
    counted: usize,
    reset: usize,
    reencoded: usize,
    overflows: usize,
}

/// Writes `steps` times and checks all of it.
fn walk(organisation: Organisation, steps: usize, step: &mut Step<'_>) -> Result<Seen, String> {
    let slots = organisation.slots();
    let mut line = organisation.initial(&mut || Some(1)).expect("an LPID");
    for at in organisation.mac_field().into_iter().flatten().step_by(3) {
        line[at / 8] |= 1 << (at % 8);
    }
    let mut now = counters(organisation, &line);
    let mut used: HashSet<(usize, u128)> = now.iter().copied().enumerate().collect();
    let (mut random, mut seen) = (Random(7), Seen::default());
    for at in 0..steps {
        let pattern = PATTERNS[at * PATTERNS.len() / steps];
        let slot = pattern(&mut random, at, slots);
        let before = line;
        let increment = step(&mut line, slot).map_err(|error| error.to_string())?;
        now = check_step(organisation, &now, (&before, &line), slot, &increment)?;
        let changed = match increment {
            Increment::Counted => (slot..slot + 1, seen.counted += 1).0,
            Increment::Reset => (slot..slot + 1, seen.reset += 1).0,
            Increment::Reencoded => (slot..slot + 1, seen.reencoded += 1).0,
            Increment::Overflow(range) => (range, seen.overflows += 1).0,
        };
        for slot in changed {
            if !used.insert((slot, now[slot])) {
                return Err(format!("{organisation:?}: slot {slot} has {} twice", now[slot]));
            }
        }
    }
    Ok(seen)
}

/// Counting as it is, with LPIDs 2, 3, 4, …
fn honest(
    organisation: Organisation,
) -> impl FnMut(&mut CounterBytes, usize) -> Result<Increment, Exhausted> {
    let mut lpid = 1;
    move |line, slot| {
        organisation.increment(line, slot, &mut || {
            lpid += 1;
            Some(lpid)
        })
    }
}

#[test]
fn a_million_writes_use_no_counter_twice() {
    for organisation in Organisation::ALL {
        let seen = walk(organisation, 1_000_000, &mut honest(organisation))
            .unwrap_or_else(|error| panic!("{error}"));
        println!("{organisation:?}: {seen:?}");
        assert!(seen.counted > 0, "{organisation:?}");
        let Events { resets, reencodes, overflows } = organisation.events();
        assert_eq!(seen.reset > 0, resets, "{organisation:?}");
        assert_eq!(seen.reencoded > 0, reencodes, "{organisation:?}");
        assert_eq!(seen.overflows > 0, overflows, "{organisation:?}");
    }
}

/// Runs a walk with a mistake made after each step; it must be noticed.
fn must_be_noticed(
    what: &str,
    organisation: Organisation,
    mut mistake: impl FnMut(&CounterBytes, &mut CounterBytes, &mut Increment),
) {
    let mut step = honest(organisation);
    let walked = walk(organisation, 200_000, &mut |line, slot| {
        let before = *line;
        let mut increment = step(line, slot)?;
        mistake(&before, line, &mut increment);
        Ok(increment)
    });
    assert!(walked.is_err(), "{what} of {organisation:?} was not noticed");
}

#[test]
fn broken_organisations_are_noticed() {
    use Organisation as O;
    for organisation in O::ALL {
        must_be_noticed("a write that is not counted", organisation, |before, after, _| {
            *after = *before;
        });
        let mut step = 0;
        must_be_noticed("a counter that starts again", organisation, |_, after, increment| {
            step += 1;
            if step % 1000 == 0 {
                *after = organisation.initial(&mut || Some(1)).expect("an LPID");
                *increment = Increment::Overflow(0..organisation.slots());
            }
        });
    }
    for organisation in [O::SPLIT, O::AISE, O::VAULT_LEAF, O::VAULT_32, O::DELTA, O::DUAL_LENGTH] {
        must_be_noticed("an overflow under the old major", organisation, |before, after, done| {
            if matches!(done, Increment::Overflow(_)) {
                after[..7].copy_from_slice(&before[..7]);
            }
        });
    }
    for organisation in [O::SPLIT, O::AISE, O::VAULT_LEAF, O::DELTA, O::DUAL_LENGTH, O::MORPHABLE] {
        must_be_noticed("a block that is left out", organisation, |_, _, increment| {
            if let Increment::Overflow(range) = increment {
                range.end -= 1;
            }
        });
        must_be_noticed("an overflow that is not reported", organisation, |_, _, increment| {
            if matches!(increment, Increment::Overflow(_)) {
                *increment = Increment::Reencoded;
            }
        });
    }
    for organisation in [O::DELTA, O::DUAL_LENGTH] {
        must_be_noticed("a reset that forgets the deltas", organisation, |before, after, done| {
            if *done == Increment::Reset {
                after[..7].copy_from_slice(&before[..7]);
            }
        });
        must_be_noticed(
            "re-encoding without a new reference",
            organisation,
            |before, after, done| {
                if *done == Increment::Reencoded {
                    after[..7].copy_from_slice(&before[..7]);
                }
            },
        );
    }
    must_be_noticed("bits lent to the wrong group", O::DUAL_LENGTH, |before, after, increment| {
        if *increment == Increment::Reencoded {
            after[63] = before[63];
        }
    });
    must_be_noticed("rebasing one half only", O::MORPHABLE, |before, after, increment| {
        if *increment == Increment::Reencoded && before[0] & after[0] & 1 == 1 {
            after[7] = before[7];
        }
    });
    for organisation in [O::VAULT_LEAF, O::MORPHABLE] {
        must_be_noticed("a MAC that is wiped", organisation, |_, after, increment| {
            if matches!(increment, Increment::Overflow(_)) {
                after[56..].fill(0);
            }
        });
    }
}

/// Sequential writes never re-encrypt a delta-encoded group, and a split one every 128 rounds
/// (Delta/ECC 4.3, "Resetting Deltas").
#[test]
fn sequential_writes_reset_deltas() {
    let overflows = |organisation: Organisation| {
        let mut line = organisation.initial(&mut || Some(1)).expect("an LPID");
        let mut step = honest(organisation);
        (0..1280 * organisation.slots())
            .map(|at| step(&mut line, at % organisation.slots()).expect("far from the end"))
            .filter(|increment| matches!(increment, Increment::Overflow(_)))
            .count()
    };
    assert_eq!(overflows(Organisation::DELTA), 0);
    assert_eq!(overflows(Organisation::DUAL_LENGTH), 0);
    // The first block overflows first, and all start again.
    assert_eq!(overflows(Organisation::SPLIT), 1280 / 128);
    assert_eq!(overflows(Organisation::AISE), 1280 / 128);
}

/// What the papers say: AISE/BMT 4.6 (64 bytes for a page), Delta/ECC 2.1 and 4 (56 bits each; 56
/// and 64 · 7; 56, 64 · 6, 16 · 4 and 2), VAULT and Morphable Counters (64 bits left for a MAC).
#[test]
fn storage() {
    use Organisation as O;
    let expected = [
        (O::MONOLITHIC_56, 8, 448, 56.0, None),
        (O::MONOLITHIC_64, 8, 512, 64.0, None),
        (O::SPLIT, 64, 512, 8.0, None),
        (O::AISE, 64, 512, 8.0, None),
        (O::DELTA, 64, 504, 7.875, None),
        (O::DUAL_LENGTH, 64, 506, 7.90625, None),
        (O::SGX, 8, 448, 56.0, Some(448..504)),
        (O::VAULT_LEAF, 64, 448, 7.0, Some(448..512)),
        (O::VAULT_32, 32, 448, 14.0, Some(448..512)),
        (O::VAULT_16, 16, 448, 28.0, Some(448..512)),
        (O::MORPHABLE, 128, 448, 3.5, Some(448..512)),
    ];
    assert_eq!(expected.each_ref().map(|row| row.0), O::ALL);
    for (organisation, slots, bits, per_block, mac) in expected {
        assert_eq!(organisation.slots(), slots);
        assert_eq!(organisation.counter_bits(), bits);
        assert_eq!(organisation.bits_per_block(), per_block);
        assert_eq!(organisation.mac_field(), mac);
    }
}

#[test]
fn blocks_start_at_zero_and_pages_with_an_lpid() {
    for organisation in Organisation::ALL {
        let line = organisation.initial(&mut || Some(9)).expect("an LPID");
        let start = if organisation == Organisation::AISE { 9 << 7 } else { 0 };
        assert!(counters(organisation, &line).into_iter().all(|counter| counter == start));
        let none = organisation.initial(&mut || None);
        assert_eq!(none.is_err(), organisation == Organisation::AISE);
    }
}

fn any_line() -> impl Strategy<Value = CounterBytes> {
    let words = proptest::array::uniform8(prop_oneof![
        4 => any::<u64>(),
        1 => Just(0),
        1 => Just(u64::MAX),
    ]);
    // A format bit and a size are hard to hit by chance.
    (words, prop_oneof![3 => Just(None), 1 => (0u8..=16).prop_map(Some)]).prop_map(
        |(words, size)| {
            let mut line = [0; LINE_BYTES];
            for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *bytes = word.to_le_bytes();
            }
            if let Some(size) = size {
                line[0] = size << 1 | line[0] & 0x80;
            }
            line
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    /// Any bytes are a line: they can be read, and counted in as if they were ours, or the counter
    /// is exhausted and nothing changes.
    #[test]
    fn any_bytes_are_a_line(line in any_line(), slot: prop::sample::Index, fresh: u64) {
        for organisation in Organisation::ALL {
            let slot = slot.index(organisation.slots());
            let mut after = line;
            match organisation.increment(&mut after, slot, &mut || Some(fresh)) {
                Ok(increment) => {
                    let old = counters(organisation, &line);
                    check_step(organisation, &old, (&line, &after), slot, &increment)
                        .map_err(TestCaseError::fail)?;
                }
                Err(Exhausted) => prop_assert_eq!(after, line),
            }
        }
    }
}

/// The name tells two organisations apart, in tables and in comparisons.
#[test]
fn names_are_distinct() {
    let names: HashSet<_> = Organisation::ALL.iter().map(|one| one.name()).collect();
    assert_eq!(names.len(), Organisation::ALL.len());
}
