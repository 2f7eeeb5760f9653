//! Traces of other tools: what they mean, and that nothing malformed is taken.

mod common;

use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::{Branch, Instruction, Reference, TraceError};
use common::drain;
use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::process::{Command, Stdio};

fn read(format: Format, bytes: &[u8]) -> (Vec<Instruction>, Result<(), TraceError>) {
    match format.read(Cursor::new(bytes.to_vec())) {
        Ok(mut source) => drain(&mut source),
        Err(error) => (Vec::new(), Err(error)),
    }
}

fn refused(format: Format, text: &str) -> String {
    read(format, text.as_bytes()).1.expect_err("it is malformed").to_string()
}

/// A ChampSim record, written by its table of bytes.
fn champsim_record(pc: u64, branch: [u8; 2], stores: [u64; 2], loads: [u64; 4]) -> Vec<u8> {
    let mut record = pc.to_le_bytes().to_vec();
    record.extend(branch);
    record.extend([6, 25, 7, 8, 0, 0]);
    stores.iter().chain(&loads).for_each(|address| record.extend(address.to_le_bytes()));
    assert_eq!(record.len(), 64);
    record
}

fn champsim_trace(records: u64) -> Vec<u8> {
    (0..records)
        .flat_map(|i| {
            let branch = [[0, 0], [1, 0], [1, 1]][i as usize % 3];
            champsim_record(0x40_0000 + 4 * i, branch, [0, i], [0x1000 + i, 0, 0, 7])
        })
        .collect()
}

#[test]
fn champsim_records_say_what_they_say() {
    let (all, ended) = read(Format::ChampSim, &champsim_trace(3));
    assert!(ended.is_ok());
    let last = &all[2];
    assert_eq!((last.pc, last.branch), (0x40_0008, Branch::Taken));
    let references = [Reference::load(0x1002, 0), Reference::load(7, 0), Reference::store(2, 0)];
    assert_eq!(last.references, references);
    assert_eq!(last.registers.written[..2], [6, 25]);
    assert_eq!(last.registers.read[..4], [7, 8, 0, 0]);
    assert_eq!((all[0].branch, all[1].branch), (Branch::No, Branch::NotTaken));
}

#[test]
fn a_champsim_trace_that_is_cut_or_none_is_refused() {
    let whole = champsim_trace(2);
    for length in 0..whole.len() {
        let (_, ended) = read(Format::ChampSim, &whole[..length]);
        assert_eq!(ended.is_ok(), length == 64, "cut at {length}");
    }
    let (given, ended) = read(Format::ChampSim, &whole[..100]);
    assert_eq!(given.len(), 1);
    let sentence = ended.expect_err("it is cut").to_string();
    assert!(sentence.starts_with("byte 64: ") && sentence.contains("36 of"), "{sentence}");
    let text = b"0x12345678 READ 17\n0x12345678 READ 17\n0x12345678 READ 17\n0x12345678 READ 17\n";
    assert!(read(Format::ChampSim, text).1.is_err());
}

#[test]
fn ramulator_and_dramsim3_lines_say_what_they_say() {
    let (all, ended) = read(Format::RamulatorLoadStore, b"LD 0x1F\nST 16\nLD 0X20");
    assert!(ended.is_ok());
    let references: Vec<_> = all.iter().flat_map(|i| i.references.clone()).collect();
    let expected = [Reference::load(31, 0), Reference::store(16, 0), Reference::load(32, 0)];
    assert_eq!(references, expected);

    let (all, ended) = read(Format::RamulatorSimpleO3, b"3 64\n0 128 4096\r\n");
    assert!(ended.is_ok());
    assert_eq!((all[0].unrecorded_before, all[0].instructions()), (3, 4));
    assert_eq!(all[1].references, [Reference::load(128, 0), Reference::store(4096, 0)]);

    let (all, ended) = read(Format::Dramsim3, b"0xFF READ 10\nff00 P_MEM_WR 12\n");
    assert!(ended.is_ok());
    assert_eq!((all[0].arrival_cycle, all[1].arrival_cycle), (Some(10), Some(12)));
    assert_eq!(all[1].references, [Reference::store(0xff00, 0)]);
}

