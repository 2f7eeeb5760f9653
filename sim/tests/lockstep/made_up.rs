//! A program that is made up, so that it is known what it must find: every scheme gives it that.

use casemate_core::random::Random;
use casemate_schemes::catalogue::SCHEMES;
use casemate_sim::lockstep::{Lockstep, LockstepConfig};
use casemate_sim::machine::cache::{CacheConfig, Replacement, Ways};
use casemate_sim::trace::{Extent, Instruction, Kind, Reference};
use std::collections::{HashMap, HashSet};

/// Small, so that most blocks leave it soon.
pub fn config() -> LockstepConfig {
    let cache = CacheConfig {
        size_bytes: 4 << 10,
        ways: Ways::Set(4),
        block_bytes: 64,
        replacement: Replacement::Lru,
    };
    LockstepConfig { cache, frames: 64, metadata_cache_bytes: 1 << 10 }
}

/// The memory of the program: what was stored last, or what it began with.
#[derive(Default)]
struct Memory(HashMap<u64, u8>);

impl Memory {
    fn byte(&mut self, address: u64) -> &mut u8 {
        // What the program's file has there.
        self.0.entry(address).or_insert((address.wrapping_mul(0x9e37_79b9) >> 13) as u8)
    }
}

/// A program over 40 pages, two of them hot, and what a naive account of its bytes says.
pub struct MadeUp {
    pub instructions: Vec<Instruction>,
    /// Loads of which all bytes were stored or loaded since they were last changed from outside the
    /// program.
    pub known_loads: u64,
    /// Bytes of the other loads that were not.
    pub unknown_bytes: u64,
}

pub fn made_up(seed: u64, count: usize) -> MadeUp {
    let (mut random, mut memory) = (Random::new(seed), Memory::default());
    let mut known = HashSet::new();
    let mut program = MadeUp { instructions: vec![], known_loads: 0, unknown_bytes: 0 };
    for number in 0..count as u64 {
        let mut instruction = Instruction { pc: 0x40_0000 + number, ..Instruction::default() };
        let page = if random.below(3) == 0 { random.below(2) } else { random.below(40) };
        // Also across the end of a block, and of a page.
        let address = 0x7f00_0000_0000 + page * 4096 + random.below(4096);
        let size_bytes = 1_u16 << random.below(4);
        let bytes = address..address + u64::from(size_bytes);
        let kind = if random.below(3) == 0 { Kind::Store } else { Kind::Load };
        if kind == Kind::Store {
            bytes.clone().for_each(|at| *memory.byte(at) = random.next() as u8);
        } else {
            let unknown = bytes.clone().filter(|at| !known.contains(at)).count() as u64;
            program.unknown_bytes += unknown;
            program.known_loads += u64::from(unknown == 0);
        }
        known.extend(bytes.clone());
        let value = bytes.rev().fold(0, |value, at| value << 8 | u64::from(*memory.byte(at)));
        let value = Some(value);
        instruction.references.push(Reference { kind, size_bytes, address, value });
        if random.below(50) == 0 {
            let size_bytes = 1 + random.below(300);
            let extent = Extent { address: address - random.below(200), size_bytes };
            let end = extent.address + extent.size_bytes;
            (extent.address..end).for_each(|at| *memory.byte(at) = random.next() as u8);
            known.retain(|at| !(extent.address..end).contains(at));
            instruction.changed.push(extent);
        }
        if number == count as u64 / 2 {
            memory.0.values_mut().for_each(|byte| *byte ^= 0xff);
            known.clear();
            instruction.changed.push(Extent::EVERYTHING);
        }
        program.instructions.push(instruction);
    }
    program
}

#[test]
fn every_scheme_gives_a_program_what_it_stored() {
    let program = made_up(1, 12_000);
    for named in &SCHEMES {
        let mut machine = Lockstep::new(&named.scheme, &config()).expect("the parts go together");
        let done = program.instructions.iter().try_for_each(|i| machine.step(i));
        assert_eq!(done.and_then(|()| machine.check()), Ok(()), "{}", named.name);
        let compared = *machine.compared();
        // A load across two blocks is two.
        let crossing = |r: &&Reference| r.address % 64 + u64::from(r.size_bytes) > 64;
        let loads = || {
            let all = program.instructions.iter().flat_map(|i| &i.references);
            all.filter(|r| r.kind == Kind::Load)
        };
        let parts = loads().count() + loads().filter(crossing).count();
        assert_eq!(compared.loads + compared.adopting_loads, parts as u64, "{}", named.name);
        assert_eq!(compared.adopted_bytes, program.unknown_bytes, "{}", named.name);
        let bytes: u64 = loads().map(|r| u64::from(r.size_bytes)).sum();
        assert_eq!(compared.bytes + compared.adopted_bytes, bytes, "{}", named.name);
        assert!(compared.loads > program.known_loads, "{}", named.name);
        assert_eq!(compared.forgotten_all, 1);
        // 40 pages have 2,560 blocks, and the cache holds 64.
        assert!(compared.fetched_blocks > 6000 && compared.written_blocks > 3000, "{compared:?}");
    }
}
