//! Programs made up for the tests of traces.
#![allow(dead_code, missing_docs)]

pub mod tracers;

use casemate_sim::trace::{
    Branch, Extent, Instruction, Kind, Operation, Reference, Registers, Source, TraceError,
};
use proptest::prelude::*;

/// An instruction of any kind.
pub fn any_instruction() -> impl Strategy<Value = Instruction> {
    let branch = prop_oneof![Just(Branch::No), Just(Branch::NotTaken), Just(Branch::Taken)];
    let kind = (branch, prop::sample::select(&Operation::ALL[..]));
    let pc = prop_oneof![any::<u64>(), 0x40_0000_u64..0x40_0040];
    let references = proptest::collection::vec(any_reference(), 0..4);
    let before = prop_oneof![Just(0), any::<u32>()];
    let memory = (references, any_changed());
    (pc, any::<u8>(), 0_u32..3, before, kind, any::<[u8; 10]>(), any::<Option<u64>>(), memory)
        .prop_map(|(pc, length_bytes, thread, unrecorded_before, kind, r, cycle, memory)| {
            let registers = Registers {
                read: [r[0], r[1], r[2], r[3], r[4], r[5]],
                written: [r[6], r[7], r[8], r[9]],
            };
            Instruction {
                pc,
                length_bytes,
                thread,
                unrecorded_before,
                branch: kind.0,
                operation: kind.1,
                registers,
                arrival_cycle: cycle,
                references: memory.0,
                changed: memory.1,
            }
        })
}

/// What a system call changed; most instructions make none.
fn any_changed() -> impl Strategy<Value = Vec<Extent>> {
    let extent = (any::<u64>(), any::<u64>())
        .prop_map(|(address, size_bytes)| Extent { address, size_bytes });
    let extent = prop_oneof![4 => extent, 1 => Just(Extent::EVERYTHING)];
    prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(extent, 1..5)]
}

fn any_reference() -> impl Strategy<Value = Reference> {
    let kind = prop_oneof![Just(Kind::Load), Just(Kind::Store)];
    let size = prop_oneof![Just(1_u16), Just(4), Just(8), any::<u16>()];
    (kind, size, any::<u64>(), any::<Option<u64>>()).prop_map(|(kind, size_bytes, address, v)| {
        let reference = Reference { kind, size_bytes, address, value: None };
        let value = v.map(|v| v >> (64 - 8 * u64::from(size_bytes.clamp(1, 8))));
        Reference { value: value.filter(|v| reference.admits(*v)), ..reference }
    })
}

/// A program with loops, so that most comes as expected: some instructions, over and over, by
/// threads in turns.
pub fn any_program() -> impl Strategy<Value = Vec<Instruction>> {
    let body = proptest::collection::vec(any_instruction(), 1..12);
    let steps = proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..200), 0..200);
    (body, steps).prop_map(|(body, steps)| {
        let mut program = Vec::new();
        for (start, moved) in steps {
            let start = start.index(body.len());
            for instruction in &body[start..] {
                let mut instruction = instruction.clone();
                for reference in &mut instruction.references {
                    reference.address = reference.address.wrapping_add(moved * 8);
                }
                program.push(instruction);
            }
        }
        program
    })
}

/// A loop over an array with a stack slot, 7 instructions a round: a program that needs no
/// strategy.
pub fn small_program(instructions: usize) -> Vec<Instruction> {
    let mut program = Vec::new();
    let mut state = 0x1234_5678_9abc_def1_u64;
    for i in 0..instructions as u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut instruction = Instruction {
            pc: 0x40_1000 + 4 * (i % 7),
            length_bytes: 4,
            thread: u32::from(i % 97 == 96),
            ..Instruction::default()
        };
        match i % 7 {
            0 => instruction.references.push(Reference::load(0x7000_0000 + i * 8, 8)),
            3 => {
                let store = Reference::store(0x7fff_0000, 4);
                instruction.references.push(Reference { value: Some(state >> 32), ..store });
            }
            6 => instruction.branch = Branch::Taken,
            5 if i % 70 == 5 => {
                let size_bytes = 1 + state % 4096;
                instruction.changed.push(Extent { address: 0x7100_0000 + i * 16, size_bytes });
            }
            _ => {}
        }
        program.push(instruction);
    }
    program
}

/// All that a source gives, and how it ended.
pub fn drain(source: &mut impl Source) -> (Vec<Instruction>, Result<(), TraceError>) {
    let mut all = Vec::new();
    let mut record = Instruction::default();
    loop {
        match source.next(&mut record) {
            Ok(true) => all.push(record.clone()),
            Ok(false) => return (all, Ok(())),
            Err(error) => return (all, Err(error)),
        }
    }
}

/// How many blocks of `truth` are missing from `given`, if that is all that they differ in.
///
/// # Errors
/// The number of the first instruction that is not where it should be.
pub fn is_truth_without_blocks(
    given: &[Instruction],
    truth: &[Instruction],
    block: usize,
) -> Result<usize, usize> {
    let (mut at, mut lost) = (0, 0);
    for chunk in truth.chunks(block) {
        if given[at..].starts_with(chunk) {
            at += chunk.len();
        } else {
            lost += 1;
        }
    }
    if at == given.len() { Ok(lost) } else { Err(at) }
}
