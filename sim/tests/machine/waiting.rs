//! Pipelines, calendars, miss registers and write buffers: not ready one cycle before, ready then.

use casemate_sim::machine::Content;
use casemate_sim::machine::cache::mshr::Entered;
use casemate_sim::machine::cache::write_buffer::Buffered;
use casemate_sim::machine::cache::{Evicted, Mshrs, WriteBuffer};
use casemate_sim::machine::cycle::{Calendar, Pipeline};
use proptest::prelude::*;

/// AES of AISE/BMT: 80 cycles, 16 stages, so a block every 5. Started at 10, results are there at
/// 90, 95, 100; the unit takes something again at 25, not at 24.
#[test]
fn a_pipeline_takes_an_operation_every_interval() {
    let mut aes = Pipeline::new(80, 5).expect("valid");
    assert_eq!([aes.start(10), aes.start(10), aes.start(11)], [90, 95, 100]);
    assert_eq!(aes.accepts_at(24), 25);
    assert_eq!(aes.accepts_at(25), 25);
    assert_eq!(aes.accepts_at(26), 26);
    // Four blocks from 30 on: the last starts at 45 and is there at 125; the next starts at 50.
    assert_eq!(aes.start_many(30, 4), 125);
    assert_eq!(aes.accepts_at(49), 50);
    assert_eq!(aes.start_many(60, 0), 60);
    assert_eq!((aes.operations(), aes.busy_cycles()), (7, 35));
}

/// [100, 140) is booked. 10 cycles from 50 on fit before; 45 from 60 on do not (60 + 45 > 100), and
/// go to 140; 40 from 60 on do, exactly.
#[test]
fn a_calendar_uses_gaps_that_are_long_enough() {
    let mut bus = Calendar::new();
    assert_eq!(bus.reserve(100, 40), 100);
    assert_eq!(bus.reserve(50, 10), 50);
    assert_eq!(bus.reserve(60, 45), 140);
    assert_eq!(bus.reserve(60, 40), 60);
    // [50, 185) is one interval now.
    for (cycle, busy) in [(49, false), (50, true), (100, true), (184, true), (185, false)] {
        assert_eq!(bus.is_busy(cycle), busy, "cycle {cycle}");
    }
    bus.forget_before(200);
    assert_eq!(bus.reserve(0, 1), 200);
    assert_eq!(bus.busy_cycles(), 136);
}

proptest! {
    /// Against an array of booleans, one for each cycle.
    #[test]
    fn a_calendar_books_the_first_free_cycles(wishes in prop::collection::vec((0..200u64, 0..20u64), 1..40)) {
        let (mut bus, mut taken) = (Calendar::new(), vec![false; 2000]);
        for (earliest, duration) in wishes {
            let free = |start: u64| !taken[start as usize..(start + duration) as usize].contains(&true);
            // Nothing fits anywhere.
            let first = (earliest..).find(|&start| free(start));
            prop_assert_eq!(Some(bus.reserve(earliest, duration)), first);
            let start = first.unwrap_or(0) as usize;
            taken[start..start + duration as usize].fill(true);
            for (cycle, &taken) in taken.iter().enumerate() {
                prop_assert_eq!(bus.is_busy(cycle as u64), taken);
            }
        }
        prop_assert_eq!(bus.busy_cycles(), taken.iter().filter(|&&taken| taken).count() as u64);
    }
}

#[test]
fn misses_of_a_block_share_a_register() {
    let mut mshrs = Mshrs::new(2, 2).expect("valid");
    assert_eq!(mshrs.enter(1, 'a'), Entered::First);
    assert_eq!(mshrs.enter(1, 'b'), Entered::Merged);
    assert_eq!(mshrs.enter(1, 'c'), Entered::Refused, "two may wait for a block");
    assert_eq!(mshrs.enter(2, 'd'), Entered::First);
    assert_eq!(mshrs.enter(3, 'e'), Entered::Refused, "there are two registers");
    let mut answered = Vec::new();
    assert!(mshrs.answer(1, &mut answered));
    assert_eq!(answered, ['a', 'b']);
    assert!(!mshrs.answer(1, &mut answered), "a block is answered once");
    assert_eq!(mshrs.enter(3, 'e'), Entered::First);
    assert!(mshrs.is_pending(2) && !mshrs.is_pending(1));
    assert_eq!((mshrs.busy_registers(), mshrs.merged(), mshrs.refused()), (2, 1, 2));
}

#[test]
fn a_write_buffer_keeps_order_and_merges() {
    let block = |address| Evicted { address, dirty: true, content: Content::Data };
    let mut buffer = WriteBuffer::new(2).expect("valid");
    assert_eq!(buffer.push(block(0)), Buffered::Added);
    assert_eq!(buffer.push(block(64)), Buffered::Added);
    assert_eq!(buffer.push(block(0)), Buffered::Merged, "a full buffer still merges");
    assert_eq!(buffer.push(block(128)), Buffered::Refused);
    assert_eq!(buffer.front(), Some(&block(0)));
    assert_eq!(buffer.take(64), Some(block(64)));
    assert_eq!(buffer.push(block(128)), Buffered::Added);
    assert_eq!(
        [buffer.pop(), buffer.pop(), buffer.pop()],
        [Some(block(0)), Some(block(128)), None]
    );
    assert_eq!((buffer.merged(), buffer.refused(), buffer.len()), (1, 1, 0));
    assert!(buffer.is_empty() && !buffer.contains(0));
}
