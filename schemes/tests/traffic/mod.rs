//! Random traffic through a protection unit, held against a map.
#![allow(dead_code)] // each suite uses its part

use std::collections::{BTreeMap, HashMap};

use casemate_core::checks::AllChecks;
use casemate_schemes::unit::bytes::BytesUnit;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::{Capacity, UnitSize};
use casemate_schemes::unit::{BlockAddress, PageAddress, ProtectionUnit, Scheme};

use casemate_core::random::Random;

const FRAMES: u64 = 40;
pub const SECRET: [u8; 32] = [7; 32];

pub type Unit<const LINE: usize = 64> =
    ProtectionUnit<BytesUnit<SparseMemory<[u8; LINE]>, AllChecks, LINE>>;

pub fn size(frames: u64, metadata_cache_bytes: usize) -> UnitSize {
    UnitSize::new(frames, metadata_cache_bytes)
}

pub fn unit(scheme: &Scheme, metadata_cache_bytes: usize) -> Unit {
    unit_of(scheme, metadata_cache_bytes)
}

/// A unit of lines of so many bytes.
pub fn unit_of<const LINE: usize>(scheme: &Scheme, metadata_cache_bytes: usize) -> Unit<LINE> {
    booted(scheme, size(FRAMES, metadata_cache_bytes))
}

fn booted<const LINE: usize>(scheme: &Scheme, size: UnitSize) -> Unit<LINE> {
    let unit = scheme.in_lines(SparseMemory::default(), size, &SECRET);
    let mut unit = unit.expect("the parts go together");
    unit.boot(FRAMES).expect("memory is intact");
    unit
}

pub fn random_block<const LINE: usize>(random: &mut Random) -> [u8; LINE] {
    let mut block = [0; LINE];
    for word in block.chunks_exact_mut(8) {
        // Zeros often, as in real memory.
        let value = if random.one_in(4) { 0 } else { random.next() };
        word.copy_from_slice(&value.to_le_bytes());
    }
    block
}

/// A few lines are hot, so that small counters overflow.
fn random_address<const LINE: usize>(random: &mut Random) -> BlockAddress {
    let frame = if random.one_in(3) { 1 } else { random.below(FRAMES) };
    let block = if random.one_in(3) { 5 } else { random.below(64) };
    let first = block - block % (LINE as u64 / 64);
    PageAddress::identical(frame).block(first)
}

/// Blocks that the program's cache may hold unchanged.
const HELD: usize = 8;

/// A unit whose metadata lines stay on chip until they are thrown out.
pub fn governed(scheme: &Scheme) -> Unit {
    governed_of(scheme)
}

/// The same, of lines of so many bytes.
pub fn governed_of<const LINE: usize>(scheme: &Scheme) -> Unit<LINE> {
    let size = UnitSize { metadata_cache: Capacity::Governed, ..size(FRAMES, 0) };
    booted(scheme, size)
}

/// A line that may be on chip: counters of 40 pages, and nodes above all that is covered.
fn any_line(random: &mut Random) -> Place {
    match random.below(3) {
        0 => Place::new(Region::Counters, random.below(320)),
        1 => Place::new(Region::Nodes(1), random.below(660)),
        _ => Place::new(Region::Nodes(2 + random.below(5) as u8), random.below(80)),
    }
}

/// So many random operations; everything that is read is what was written last.
pub fn run<const LINE: usize>(unit: &mut Unit<LINE>, random: &mut Random, operations: u64) {
    run_throwing_out(unit, random, operations, 0);
}

/// The same on a [`governed`] unit, of whose lines fewer than `most_thrown_out` are thrown out
/// after each operation.
pub fn run_throwing_out<const LINE: usize>(
    unit: &mut Unit<LINE>,
    random: &mut Random,
    operations: u64,
    most_thrown_out: u64,
) {
    let mut model: HashMap<BlockAddress, [u8; LINE]> = HashMap::new();
    // What the program's cache holds; it tells when it drops something, and may ask again before.
    let mut held: BTreeMap<BlockAddress, [u8; LINE]> = BTreeMap::new();
    for _ in 0..operations {
        let at = random_address::<LINE>(random);
        match random.below(100) {
            0..=48 => {
                let block = random_block(random);
                unit.write(at, &block).expect("memory is intact");
                held.remove(&at);
                model.insert(at, block);
            }
            49..=97 => {
                let expected = model.get(&at).copied().unwrap_or([0; LINE]);
                assert_eq!(unit.read(at).expect("memory is intact"), expected, "{at:?}");
                held.insert(at, expected);
            }
            98 => {
                unit.allocate(at.page).expect("memory is intact");
                model.retain(|other, _| other.page != at.page);
                held.retain(|other, _| other.page != at.page);
            }
            // Rarely where lines are thrown out one by one: that is to find them in any state.
            _ if most_thrown_out > 0 && !random.one_in(10) => {}
            _ if random.one_in(4) => unit.check().expect("memory is intact"),
            _ => unit.flush().expect("memory is intact"),
        }
        if most_thrown_out > 0 {
            for _ in 0..random.below(most_thrown_out) {
                unit.evict_metadata(any_line(random)).expect("memory is intact");
            }
        }
        if held.len() > HELD {
            let victim =
                *held.keys().nth(random.below(HELD as u64) as usize).expect("there are more");
            let block = held.remove(&victim).expect("it was there");
            unit.drop_clean(victim, &block).expect("memory is intact");
        }
    }
    unit.check().expect("memory is intact");
}