#[test]
fn malformed_lines_are_named() {
    use Format::{Dramsim3, RamulatorLoadStore, RamulatorSimpleO3};
    for (format, text, line) in [
        (RamulatorLoadStore, "LD 0x1\n\nLD 0x2\n", "line 2: "),
        (RamulatorLoadStore, "LD\n", "line 1: "),
        (RamulatorLoadStore, "LD 1 2\n", "line 1: "),
        (RamulatorLoadStore, "ld 1\n", "line 1: "),
        (RamulatorLoadStore, "LD 1f\n", "line 1: "),
        (RamulatorLoadStore, "LD 0x\n", "line 1: "),
        (RamulatorLoadStore, "LD -1\n", "line 1: "),
        (RamulatorLoadStore, "LD +1\n", "line 1: "),
        (RamulatorLoadStore, "LD 18446744073709551616\n", "line 1: "),
        (RamulatorSimpleO3, "1 2 3\n4 0x10\n", "line 2: "),
        (RamulatorSimpleO3, "1 2 3 4\n", "line 1: "),
        (RamulatorSimpleO3, "4294967296 2\n", "line 1: "),
        (Dramsim3, "0x10 READ\n", "line 1: "),
        (Dramsim3, "0x10 REED 4\n", "line 1: "),
        (Dramsim3, "0x10 READ 4\n0xg READ 5\n", "line 2: "),
        (Dramsim3, "0x10 READ 0x4\n", "line 1: "),
    ] {
        let sentence = refused(format, text);
        assert!(sentence.starts_with(line), "{text:?}: {sentence}");
    }
    let long = format!("LD {}\n", "0".repeat(5000));
    assert!(refused(RamulatorLoadStore, &long).contains("1024 bytes"));
    assert!(read(RamulatorLoadStore, b"LD \xff\n").1.is_err());
}

fn compress(tool: &str, bytes: &[u8]) -> Vec<u8> {
    let child = Command::new(tool).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("gzip and xz are installed");
    // Less than a pipe holds, so neither process waits for the other.
    child.stdin.take().expect("it is a pipe").write_all(bytes).expect("the tool reads");
    child.wait_with_output().expect("the tool ends").stdout
}

#[test]
fn compressed_traces_are_read_and_no_truncation_is_taken_for_the_end() {
    let plain = champsim_trace(200);
    let truth = read(Format::ChampSim, &plain).0;
    for tool in ["gzip", "xz"] {
        let packed = compress(tool, &plain);
        assert!(packed.len() < plain.len() / 2, "{tool}");
        let (all, ended) = read(Format::ChampSim, &packed);
        assert!(ended.is_ok() && all == truth, "{tool}: {ended:?}");
        // Two files behind each other are one, as for the tools themselves.
        let (twice, ended) = read(Format::ChampSim, &packed.repeat(2));
        assert!(ended.is_ok() && twice.len() == 400, "{tool}: {ended:?}");
        // Shorter than the marks by which they are told, they are no ChampSim records either.
        for length in 1..packed.len() {
            let (_, ended) = read(Format::ChampSim, &packed[..length]);
            let error = ended.expect_err("the end is missing");
            assert!(matches!(error, TraceError::Malformed { .. }), "{tool} at {length}: {error}");
        }
    }
}

#[test]
fn a_changed_byte_of_a_compressed_trace_gives_no_other_trace() {
    let plain = champsim_trace(200);
    let truth = read(Format::ChampSim, &plain).0;
    for tool in ["gzip", "xz"] {
        let packed = compress(tool, &plain);
        for place in 0..packed.len() {
            let mut bytes = packed.clone();
            bytes[place] ^= 0x41;
            // What the tools ignore (a time, a name) may change; what was recorded may not.
            let (all, ended) = read(Format::ChampSim, &bytes);
            assert!(ended.is_err() || all == truth, "{tool}, byte {place}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_end_in_records_or_a_place(bytes: Vec<u8>, which in 0_usize..4) {
        for start in [&b""[..], b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"LD 0x", b"1 2"] {
            let (all, ended) = read(Format::ALL[which], &[start, &bytes].concat());
            prop_assert!(all.len() <= bytes.len() + 5);
            if let Err(error) = ended {
                let sentence = error.to_string();
                prop_assert!(sentence.starts_with("line ") || sentence.starts_with("byte "), "{sentence}");
            }
        }
    }

    #[test]
    fn any_lines_of_near_words_end_in_records_or_a_line(
        words in proptest::collection::vec("(LD|ST|0x|[0-9a-f]{1,3}|READ|WRITE| |\n){1,4}", 0..40),
        which in 1_usize..4,
    ) {
        let text = words.join(" ");
        let (all, ended) = read(Format::ALL[which], text.as_bytes());
        prop_assert!(all.len() <= text.lines().count());
        // No text at all is no trace.
        let is_whole = !text.is_empty() && all.len() == text.lines().count();
        prop_assert_eq!(ended.is_ok(), is_whole);
    }
}
