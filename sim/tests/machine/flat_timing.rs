//! The flat memory, cycle by cycle.

use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{Completion, FlatBus, Memory, Refused, Request};
use casemate_sim::machine::{Access, Content};

fn request(id: u64, access: Access, size_bytes: u32) -> Request {
    Request { id, address: 0, size_bytes, access, content: Content::Data }
}

/// Asserts that exactly `id` is answered at `at`, and nothing in the cycle before.
fn assert_answered(memory: &mut FlatBus, id: u64, at: u64) {
    let mut answered = Vec::new();
    assert_eq!(memory.next_event(), Some(at));
    memory.advance(at - 1, &mut answered);
    assert_eq!(answered, []);
    memory.advance(at, &mut answered);
    assert_eq!(answered, [Completion { id, at }]);
}

/// LHash: 8 chunks of 5 cycles, the first of which ends at 80: 80 + 7 * 5 = 115. The bus is held in
/// [75, 115).
#[test]
fn a_block_takes_the_latency_and_seven_more_chunks() {
    let mut memory = FlatBus::new(FlatBusConfig::LHASH).expect("valid");
    assert_eq!(memory.send(0, request(1, Access::Read, 64)), Ok(()));
    assert_answered(&mut memory, 1, 115);
    assert_eq!(memory.next_event(), None);
    assert_eq!(memory.bus_busy_cycles(), 40);
}

/// Two reads, at 0 and 10. The second's first chunk could be on the bus from 80 on, but the bus is
/// held until 115, and its 40 cycles end at 155.
#[test]
fn a_second_block_waits_for_the_bus() {
    let mut memory = FlatBus::new(FlatBusConfig::LHASH).expect("valid");
    assert_eq!(memory.send(0, request(1, Access::Read, 64)), Ok(()));
    assert_eq!(memory.send(10, request(2, Access::Read, 64)), Ok(()));
    assert_answered(&mut memory, 1, 115);
    assert_answered(&mut memory, 2, 155);
}

/// A read at 0 holds [75, 115). A write of 64 bytes at 20 has [20, 60), before it. One at 40 finds
/// [60, 75) too short for 40 cycles and takes [115, 155); one of 16 bytes then fits in [60, 70).
#[test]
fn writes_pass_while_a_read_waits_for_memory() {
    let mut memory = FlatBus::new(FlatBusConfig::LHASH).expect("valid");
    assert_eq!(memory.send(0, request(1, Access::Read, 64)), Ok(()));
    assert_eq!(memory.send(20, request(2, Access::Write, 64)), Ok(()));
    assert_eq!(memory.send(40, request(3, Access::Write, 64)), Ok(()));
    assert_eq!(memory.send(40, request(4, Access::Write, 16)), Ok(()));
    assert_answered(&mut memory, 2, 60);
    assert_answered(&mut memory, 4, 70);
    assert_answered(&mut memory, 1, 115);
    assert_answered(&mut memory, 3, 155);
}

/// AISE/BMT: 200 cycles for any block, however many are on the way; within a cycle, in order.
#[test]
fn without_a_bus_nothing_waits() {
    let mut memory = FlatBus::new(FlatBusConfig::AISE_BMT).expect("valid");
    for id in 0..3 {
        assert_eq!(memory.send(7, request(id, Access::Read, 64)), Ok(()));
    }
    let mut answered = Vec::new();
    memory.advance(206, &mut answered);
    assert_eq!(answered, []);
    memory.advance(207, &mut answered);
    assert_eq!(answered, [0, 1, 2].map(|id| Completion { id, at: 207 }));
}

/// OTP/SNC: a line of 128 bytes is 16 chunks: 100 + 15 * 2 = 130.
#[test]
fn a_line_of_128_bytes_has_16_chunks() {
    let mut memory = FlatBus::new(FlatBusConfig::OTP_SNC).expect("valid");
    assert_eq!(memory.send(0, request(1, Access::Read, 128)), Ok(()));
    assert_answered(&mut memory, 1, 130);
    let refused = Err(Refused::TooLarge { size_bytes: 4097, most: 4096 });
    assert_eq!(memory.send(200, request(2, Access::Read, 4097)), refused);
}
