//! Loads that take their bytes from a store whose line is on its way.

use crate::machine::{cycles, load, run, small, store, with};
use casemate_sim::machine::ProcessorConfig;
use casemate_sim::trace::{Instruction, Reference};

fn forwarding() -> ProcessorConfig {
    let mut config = small();
    config.core.store_forwarding = true;
    config
}

/// Loads so many bytes.
fn part(address: u64, size_bytes: u16) -> Instruction {
    Instruction { references: vec![Reference::load(address, size_bytes)], ..load(0) }
}

/// The store's instruction is done at 1, the load then takes 2 cycles as a hit does, and the next
/// one, of another line, begins at 3 and ends at 115. Without forwarding it begins at 112, with the
/// line.
#[test]
fn a_load_takes_its_bytes_from_the_store() {
    let program = |load| [store(0), with(0, 1, load), with(1, 0, self::load(64))];
    let statistics = run(&forwarding(), &program(load(0)));
    assert_eq!(statistics.cycles, 115);
    let core = &statistics.cores[0];
    assert_eq!((core.forwarded_loads, core.merged_misses), (1, 0));
    assert_eq!(cycles(&small(), &program(load(0))), 224);
    // The last 4 of its 8 bytes; one byte more than it has; and the 8 bytes behind it.
    assert_eq!(cycles(&forwarding(), &program(part(4, 4))), 115);
    assert_eq!(cycles(&forwarding(), &program(part(4, 5))), 224);
    assert_eq!(cycles(&forwarding(), &program(load(8))), 224);
}

/// A load without registers goes a shorter way to the same end: all leave at 112 with the store's
/// line, but in its queue of one place the second load leaves room at 3, not at 112, for the third,
/// of a line of its own: 3 + 112.
#[test]
fn a_load_without_registers_does_too() {
    let mut config = forwarding();
    config.core.load_queue_entries = 1;
    let program = [store(0), load(0), load(64)];
    assert_eq!(cycles(&config, &program), 115);
    config.core.store_forwarding = false;
    assert_eq!(cycles(&config, &program), 224);
}

/// The youngest store of any of its bytes has four of the eight.
#[test]
fn the_youngest_store_counts() {
    let half = Instruction { references: vec![Reference::store(4, 4)], ..store(0) };
    let program = [store(0), half, with(0, 1, load(0)), with(1, 0, load(64))];
    assert_eq!(cycles(&forwarding(), &program), 224);
    assert_eq!(run(&forwarding(), &program).cores[0].forwarded_loads, 0);
}

/// What is stored is loaded first, by 112; the store is done at 113, the load of it at 115, and the
/// next one at 227. Without forwarding the core does not know that the load needs what is stored:
/// it enters at 1, asks for the line itself, and the next one begins with that at 113.
#[test]
fn a_load_waits_for_what_is_stored() {
    let program =
        [with(0, 1, load(128)), with(1, 0, store(0)), with(0, 2, load(0)), with(2, 0, load(64))];
    assert_eq!(cycles(&forwarding(), &program), 227);
    assert_eq!(cycles(&small(), &program), 113 + 112);
}
