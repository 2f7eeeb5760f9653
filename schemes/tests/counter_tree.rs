//! The tree of counters by itself: an oracle with overflows on every level, attacks on resealing,
//! and canaries for each step of verification.

use std::collections::{HashMap, HashSet};

use casemate_core::Violation;
use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::geometry::Geometry;
use casemate_core::hostile_memory;
use casemate_core::random::{Random, SeedOnFailure, seed};
use casemate_core::verified_tree::Capacity;
use casemate_schemes::counter_tree::{CounterShape, CounterTree, CounterTreeKind, counter_tree};
use casemate_schemes::counters::Organisation;
use casemate_schemes::unit::Block;
use casemate_schemes::unit::bytes::{Algorithms, BytesUnit, Covered, Wiring};
use casemate_schemes::unit::place::{MacPlacement, Place, Region};

/// 6-bit counters for children everywhere: 64 write-backs of a line, and its siblings are resealed.
const SOON_FULL: CounterTreeKind = CounterTreeKind::uniform(Organisation::VAULT_LEAF);
/// Bytes of a line before its MAC.
const COUNTER_BYTES: usize = 56;

type HostileMemory = hostile_memory::HostileMemory<Place, Block>;
type Tree<C> = CounterTree<BytesUnit<HostileMemory, C>>;

fn tree<C: Checks>(kind: CounterTreeKind, lines: u64, cache_bytes: usize) -> Tree<C> {
    let algorithms =
        if kind == CounterTreeKind::SGX { Algorithms::SGX } else { Algorithms::GMAC64 };
    let wiring = Wiring {
        covered: Covered(vec![(Region::Counters, lines)]),
        on_chip_tree_bytes: 0,
        mac_placement: MacPlacement::Region,
        counter_tree: true,
    };
    let memory = HostileMemory::default();
    let mut port = BytesUnit::new(memory, algorithms, wiring, &[9; 32]).expect("they go together");
    port.log_seeds();
    let blocks = lines * kind.leaf.slots() as u64;
    counter_tree(port, CounterShape::over(kind, blocks, 0), Capacity::Bytes(cache_bytes))
        .expect("has a MAC field")
}

fn write<C: Checks>(tree: &mut Tree<C>, index: u64, value: u8) -> Result<(), Violation> {
    tree.amend(index, (), |line| line[..COUNTER_BYTES].fill(value))
}

fn value<C: Checks>(tree: &mut Tree<C>, index: u64) -> Result<u8, Violation> {
    tree.read(index, ()).map(|(line, ())| line[0])
}

fn place(index: u64) -> Place {
    Place::new(Region::Counters, index)
}

