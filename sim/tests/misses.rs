//! The stream of last-level misses and write-backs.

#[path = "common/machine.rs"]
mod machine;

use std::collections::HashMap;

use casemate_sim::machine::memory::{AnyMemory, FlatBus};
use casemate_sim::machine::{ProcessorConfig, Timeline};
use casemate_sim::misses::Misses;
use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::format::{Reader, Writer};
use casemate_sim::trace::{Header, Instruction, Kind, Source};
use machine::{FLAT, Listed, load, run, small, store, with};

fn start<'a>(config: &ProcessorConfig, program: &'a [Instruction]) -> Misses<Listed<'a>> {
    let memory = AnyMemory::from(FlatBus::new(FLAT).expect("valid"));
    Misses::new(config, Timeline::new(memory), Listed::new(program), None).expect("valid")
}

fn all(misses: &mut Misses<Listed<'_>>) -> Vec<Instruction> {
    let (mut all, mut request) = (Vec::new(), Instruction::default());
    while misses.next(&mut request).expect("runs") {
        all.push(request.clone());
    }
    all
}

/// Cycle, direction and place in its page of each request.
fn places(requests: &[Instruction]) -> Vec<(u64, Kind, u64)> {
    let place = |request: &Instruction| {
        let cycle = request.arrival_cycle.expect("requests have cycles");
        (cycle, request.references[0].kind, request.references[0].address % 4096)
    };
    requests.iter().map(place).collect()
}

/// A load that misses is looked up for 2 and 10 cycles, so memory is asked at 12 and answers
/// at 112. The next one waits for it, begins at 112, and asks at 124. What hits asks nothing.
#[test]
fn misses_have_the_cycle_at_which_memory_is_asked() {
    let program = [with(0, 1, load(64)), with(1, 1, load(256)), with(1, 1, load(72))];
    let requests = all(&mut start(&small(), &program));
    assert_eq!(places(&requests), [(12, Kind::Load, 64), (124, Kind::Load, 256)]);
    assert!(requests.iter().all(|request| request.references[0].size_bytes == 64));
}

/// Sixteen sets of four ways: the blocks at 0, 1024, and so on are all in one set. The first is
/// stored to; the first level has two lines for them, and the third block is promised the first
/// one's place while that is on its way, so that it goes on to the last level as it comes, changed,
/// at 112. The second block comes after it, at 112 too, and each other one waits for the one
/// before: at 224, 336, 448. The fifth finds the set full, and block 0 used longest ago: it is
/// written at
/// 448. The sixth throws the second out, which is unchanged.
#[test]
fn a_dirty_block_is_written_when_it_leaves() {
    let chain: Vec<Instruction> =
        (0..6).map(|n| if n == 0 { store(0) } else { with(1, 1, load(n * 1024)) }).collect();
    let count = |length: usize| {
        let mut misses = start(&small(), &chain[..length]);
        let requests = places(&all(&mut misses));
        let is_write = |request: &&(u64, Kind, u64)| request.1 == Kind::Store;
        let writes: Vec<_> = requests.iter().filter(is_write).copied().collect();
        assert_eq!(misses.requests(), (length as u64, writes.len() as u64));
        (misses.clean_evictions(), writes)
    };
    assert_eq!(count(4), (0, vec![]));
    assert_eq!(count(5), (0, vec![(448, Kind::Store, 0)]));
    assert_eq!(count(6), (1, vec![(448, Kind::Store, 0)]));
}

/// Loads and stores anywhere in 64 KiB, four times the last level.
fn scattered() -> Vec<Instruction> {
    let mut state = 1_u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let address = state >> 40 & 0xfff8;
        if state >> 33 & 3 == 0 { store(address) } else { load(address) }
    };
    (0..20_000).map(step).collect()
}

#[test]
fn requests_are_what_the_machine_counts_in_the_order_of_time() {
    let program = scattered();
    let mut misses = start(&small(), &program);
    let requests = all(&mut misses);
    // The machine beside it is not observed.
    let expected = run(&small(), &program);
    assert_eq!(misses.statistics(), expected);
    let (reads, writes) = misses.requests();
    assert_eq!((reads, writes), (expected.last_level.reads, expected.last_level.write_backs));
    assert_eq!(misses.clean_evictions(), expected.last_level.clean_drops);
    let memory = expected.memory;
    assert_eq!(64 * reads, memory.data_reads.bytes);
    assert_eq!(64 * writes, memory.data_writes.bytes);
    assert!(reads > 5000 && writes > 1000);
    assert!(requests.is_sorted_by_key(|request| request.arrival_cycle));
    // A block is written only after it was read, once for each time.
    let mut inside: HashMap<u64, bool> = HashMap::new();
    for request in &requests {
        let reference = request.references[0];
        let was_inside = inside.insert(reference.address, reference.kind == Kind::Load);
        assert!(reference.kind == Kind::Load || was_inside == Some(true), "{request:?}");
    }
}

fn read(format: Format, text: Vec<u8>) -> Vec<Instruction> {
    drain(format.read(std::io::Cursor::new(text)).expect("a trace"))
}

fn drain(mut source: impl Source) -> Vec<Instruction> {
    let (mut all, mut record) = (Vec::new(), Instruction::default());
    while source.next(&mut record).expect("whole") {
        all.push(record.clone());
    }
    all
}

#[test]
fn every_format_is_read_again() {
    let requests = all(&mut start(&small(), &scattered()));
    let mut own = Writer::new(Vec::new(), &Header::default()).expect("a header");
    requests.iter().for_each(|request| own.write(request).expect("written"));
    let (_, bytes) = own.finish().expect("finished");
    let own = drain(Reader::open(std::io::Cursor::new(bytes)).expect("a trace"));
    assert_eq!(own, requests);
    // The others know no sizes, and Ramulator no cycles.
    for (format, has_cycles) in [(Format::Dramsim3, true), (Format::RamulatorLoadStore, false)] {
        let mut text = Vec::new();
        requests.iter().for_each(|request| format.write(&mut text, request).expect("written"));
        let expected: Vec<Instruction> = requests
            .iter()
            .map(|request| {
                let mut request = request.clone();
                request.references[0].size_bytes = 0;
                request.arrival_cycle = request.arrival_cycle.filter(|_| has_cycles);
                request
            })
            .collect();
        assert_eq!(read(format, text), expected, "{format:?}");
    }
}

#[test]
fn what_a_format_has_no_place_for_is_refused() {
    let request = &all(&mut start(&small(), &[load(0)]))[0];
    for format in [Format::ChampSim, Format::RamulatorSimpleO3] {
        assert!(format.write(&mut Vec::new(), request).is_err());
    }
    let timeless = Instruction { arrival_cycle: None, ..request.clone() };
    assert!(Format::Dramsim3.write(&mut Vec::new(), &timeless).is_err());
    assert!(Format::RamulatorLoadStore.write(&mut Vec::new(), &timeless).is_ok());
}
