//! DDR memories, clock by clock. Expected clocks are sums of JEDEC's parameters.
//!
//! DDR3-1600K: CL 11, CWL 8, burst 4, tRCD 11, tRP 11, tRAS 28, tRRD 5, tFAW 24, tCCD 4, tWTR 6,
//! tWR 12, tRTP 6, tREFI 6240, tRFC 208. A core of 800 MHz has the memory's clocks as cycles.

use casemate_sim::machine::memory::ddr::{DdrConfig, Scheduler};
use casemate_sim::machine::memory::{Completion, Ddr, Memory, Refused, Request};
use casemate_sim::machine::{Access, Content};

/// Bytes from one row of a bank to the next: 8 banks of 8 KiB.
const ROW: u64 = 8 * 8192;
/// Bytes from one bank to the next.
const BANK: u64 = 8192;

fn ddr3() -> Ddr {
    Ddr::new(DdrConfig::ddr3_1600(1, 800).expect("valid")).expect("valid")
}

fn ddr4(core_mhz: u64) -> Ddr {
    Ddr::new(DdrConfig::ddr4_2400(1, core_mhz).expect("valid")).expect("valid")
}

fn send(memory: &mut Ddr, now: u64, id: u64, access: Access, address: u64) {
    let request = Request { id, address, size_bytes: 64, access, content: Content::Data };
    assert_eq!(memory.send(now, request), Ok(()));
}

fn read(memory: &mut Ddr, now: u64, id: u64, address: u64) {
    send(memory, now, id, Access::Read, address);
}

fn write(memory: &mut Ddr, now: u64, id: u64, address: u64) {
    send(memory, now, id, Access::Write, address);
}

/// Asserts that these and no others are answered, each not a cycle earlier.
fn assert_answers(memory: &mut Ddr, expected: &[(u64, u64)]) {
    for &(id, at) in expected {
        let mut answered = Vec::new();
        memory.advance(at - 1, &mut answered);
        assert_eq!(answered, [], "before request {id}");
        memory.advance(at, &mut answered);
        assert_eq!(answered, [Completion { id, at }]);
    }
    assert_eq!(memory.next_event(), None);
}

/// ACT 0, RD tRCD = 11, data until 11 + CL + burst = 26.
#[test]
fn a_closed_bank_needs_an_activation() {
    let mut memory = ddr3();
    read(&mut memory, 0, 1, 0);
    assert_answers(&mut memory, &[(1, 26)]);
    assert_eq!(memory.statistics().row_misses, 1);
}

/// The second RD comes tCCD = 4 after the first: 15 + 15 = 30.
#[test]
fn an_open_row_is_hit() {
    let mut memory = ddr3();
    read(&mut memory, 0, 1, 0);
    read(&mut memory, 0, 2, 64);
    assert_answers(&mut memory, &[(1, 26), (2, 30)]);
    assert_eq!(memory.statistics().row_hits, 1);
}

/// PRE at max(tRAS 28, 11 + tRTP 6) = 28, ACT 39, RD 50, data until 65.
#[test]
fn another_row_waits_for_ras_and_precharge() {
    let mut memory = ddr3();
    read(&mut memory, 0, 1, 0);
    read(&mut memory, 0, 2, ROW);
    assert_answers(&mut memory, &[(1, 26), (2, 65)]);
    assert_eq!(memory.statistics().row_conflicts, 1);
}

/// Hit again at 30, the row is closed by tRTP: RD 30, PRE 36, ACT 47, RD 58, data until 73.
#[test]
fn a_late_read_holds_the_precharge_back() {
    let mut memory = ddr3();
    read(&mut memory, 0, 1, 0);
    read(&mut memory, 30, 2, 64);
    read(&mut memory, 31, 3, ROW);
    let mut answered = Vec::new();
    memory.advance(31, &mut answered);
    assert_eq!(answered, [Completion { id: 1, at: 26 }]);
    assert_answers(&mut memory, &[(2, 45), (3, 73)]);
}

/// ACTs at 0, 5, 10, 15 (tRRD), the fifth at tFAW = 24 instead of 20; each data 26 later.
#[test]
fn four_activations_fill_the_window() {
    let mut memory = ddr3();
    for bank in 0..5 {
        read(&mut memory, 0, bank, bank * BANK);
    }
    assert_answers(&mut memory, &[(0, 26), (1, 31), (2, 36), (3, 41), (4, 50)]);
}

/// WR 11, data until 11 + CWL + burst = 23. A read of the row waits tWTR: RD 29, data until 44.
#[test]
fn a_read_after_a_write_waits() {
    let mut memory = ddr3();
    write(&mut memory, 0, 1, 0);
    read(&mut memory, 12, 2, 64);
    assert_answers(&mut memory, &[(1, 23), (2, 44)]);
}

