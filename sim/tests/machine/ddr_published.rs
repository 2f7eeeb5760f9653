//! DDR memories beside what others publish: the parameters of DRAMsim3's configuration files, and
//! what follows from them by arithmetic.
//!
//! DRAMsim3 answers a read CL + BL/2 clocks after its command, as we do, so idle latencies are sums
//! of its parameters, and ours are compared with them: no error for reads. A request takes it one
//! clock more from its transaction queue to its command queue, which is no time of the memory and
//! is left out.

use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::{Completion, Ddr, Memory, Refused, Request};
use casemate_sim::machine::{Access, Content};

/// Of a file in DRAMsim3's `configs`, in clocks.
struct Published {
    cl: u64,
    t_rcd: u64,
    t_rp: u64,
    t_ras: u64,
    t_rfc: u64,
    t_refi: u64,
}

const BURST: u64 = 4;

/// `DDR3_4Gb_x8_1600.ini`: CWL 8, tRRD 5, tFAW 24, tWTR 6, tWR 12, tRTP 6, tCCD 4 are ours, too.
const DDR3: Published =
    Published { cl: 11, t_rcd: 11, t_rp: 11, t_ras: 28, t_rfc: 208, t_refi: 6240 };

/// `DDR4_8Gb_x8_2400.ini`: tRRD 4/6, tFAW 26, tWTR 3/9, tCCD 4/6 are ours, too. It has CWL 16 (ours
/// 12, that of JESD79-4's first set, so that our writes are sent 4 clocks earlier), tWR 19 (18),
/// tRFC 420 (421: 350 ns, rounded up), tREFI 9364 (9363: 7.8 us, rounded down).
const DDR4: Published =
    Published { cl: 16, t_rcd: 16, t_rp: 16, t_ras: 39, t_rfc: 420, t_refi: 9364 };

/// Bytes from one row of a bank to the next, and a block of the same bank and row.
struct Shape {
    row: u64,
    same_row: u64,
}

fn memories() -> [(Ddr, Published, Shape); 2] {
    let ddr3 = DdrConfig::ddr3_1600(1, 800).expect("valid");
    let ddr4 = DdrConfig::ddr4_2400(1, 1200).expect("valid");
    let new = |config| Ddr::new(config).expect("valid");
    // 8 banks of 8 KiB; 16 of 8 KiB, where neighbours are in four bank groups.
    [
        (new(ddr3), DDR3, Shape { row: 8 << 13, same_row: 64 }),
        (new(ddr4), DDR4, Shape { row: 16 << 13, same_row: 256 }),
    ]
}

fn read(address: u64) -> Request {
    Request { id: address, address, size_bytes: 64, access: Access::Read, content: Content::Data }
}

/// How long a read takes that comes to an idle memory at this clock.
fn latency(memory: &mut Ddr, now: u64, address: u64) -> u64 {
    assert_eq!(memory.send(now, read(address)), Ok(()));
    let mut answered = Vec::new();
    while let Some(at) = memory.next_event() {
        memory.advance(at, &mut answered);
    }
    let [Completion { at, .. }] = answered[..] else { panic!("{answered:?}") };
    at - now
}

/// Each comes long after the one before, and before the first refresh.
#[test]
fn idle_latencies_are_sums_of_published_parameters() {
    for (mut memory, Published { cl, t_rcd, t_rp, .. }, shape) in memories() {
        assert_eq!(latency(&mut memory, 0, 0), t_rcd + cl + BURST, "the bank is closed");
        assert_eq!(latency(&mut memory, 500, shape.same_row), cl + BURST, "the row is open");
        assert_eq!(latency(&mut memory, 1000, shape.row), t_rp + t_rcd + cl + BURST, "another is");
        let statistics = memory.statistics();
        let kinds = (statistics.row_misses, statistics.row_hits, statistics.row_conflicts);
        assert_eq!(kinds, (1, 1, 1));
    }
}

/// Reads these, with as many under way as are taken; the clock of the last answer.
fn stream(memory: &mut Ddr, addresses: impl Iterator<Item = u64>) -> u64 {
    let (mut now, mut answered) = (0, Vec::new());
    for address in addresses {
        while memory.send(now, read(address)) == Err(Refused::Full) {
            now = memory.next_event().expect("something is under way").max(now + 1);
            memory.advance(now, &mut answered);
        }
    }
    while let Some(at) = memory.next_event() {
        memory.advance(at, &mut answered);
    }
    answered.last().expect("all are answered").at
}

/// A stream fills the bus but for refreshes. Each stops it for tRFC, and until data flows again
/// after it: from the last data before to the precharge (at most tRAS), tRP, tRCD and CL. That is
/// 96.7 % of 12.8 GB/s at most and 95.6 % at least for DDR3-1600, and 95.5 % to 94.6 % of 19.2 GB/s
/// for DDR4-2400.
#[test]
fn a_stream_has_the_bandwidth_that_refresh_leaves() {
    for (mut memory, Published { cl, t_rcd, t_rp, t_ras, t_rfc, t_refi }, _) in memories() {
        let blocks = 200_000;
        let clocks = stream(&mut memory, (0..blocks).map(|block| block * 64));
        let share = (blocks * BURST) as f64 / clocks as f64;
        let lost = |clocks: u64| 1.0 - clocks as f64 / t_refi as f64;
        let (most, least) = (lost(t_rfc), lost(t_rfc + t_ras + t_rp + t_rcd + cl));
        // Half a per mille is the last refresh interval, of which only a part was run.
        assert!((least - 0.0005..=most + 0.0005).contains(&share), "{least} <= {share} <= {most}");
    }
}

/// A bank that opens another row for every block gives one every tRC = tRAS + tRP: 10.3 % of the
/// bus for DDR3-1600, 7.3 % for DDR4-2400, but for refreshes, which stop at most tRFC + tRC of each
/// tREFI.
#[test]
fn row_conflicts_in_one_bank_come_at_the_pace_of_trc() {
    for (mut memory, Published { t_ras, t_rp, t_rfc, t_refi, .. }, shape) in memories() {
        let (blocks, t_rc) = (20_000, t_ras + t_rp);
        let clocks = stream(&mut memory, (0..blocks).map(|n| n * shape.row));
        let pace = clocks as f64 / blocks as f64 / t_rc as f64;
        let slowest = t_refi as f64 / (t_refi - t_rfc - t_rc) as f64;
        assert!((1.0..=slowest + 0.001).contains(&pace), "{pace} of tRC, at most {slowest}");
    }
}
