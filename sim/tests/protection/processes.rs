//! Several processes: sequence numbers of their own, switches between them, and pages of plaintext.

use casemate_sim::machine::backing::{Backing, BlockAddresses, PageAddresses};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::processor::Progress;
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::protection::config::OnSwitch;
use casemate_sim::protection::plaintext::PlaintextPages;
use casemate_sim::protection::record::{Asked, Event};
use casemate_sim::protection::{Protected, ProtectionConfig, ProtectionStatistics, Twin};
use casemate_sim::trace::process::in_process;
use casemate_sim::trace::synthetic::{Mix, Synthetic};
use casemate_sim::trace::turns::Turns;

use super::common::{FREE_BUS, Machine, PLAIN, flat, page};

const MEMORY_BYTES: u64 = 256 << 20;

/// A block of virtual address 64 of a process, whose frame has the process's number.
fn block_of(process: u32) -> BlockAddresses {
    let frame_address = u64::from(process) * 4096 + 64;
    BlockAddresses { frame_address, virtual_address: in_process(64, process) }
}

fn two_processes(snc_on_switch: OnSwitch) -> Machine {
    let config = ProtectionConfig { snc_on_switch, ..PLAIN };
    let mut machine = Machine::new("otp-lru", &config, FREE_BUS);
    for process in 0..2 {
        let block = block_of(process);
        let page = PageAddresses {
            frame_address: block.frame_address - 64,
            virtual_address: block.virtual_address - 64,
        };
        machine.unit.touch_page(page, &mut machine.timeline);
    }
    machine
}

/// One virtual address is two lines. With tags both numbers are on chip: 100 + 1. Without, the
/// chip knows the running process's, and the other one's is in memory: 150 + 50 + 1 (OTP/SNC,
/// section 4.3).
#[test]
fn one_address_of_two_processes_has_two_sequence_numbers() {
    for (snc_on_switch, usable, misses) in
        [(OnSwitch::Tag, [1_101, 2_101], 2), (OnSwitch::Flush, [1_101, 2_201], 1)]
    {
        let mut machine = two_processes(snc_on_switch);
        for process in 0..2 {
            machine.unit.write_back(block_of(process), &mut machine.timeline);
        }
        // Each was looked for when it was written first.
        assert_eq!(machine.unit.statistics().sequence_number_misses, misses);
        for process in 0..2 {
            machine.pass_until(1_000 * u64::from(process + 1));
            let read = machine.unit.read(block_of(process), &mut machine.timeline);
            machine.is_there_at(read.usable, usable[process as usize]);
        }
        assert_eq!(machine.unit.failure(), None);
    }
}

/// Plaintext is there when it comes, written or not, and nothing is encrypted for it. Without the
/// key a line's number comes first, 150 + 50 + 1, and is on chip from then on; so it is with the
/// page beside, which is not named.
#[test]
fn a_page_of_plaintext_has_no_sequence_numbers_and_no_pads() {
    for (named, usable, misses) in [("1000-1fff", [1_100, 5_100], 0), ("none", [1_201, 5_101], 1)] {
        let plaintext_pages = PlaintextPages::try_from(named.to_owned()).expect("ranges");
        let config = ProtectionConfig { plaintext_pages, ..PLAIN };
        let mut machine = Machine::new("otp-lru", &config, FREE_BUS);
        for address in [0x1000, 0x2000] {
            machine.unit.touch_page(page(address), &mut machine.timeline);
        }
        let read = machine.read_at(0x1040, 1_000);
        machine.is_there_at(read.usable, usable[0]);
        machine.write_back(0x1040);
        let read = machine.read_at(0x1040, 5_000);
        machine.is_there_at(read.usable, usable[1]);
        let statistics = machine.unit.statistics();
        assert_eq!(statistics.sequence_number_misses, misses, "{named}");
        assert_eq!(statistics.cipher_operations == 0, misses == 0, "{named}");
        let beside = machine.read_at(0x2040, 9_000);
        machine.is_there_at(beside.usable, 9_201);
        assert_eq!(machine.unit.failure(), None);
    }
}

/// What a machine of one core asked of its unit for programs that take turns, and what it counted.
fn run(snc_on_switch: OnSwitch, warms: bool, turn: u64) -> (Vec<Event>, ProtectionStatistics, u64) {
    let mut machine = ProcessorConfig::LHASH;
    machine.hierarchy.memory_bytes = MEMORY_BYTES;
    machine.hierarchy.l2.size_bytes = 64 << 10;
    machine.hierarchy.l2.block_bytes = 64;
    let config = ProtectionConfig { memory_bytes: MEMORY_BYTES, snc_on_switch, ..PLAIN };
    let mut timeline = Timeline::new(flat(FlatBusConfig::LHASH));
    let mut unit = Protected::named("otp-lru", &config, &mut timeline).expect("it can be built");
    unit.record();
    let mut processor = Processor::new(&machine, timeline, unit).expect("it is possible");
    // One program twice: all virtual addresses are the same.
    let program = || Synthetic::new(Mix::HEAVY_WITH_STORES, 7, 40_000);
    let mut turns = Turns::new(vec![program(), program()], turn).expect("two programs");
    let ended = if warms {
        processor.warm_until_instructions(&mut turns, u64::MAX)
    } else {
        processor.run_until_instructions(&mut turns, u64::MAX)
    };
    assert_eq!(ended.expect("there is room"), Progress::TraceEnded);
    processor.finish().expect("there is room");
    let record = processor.backing_mut().take_record();
    let mut twin = Twin::new(
        &casemate_schemes::catalogue::by_name("otp-lru").expect("it has a name").scheme,
        &config,
    )
    .expect("it can be built");
    twin.follow(&record).unwrap_or_else(|difference| panic!("{difference}"));
    assert_eq!(processor.backing_mut().failure(), None);
    (record, processor.backing_mut().statistics(), turns.switches())
}

/// The unit hears of every switch of the trace, with time and without, and reads what was written,
/// by its twin on bytes. A flush puts numbers into memory at each; tags leave them.
#[test]
fn a_trace_of_two_processes_switches_the_unit() {
    for warms in [false, true] {
        let mut written = Vec::new();
        for snc_on_switch in [OnSwitch::Flush, OnSwitch::Tag] {
            let (record, statistics, switches) = run(snc_on_switch, warms, 5_000);
            let heard =
                record.iter().filter(|event| matches!(event, Event::Asked(Asked::Switch(_))));
            assert_eq!((heard.count() as u64, switches), (15, 15), "{warms}");
            written.push(statistics.traffic.sequence_numbers.writes);
        }
        assert!(written[0] > 1_000 && written[1] == 0, "{warms}: {written:?}");
    }
}

/// Only one core can be told which process it runs.
#[test]
fn processes_do_not_take_turns_on_two_cores() {
    let mut machine = ProcessorConfig::LHASH;
    machine.core.cores = 2;
    machine.hierarchy.memory_bytes = MEMORY_BYTES;
    let timeline = Timeline::new(flat(FlatBusConfig::LHASH));
    let backing = casemate_sim::machine::backing::Unprotected::default();
    let mut processor = Processor::new(&machine, timeline, backing).expect("it is possible");
    let program = || Synthetic::new(Mix::HEAVY, 7, 1_000);
    let mut turns = Turns::new(vec![program(), program()], 100).expect("two programs");
    let refused = processor.run_until_instructions(&mut turns, u64::MAX);
    let sentence = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(sentence.contains("set cores = 1"), "{sentence}");
}