/// After data until 23, PRE waits tWR: 35; ACT 46, RD 57, data until 72.
#[test]
fn a_written_row_is_closed_after_its_recovery() {
    let mut memory = ddr3();
    write(&mut memory, 0, 1, 0);
    read(&mut memory, 12, 2, ROW);
    assert_answers(&mut memory, &[(1, 23), (2, 72)]);
}

/// RD 11, data until 26, two idle clocks: written data starts at 28, so WR at 20; until 32. That is
/// JEDEC's RL + tCCD + 2 - WL = 9 after the read.
#[test]
fn the_data_bus_turns_round() {
    let mut memory = ddr3();
    read(&mut memory, 0, 1, 0);
    write(&mut memory, 12, 2, 64);
    assert_answers(&mut memory, &[(1, 26), (2, 32)]);
}

/// A read that comes at 6239 is still served: ACT 6239; but its RD would come at 6250, and the
/// refresh is due at 6240: PREA at 6239 + tRAS = 6267, REF 6278, ACT 6486, RD 6497, data
/// until 6512. One that comes at 6240 in an idle rank: REF 6240, ACT 6448, RD 6459, data
/// until 6474.
#[test]
fn a_refresh_closes_the_rank() {
    let mut memory = ddr3();
    read(&mut memory, 6239, 1, 0);
    assert_answers(&mut memory, &[(1, 6512)]);
    let mut memory = ddr3();
    read(&mut memory, 6240, 1, 0);
    assert_answers(&mut memory, &[(1, 6474)]);
    assert_eq!(memory.statistics().refreshes, 1);
}

/// A (row 0), B (row 1), C (row 0) at once. Ready first: A 26, C 30, then B as after A alone, 65
/// (PRE at 28, later than 15 + tRTP). In order: A 26, B 65; then PRE at 39 + tRAS = 67, ACT 78, RD
/// 89, data until 104.
#[test]
fn the_scheduler_decides_who_passes() {
    let run = |scheduler, expected: &[(u64, u64)]| {
        let config = DdrConfig::ddr3_1600(1, 800).expect("valid");
        let mut memory = Ddr::new(DdrConfig { scheduler, ..config }).expect("valid");
        read(&mut memory, 0, 1, 0);
        read(&mut memory, 0, 2, ROW);
        read(&mut memory, 0, 3, 64);
        assert_answers(&mut memory, expected);
    };
    run(Scheduler::FR_FCFS, &[(1, 26), (3, 30), (2, 65)]);
    run(Scheduler::Fcfs, &[(1, 26), (2, 65), (3, 104)]);
    // One use of the row is the limit: C may not pass.
    run(Scheduler::FrFcfs { row_uses: 1 }, &[(1, 26), (2, 65), (3, 104)]);
}

/// Burst 0 and 15 more of its row (RD 11, 15, to 71) pass burst 1, which needs another; then it
/// goes first: PRE at 71 + tRTP = 77, ACT 88, RD 99, data until 114. The other three: PRE at 88 +
/// tRAS = 116, ACT 127, RD 138, 142, 146.
#[test]
fn no_burst_is_passed_for_ever() {
    let mut memory = ddr3();
    read(&mut memory, 0, 0, 0);
    read(&mut memory, 0, 1, ROW);
    for id in 2..20 {
        read(&mut memory, 0, id, id * 64);
    }
    let mut expected = vec![(0, 26)];
    expected.extend((2..17).map(|id| (id, 26 + 4 * (id - 1))));
    expected.extend([(1, 114), (17, 153), (18, 157), (19, 161)]);
    assert_answers(&mut memory, &expected);
}

/// 24 writes of a row go before a read: WR 11, 15, to 71, data until 23 to 83, until 8 are left.
/// Then ACT 72 for the read, RD at 83 + tWTR = 89, data until 104; the writes' data follows at 106,
/// until 110 to 138. With 23 writes the read goes first: 26.
#[test]
fn many_writes_go_before_reads() {
    let full = |writes: u64| {
        let mut memory = ddr3();
        for id in 0..writes {
            write(&mut memory, 0, id, id * 64);
        }
        read(&mut memory, 0, 99, BANK);
        memory
    };
    let mut expected: Vec<_> = (0..16).map(|id| (id, 23 + 4 * id)).collect();
    expected.push((99, 104));
    expected.extend((16..24).map(|id| (id, 110 + 4 * (id - 16))));
    assert_answers(&mut full(24), &expected);
    let mut answered = Vec::new();
    let mut memory = full(23);
    memory.advance(25, &mut answered);
    assert_eq!(answered, []);
    memory.advance(26, &mut answered);
    assert_eq!(answered, [Completion { id: 99, at: 26 }]);
}

