//! Blocks on their way to memory.

use crate::machine::{cache, load, run_on, small, store, with};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;

/// A bus that a line holds for 10 of the 100 cycles; one line in the first level, four sets of one
/// in the second.
///
/// Lines 0, 1, 2 are asked for at 12; the bus brings them at 112, 122, 132. Lines 0 and 1 are
/// changed and pushed out before they come: they go on into the second level. At 132 lines 4 and 5
/// are asked for by loads that waited for line 2: looked up by 144, here at 244 and 254. At 244
/// line 0 has to go for line 4; the bus has line 5 from 244 to 254, so line 0 is sent from 254
/// to 264. With room for one block, line 5 has to wait for that, until 264; with room for two it
/// comes in at 254.
#[test]
fn a_full_write_buffer_holds_lines_up() {
    let mut config = small();
    config.hierarchy.l1d = cache(1, 1, 2);
    config.hierarchy.l2 = cache(4, 1, 10);
    config.hierarchy.write_buffer_entries = 1;
    config.core.issue_width = 8;
    config.core.load_queue_entries = 8;
    config.core.commit_width = 8;
    let bus = FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 10 };
    let program =
        [store(0), store(64), with(0, 1, load(128)), with(1, 0, load(256)), with(1, 0, load(320))];
    let statistics = run_on(&config, bus, &program);
    assert_eq!((statistics.last_level.fills_held_up, statistics.last_level.write_backs), (1, 2));
    assert_eq!(statistics.cores[0].cycles, 264);
    config.hierarchy.write_buffer_entries = 2;
    let statistics = run_on(&config, bus, &program);
    assert_eq!((statistics.last_level.fills_held_up, statistics.last_level.write_backs), (0, 2));
    assert_eq!(statistics.cores[0].cycles, 254);
}
