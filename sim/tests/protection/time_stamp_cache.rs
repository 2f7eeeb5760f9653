//! The time-stamp cache of log hashes: what is found in it, by hand.

use casemate_sim::protection::ProtectionConfig;

use super::common::{FREE_BUS, Machine, PLAIN};

/// Time stamps of 4 bytes, two in a word: chunk n has word n / 2. Of a cache of four words, which
/// of the words 0, 4, 0, 2, 0, 4, 4 are found:
///
/// - one way: 0 and 4 take each other's place, 2 has its own: m m m m h m h;
/// - two ways: 0, 2 and 4 share two, 2 takes the place of 4, and 4 that of 2: m m h m h m h;
/// - four: m m h m h h h.
#[test]
fn ways_decide_which_time_stamps_are_found() {
    let chunks = [0, 8, 1, 4, 0, 9, 8];
    for scheme in ["lhash", "lhash-rw"] {
        for (ways, hits) in [(1, 2), (2, 3), (4, 4), (0, 4)] {
            let config = ProtectionConfig {
                time_stamp_cache_blocks: 4,
                time_stamp_cache_ways: ways,
                ..PLAIN
            };
            let mut machine = Machine::touched(scheme, &config, FREE_BUS, 1);
            for address in chunks.map(|chunk| chunk * 64) {
                machine.read(address);
                machine.drop_clean(address);
            }
            let counted = machine.unit.statistics();
            let found = (counted.time_stamp_hits, counted.time_stamp_misses);
            assert_eq!(found, (hits, 7 - hits), "{scheme}, {ways} ways");
            assert_eq!(counted.traffic.time_stamps.read_bytes, 8 * (7 - hits), "{scheme}");
            // Past the cache, each time.
            assert_eq!(counted.traffic.time_stamps.written_bytes, 7 * 4, "{scheme}");
        }
    }
}
