//! Our trace format: what is written comes back, from any place; no damage goes unnoticed.

mod common;

use casemate_sim::trace::format::decode::Decoder;
use casemate_sim::trace::format::{Reader, Writer};
use casemate_sim::trace::{Header, Instruction, Reference, Source, TraceError};
use common::{any_program, drain, is_truth_without_blocks, small_program};
use proptest::prelude::*;
use std::io::Cursor;

fn header() -> Header {
    Header {
        recorded_by: "a test".to_owned(),
        program: b"/bin/pro\xffgram".to_vec(),
        arguments: vec![b"-x".to_vec(), Vec::new(), b"two words".to_vec()],
        hash: Some([7; 32]),
        skipped_instructions: 1 << 40,
    }
}

fn write(program: &[Instruction], block_records: u32) -> Vec<u8> {
    let writer = Writer::with_block_records(Vec::new(), &header(), block_records);
    let mut writer = writer.expect("the header fits");
    for instruction in program {
        writer.write(instruction).expect("the instruction fits");
    }
    writer.finish().expect("memory can be written").1
}

fn open(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, TraceError> {
    Reader::open(Cursor::new(bytes))
}

fn read(bytes: &[u8]) -> (Vec<Instruction>, Result<(), TraceError>) {
    match open(bytes) {
        Ok(mut reader) => drain(&mut reader),
        Err(error) => (Vec::new(), Err(error)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_program_comes_back(program in any_program(), block in 1_u32..300) {
        let bytes = write(&program, block);
        let (back, ended) = read(&bytes);
        prop_assert!(ended.is_ok(), "{ended:?}");
        prop_assert!(back == program);
        let mut reader = open(&bytes).expect("it was just read");
        prop_assert_eq!(reader.header(), &header());
        let totals = reader.totals().expect("it has an index");
        prop_assert_eq!(totals.records, program.len() as u64);
        let instructions: u64 = program.iter().map(Instruction::instructions).sum();
        prop_assert_eq!(totals.instructions, instructions);
        let references: usize = program.iter().map(|i| i.references.len()).sum();
        prop_assert_eq!(totals.loads + totals.stores, references as u64);
    }

    #[test]
    fn reading_begins_at_any_instruction(
        program in any_program(),
        block in 1_u32..100,
        place in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!program.is_empty());
        let bytes = write(&program, block);
        let mut reader = open(&bytes).expect("it was just written");
        // Two times, so that the second seek starts from the middle.
        for place in [place.index(program.len()), place.index(program.len()) / 2] {
            let before: u64 = program[..place].iter().map(Instruction::instructions).sum();
            let last = before + program[place].instructions() - 1;
            for wanted in [before, last] {
                prop_assert_eq!(reader.seek(wanted).expect("it has an index"), before);
                let (rest, ended) = drain(&mut reader);
                prop_assert!(ended.is_ok() && rest == program[place..]);
            }
        }
        prop_assert!(reader.seek(u64::MAX).is_ok());
        prop_assert!(drain(&mut reader).0.is_empty());
    }

    #[test]
    fn any_columns_decode_to_an_end(
        columns in proptest::collection::vec(proptest::collection::vec(0_u8..12, 0..60), 5),
        records in 0_u64..1000,
    ) {
        let mut bytes: Vec<u8> =
            columns.iter().flat_map(|column| (column.len() as u32).to_le_bytes()).collect();
        bytes.extend(columns.concat());
        let mut decoder = Decoder::default();
        let mut record = Instruction::default();
        if decoder.begin(bytes, records).is_some() {
            while decoder.left() > 0 && decoder.next(&mut record).is_some() {}
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(read(&bytes).1.is_err());
        let mut salvage = Reader::salvage(Cursor::new(&bytes[..])).expect("memory can be read");
        prop_assert_eq!(drain(&mut salvage).0.len(), 0);
        prop_assert!(!salvage.damages().is_empty());
    }
}

const BLOCK: usize = 40;

#[test]
fn every_truncation_is_named_and_what_is_whole_is_salvaged() {
    let program = small_program(300);
    let whole = write(&program, BLOCK as u32);
    for length in 0..whole.len() {
        let cut = &whole[..length];
        let (given, ended) = read(cut);
        assert_eq!(given, program[..given.len()], "cut at {length}");
        match ended.expect_err("a part is missing") {
            TraceError::Empty => assert_eq!(length, 0),
            TraceError::NotATrace => assert!((1..8).contains(&length), "cut at {length}"),
            TraceError::Truncated { offset, .. } => assert!(offset <= length as u64),
            other => panic!("cut at {length}: {other}"),
        }
        let mut salvage = Reader::salvage(Cursor::new(cut)).expect("memory can be read");
        let (salvaged, ended) = drain(&mut salvage);
        assert!(ended.is_ok() && !salvage.damages().is_empty(), "cut at {length}");
        // All that is whole was also read before the error.
        assert_eq!(salvaged, given, "cut at {length}");
    }
}

#[test]
fn every_changed_byte_is_noticed_and_costs_its_block_only() {
    let program = small_program(300);
    let whole = write(&program, BLOCK as u32);
    for place in 0..whole.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[place] ^= change;
            let (given, ended) = read(&bytes);
            assert_eq!(given, program[..given.len()], "byte {place} ^ {change}");
            match ended.expect_err("a byte was changed") {
                TraceError::Truncated { offset, .. } | TraceError::Corrupt { offset, .. } => {
                    assert!(offset <= place as u64, "byte {place}: named {offset}");
                }
                TraceError::NotATrace | TraceError::Version { .. } => assert!(place < 10),
                other => panic!("byte {place} ^ {change}: {other}"),
            }
            let mut salvage = Reader::salvage(Cursor::new(&bytes[..])).expect("memory can be read");
            let (salvaged, ended) = drain(&mut salvage);
            assert!(ended.is_ok() && !salvage.damages().is_empty(), "byte {place} ^ {change}");
            let lost = is_truth_without_blocks(&salvaged, &program, BLOCK);
            assert!(matches!(lost, Ok(0 | 1)), "byte {place} ^ {change}: {lost:?}");
            if let Some(lost) = salvage.damages().iter().find_map(|d| d.lost_instructions) {
                assert_eq!(lost as usize, program.len() - salvaged.len(), "byte {place}");
            }
        }
    }
}

#[test]
fn the_comparison_of_what_was_salvaged_can_fail() {
    let program = small_program(100);
    assert_eq!(is_truth_without_blocks(&program, &program, 40), Ok(0));
    let without_second = [&program[..40], &program[80..]].concat();
    assert_eq!(is_truth_without_blocks(&without_second, &program, 40), Ok(1));
    let mut changed = program.clone();
    changed[50].pc ^= 1;
    assert!(is_truth_without_blocks(&changed, &program, 40).is_err());
    let half_a_block = [&program[..20], &program[40..]].concat();
    assert!(is_truth_without_blocks(&half_a_block, &program, 40).is_err());
    let doubled = [&program[..40], &program[..]].concat();
    assert!(is_truth_without_blocks(&doubled, &program, 40).is_err());
}

#[test]
fn a_missing_block_is_missed() {
    let program = small_program(120);
    let whole = write(&program, BLOCK as u32);
    let entries = open(&whole).expect("a trace").index().expect("an index");
    let (from, to) = (entries[1].offset as usize, entries[2].offset as usize);
    let bytes = [&whole[..from], &whole[to..]].concat();
    let error = read(&bytes).1.expect_err("a block is missing");
    assert!(matches!(error, TraceError::Corrupt { offset, .. } if offset == from as u64));
    let mut salvage = Reader::salvage(Cursor::new(&bytes[..])).expect("memory can be read");
    let (salvaged, _) = drain(&mut salvage);
    assert_eq!(salvaged, [&program[..40], &program[80..]].concat());
    assert_eq!(salvage.damages()[0].lost_instructions, Some(40));
}

#[test]
fn a_recording_that_was_not_finished_is_salvaged() {
    let program = small_program(100);
    let mut bytes = Vec::new();
    let mut writer = Writer::with_block_records(&mut bytes, &header(), 40).expect("a header");
    for instruction in &program {
        writer.write(instruction).expect("the instruction fits");
    }
    drop(writer);
    assert!(matches!(read(&bytes).1, Err(TraceError::Truncated { .. })));
    let mut salvage = Reader::salvage(Cursor::new(&bytes[..])).expect("memory can be read");
    assert_eq!(drain(&mut salvage).0, program[..80]);
}

#[test]
fn what_has_no_place_is_refused() {
    let mut writer = Writer::new(Vec::new(), &header()).expect("a header");
    let many = vec![Reference::load(0, 1); 4097];
    let too_many = Instruction { references: many, ..Instruction::default() };
    let too_large = Reference { value: Some(256), ..Reference::load(0, 1) };
    let too_large = Instruction { references: vec![too_large], ..Instruction::default() };
    for instruction in [too_many, too_large] {
        let refused = writer.write(&instruction).expect_err("there is no place for it");
        assert!(matches!(refused, TraceError::Unwritable(_)));
    }
}

#[test]
fn what_repeats_takes_next_to_nothing() {
    // Two references to each seven instructions; one value in seven is random, of four bytes.
    let program = small_program(700_000);
    let bytes = write(&program, 1 << 18);
    let random = program.len() / 7 * 4;
    assert!(bytes.len() < random * 14 / 10, "{} bytes", bytes.len());
    let mut reader = open(&bytes).expect("a trace");
    let mut record = Instruction::default();
    assert!(reader.next(&mut record).expect("it is whole"));
}

/// `data/version-1.casetrace` was written by Casemate at commit 11bee49, `version-2` at 2109819,
/// from lines of this kind.
#[test]
fn files_of_older_versions_are_read() {
    let files: [&[u8]; 2] =
        [include_bytes!("data/version-1.casetrace"), include_bytes!("data/version-2.casetrace")];
    let mut state = 12345_u64;
    let truth: Vec<Instruction> = (0..60)
        .map(|i| {
            state = (state * 1_103_515_245 + 12345) % (1 << 31);
            let address = 0x1000 + 64 * i + state % 4 * 8192;
            let load = !state.is_multiple_of(3);
            let reference =
                if load { Reference::load(address, 0) } else { Reference::store(address, 0) };
            Instruction { references: vec![reference], ..Instruction::default() }
        })
        .collect();
    for (bytes, version) in files.into_iter().zip(1..) {
        assert_eq!(open(bytes).expect("a trace").version(), version);
        let (given, ended) = read(bytes);
        assert!(ended.is_ok() && given == truth, "{ended:?}");
    }
    assert_eq!(open(&write(&truth, 40)).expect("a trace").version(), 3);
    // A later version is refused by its number, not as damage.
    let mut later = files[1].to_vec();
    later[8] = 4;
    assert!(matches!(read(&later).1, Err(TraceError::Version { found: 4, known: 3 })));
}

#[test]
fn what_the_kernel_changed_takes_few_bytes() {
    // A system call for each 70 instructions; without it the same program.
    let with = small_program(70_000);
    let mut without = with.clone();
    without.iter_mut().for_each(|instruction| instruction.changed.clear());
    let extents = with.iter().map(|i| i.changed.len()).sum::<usize>();
    assert_eq!(extents, 1000);
    let (with, without) = (write(&with, 1 << 18).len(), write(&without, 1 << 18).len());
    // A random size has 12 bits, and the difference of addresses is always the same.
    assert!(with < without + 6 * extents, "{with} and {without} bytes");
}