/// The 24th write comes at 20, while a read waits for its bank, which is closed at 28 at the
/// earliest. No write is sent before: ACT 20, WR 31, data until 43 to 103 for the 16 that go. Then
/// PRE 92, ACT 103 and RD 114 for the read, data until 129, and the other writes' from 131, until
/// 135 to 163.
#[test]
fn writes_do_not_begin_before_the_one_that_fills_their_queue() {
    let mut memory = ddr3();
    read(&mut memory, 0, 98, 0);
    read(&mut memory, 0, 99, ROW);
    for id in 0..23 {
        write(&mut memory, 0, id, BANK + id * 64);
    }
    write(&mut memory, 20, 23, BANK + 23 * 64);
    let mut expected = vec![(98, 26)];
    expected.extend((0..16).map(|id| (id, 43 + 4 * id)));
    expected.push((99, 129));
    expected.extend((16..24).map(|id| (id, 135 + 4 * (id - 16))));
    assert_answers(&mut memory, &expected);
}

/// What waits to be written is read from the queue, a clock later. The bus is given to reads first,
/// so the write of bank 1 waits while the read of bank 0 has its ACT at 0, RD at 11: ACT 12, WR 23,
/// and its data starts at 31, after 26 + 2; until 35.
#[test]
fn waiting_writes_answer_reads() {
    let mut memory = ddr3();
    read(&mut memory, 0, 1, 0);
    write(&mut memory, 0, 2, BANK);
    read(&mut memory, 3, 3, BANK);
    assert_answers(&mut memory, &[(3, 4), (1, 26), (2, 35)]);
    assert_eq!(memory.statistics().forwarded_reads, 1);
    assert_eq!(memory.traffic().bytes(), 128);
}

/// 32 reads fill the queue; the first leaves it with its RD at 11.
#[test]
fn a_full_queue_refuses_until_a_command_leaves_it() {
    let mut memory = ddr3();
    for id in 0..32 {
        read(&mut memory, 0, id, id * 64);
    }
    let more = Request {
        id: 99,
        address: 0,
        size_bytes: 64,
        access: Access::Read,
        content: Content::Data,
    };
    assert_eq!(memory.send(11, more), Err(Refused::Full));
    assert_eq!(memory.send(12, more), Ok(()));
    let large = Request { size_bytes: 2112, ..more };
    assert_eq!(memory.send(12, large), Err(Refused::TooLarge { size_bytes: 2112, most: 2048 }));
}

/// 128 bytes are two bursts of a row: the answer comes with the second, at 30.
#[test]
fn a_request_of_two_bursts_is_answered_once() {
    let mut memory = ddr3();
    let request = Request {
        id: 1,
        address: 0,
        size_bytes: 128,
        access: Access::Read,
        content: Content::Data,
    };
    assert_eq!(memory.send(0, request), Ok(()));
    assert_answers(&mut memory, &[(1, 30)]);
    assert_eq!(memory.traffic().bytes(), 128);
}

/// DDR4-2400R: ACT 0, RD 16, data until 16 + 16 + 4 = 36. Blocks 0 and 1 are in different bank
/// groups: ACT at tRRD_S = 4, RD 20 (tCCD_S), until 40. Blocks 0 and 4 are in one row: RD 16 +
/// tCCD_L = 22, until 42.
#[test]
fn bank_groups_have_distances_of_their_own() {
    let mut memory = ddr4(1200);
    read(&mut memory, 0, 1, 0);
    read(&mut memory, 0, 2, 64);
    assert_answers(&mut memory, &[(1, 36), (2, 40)]);
    let mut memory = ddr4(1200);
    read(&mut memory, 0, 1, 0);
    read(&mut memory, 0, 2, 256);
    assert_answers(&mut memory, &[(1, 36), (2, 42)]);
}

/// The same beside a core of 3200 MHz, 8/3 cycles a clock: 36 are 96 cycles, 40 are 106.67, so 107.
/// A request at cycle 1 meets the clock that begins at cycle 2.67: 37 clocks are 98.67 cycles, so
/// 99.
#[test]
fn clocks_are_counted_in_cycles_of_the_core() {
    let mut memory = ddr4(3200);
    read(&mut memory, 0, 1, 0);
    read(&mut memory, 0, 2, 64);
    assert_answers(&mut memory, &[(1, 96), (2, 107)]);
    let mut memory = ddr4(3200);
    read(&mut memory, 1, 1, 0);
    assert_answers(&mut memory, &[(1, 99)]);
}