/// Random traffic against a map. The lines lie under several lines of every level.
fn run<C: Checks>(
    tree: &mut Tree<C>,
    random: &mut Random,
    operations: u64,
) -> Result<(), Violation> {
    let mut model = HashMap::new();
    let lines = tree.link().shape().lines(0);
    for _ in 0..operations {
        let index = match random.below(4) {
            0 => random.below(lines),
            1 => random.below(4) * (lines / 4) + random.below(3),
            _ => random.below(20),
        };
        match random.below(50) {
            0 => tree.flush()?,
            1 => tree.flush_and_forget()?,
            2..=25 => {
                let value = random.next() as u8;
                write(tree, index, value)?;
                model.insert(index, value);
            }
            _ => {
                let (line, ()) = tree.read(index, ())?;
                // Fresh lines of some organisations are not zeros.
                if let Some(value) = model.get(&index) {
                    assert_eq!(line[..COUNTER_BYTES], [*value; COUNTER_BYTES], "line {index}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn lines_read_back_as_written_under_overflows_on_every_level() {
    let seed = seed(0x7ee);
    let _print = SeedOnFailure(seed);
    for kind in
        [SOON_FULL, CounterTreeKind::SGX, CounterTreeKind::VAULT, CounterTreeKind::MORPHABLE]
    {
        for cache in [0, 1 << 20] {
            let mut tree = tree::<AllChecks>(kind, 9_000, cache);
            run(&mut tree, &mut Random::new(seed ^ cache as u64), 60_000)
                .expect("memory is intact");
            let macs = tree.port_mut().used_seeds().macs.clone().expect("it was asked for");
            let distinct: HashSet<_> = macs.iter().collect();
            assert_eq!(distinct.len(), macs.len(), "{kind:?}: a nonce was used twice");
            if kind == SOON_FULL {
                assert!(tree.link().resealed_lines() > 0);
                for level in 0..tree.link().shape().levels() {
                    let counters = macs.iter().filter(|mac| (mac.2 >> 120) as u8 == level);
                    let highest = counters.map(|mac| mac.2 as u64).max();
                    assert!(highest >= Some(64), "level {level}: {highest:?} does not fit 6 bits");
                }
            }
        }
    }
}

/// An old line is put back for a sibling; then the parent's counters overflow. What is read of the
/// sibling afterwards: its old or its new value, or a violation.
fn replayed_before_resealing<C: Checks>() -> Result<u8, Violation> {
    let mut tree = tree::<C>(SOON_FULL, 200, 0);
    write(&mut tree, 1, 0x11)?;
    tree.flush_and_forget()?;
    let old = tree.port_mut().memory_mut().image();
    write(&mut tree, 1, 0x22)?;
    tree.flush_and_forget()?;
    assert!(tree.port_mut().memory_mut().replay(place(1), &old));
    for round in 0..70 {
        write(&mut tree, 0, round)?;
        tree.flush_and_forget()?;
    }
    assert!(tree.link().resealed_lines() > 0, "70 rounds overflow 6 bits");
    value(&mut tree, 1)
}

#[test]
fn resealing_does_not_launder_a_replayed_line() {
    let leaf = |index| Err(Violation::MetadataLine { level: 0, index });
    assert_eq!(replayed_before_resealing::<AllChecks>(), leaf(1));
    // Canary: without the comparison the old line gets a MAC that fits.
    assert_eq!(replayed_before_resealing::<broken::SiblingsUnverified>(), Ok(0x11));
}

#[test]
fn canaries_of_writing_back_fail_without_any_attack() {
    fn fails<C: Checks>() -> bool {
        let mut tree = tree::<C>(SOON_FULL, 9_000, 0);
        let run = std::panic::AssertUnwindSafe(|| run(&mut tree, &mut Random::new(5), 20_000));
        !matches!(std::panic::catch_unwind(run), Ok(Ok(())))
    }
    assert!(!fails::<AllChecks>());
    assert!(fails::<broken::ParentNotUpdated>());
    assert!(fails::<broken::SiblingsNotResealed>());
}

/// What is read of a line after one bit of it, or of its ancestor on a level, was flipped.
fn flipped<C: Checks>(level: u8, bit: usize) -> Result<u8, Violation> {
    let mut tree = tree::<C>(SOON_FULL, 9_000, 0);
    write(&mut tree, 77, 0x33)?;
    tree.flush_and_forget()?;
    let region = if level == 0 { Region::Counters } else { Region::Nodes(level) };
    let place = Place::new(region, 77 / 64_u64.pow(level.into()));
    assert!(tree.port_mut().memory_mut().change(place, |line| line[bit / 8] ^= 1 << (bit % 8)));
    value(&mut tree, 77)
}

#[test]
fn every_bit_of_every_line_counts() {
    for level in 0..3 {
        for bit in 0..512 {
            let index = 77 / 64_u64.pow(level.into());
            let found = Err(Violation::MetadataLine { level, index });
            assert_eq!(flipped::<AllChecks>(level, bit), found, "level {level}, bit {bit}");
        }
    }
    assert_eq!(flipped::<broken::LeavesUnverified>(0, 0), Ok(0x32));
    // Slot 0 of the line on level 1: not the counter of line 77.
    assert_eq!(flipped::<broken::NodesUnverified>(1, 64), Ok(0x33));
}

/// What comes of two lines that changed places, and of the first line after that.
fn exchanged<C: Checks>() -> [Result<u8, Violation>; 2] {
    let mut tree = tree::<C>(CounterTreeKind::SGX, 600, 0);
    for index in [3, 4] {
        write(&mut tree, index, 0x40 + index as u8).expect("memory is intact");
    }
    tree.flush_and_forget().expect("memory is intact");
    let memory = tree.port_mut().memory_mut();
    let (third, fourth) = (memory.line(place(3)), memory.line(place(4)));
    memory.change(place(3), |line| *line = fourth);
    memory.change(place(4), |line| *line = third);
    [value(&mut tree, 4), value(&mut tree, 3)]
}

#[test]
fn two_lines_that_change_places_are_noticed() {
    let found = |index| Err(Violation::MetadataLine { level: 0, index });
    assert_eq!(exchanged::<AllChecks>(), [found(4), Err(Violation::Poisoned)]);
    assert_eq!(exchanged::<broken::NotPoisoned>(), [found(4), found(3)]);
    assert_eq!(exchanged::<broken::LeavesUnverified>(), [Ok(0x43), Ok(0x44)]);
}
