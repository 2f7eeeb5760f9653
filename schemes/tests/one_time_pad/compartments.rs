//! Compartments: tags on what is in plaintext on chip.

use std::collections::HashMap;

use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::violation::{Refusal, Violation};
use casemate_schemes::primitives::CipherKind;
use casemate_schemes::unit::compartments::Compartments;
use casemate_schemes::unit::encryption::{ContextSwitch, OneTimePadKind, PageUse, Replacement};
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::scheme::IntegrityKind;
use casemate_schemes::unit::{Block, PageAddress};

use super::{FRAMES, kind, random_block, scheme, unit};
use casemate_core::random::{Random, SeedOnFailure, seed};

type Machine<C> = Compartments<casemate_schemes::unit::bytes::BytesUnit<SparseMemory, C>>;

fn machine<C: Checks>(context_switch: ContextSwitch, lines: usize) -> Machine<C> {
    let kind = OneTimePadKind { context_switch, ..kind(32, 8, Replacement::LeastRecentlyUsed) };
    let scheme = scheme(kind, CipherKind::Aes128, IntegrityKind::None);
    Compartments::new(unit::<C, SparseMemory>(&scheme), lines)
}

fn page(frame: u64, process: u32) -> PageAddress {
    PageAddress { frame, virtual_page: 0x100 + frame / 3, process }
}

/// Three compartments take turns. Each reads what it wrote, and of the others' lines nothing:
/// refused while they are on chip, and other bytes when they are not. Returns how often a line was
/// given to the wrong one.
fn run<C: Checks>(context_switch: ContextSwitch, seed: u64) -> (u64, u64) {
    let mut machine = machine::<C>(context_switch, 40);
    let mut random = Random::new(seed);
    let mut model: HashMap<u64, Block> = HashMap::new();
    let (mut given, mut refused) = (0, 0);
    for frame in 0..FRAMES {
        machine.allocate_as(page(frame, (frame % 3) as u32), PageUse::Private).expect("sound");
    }
    for _ in 0..30_000 {
        let frame = random.below(FRAMES);
        let owner = (frame % 3) as u32;
        let at = page(frame, owner).block(random.below(8));
        match random.below(100) {
            0..45 => {
                let block = random_block(&mut random);
                machine.write(at, block).expect("memory is intact");
                model.insert(at.physical(), block);
            }
            45..90 => {
                let expected = model.get(&at.physical()).copied().unwrap_or([0; 64]);
                assert_eq!(machine.read(at), Ok(expected), "{at:?}");
            }
            90..97 => {
                let asker = (owner + 1) % 3;
                // Only of lines that were written and are likely on chip.
                let Some(secret) = model.get(&at.physical()).copied() else { continue };
                assert_eq!(machine.read(at), Ok(secret), "it is on chip now");
                match machine.read(page(frame, asker).block(at.block)) {
                    Ok(block) => given += u64::from(block == secret),
                    Err(violation) => {
                        let other = Refusal::OtherCompartment { owner, asker };
                        assert_eq!(violation, Violation::Refused(other));
                        refused += 1;
                    }
                }
            }
            97..99 => machine.enter(random.below(3) as u32).expect("memory is intact"),
            _ => machine.flush().expect("memory is intact"),
        }
    }
    (given, refused)
}

#[test]
fn a_read_across_compartments_is_refused() {
    let seed = seed(0xc0);
    let _print = SeedOnFailure(seed);
    for context_switch in [ContextSwitch::Flush, ContextSwitch::Tags] {
        let (given, refused) = run::<AllChecks>(context_switch, seed);
        assert!(given == 0 && refused > 1_000, "{given} given, {refused} refused");
        let (given, refused) = run::<broken::CompartmentsNotCompared>(context_switch, seed);
        assert!(given > 1_000 && refused == 0, "the canary: {given} given, {refused} refused");
    }
}

/// What has left the chip is protected by the compartment's key.
#[test]
fn what_left_the_chip_is_another_ones_ciphertext() {
    let mut machine = machine::<AllChecks>(ContextSwitch::Tags, 4);
    let (owned, asked) = (page(0, 1).block(3), page(0, 2).block(3));
    machine.write(owned, [0x5a; 64]).expect("memory is intact");
    machine.flush().expect("memory is intact");
    assert_ne!(machine.read(asked).expect("no integrity here"), [0x5a; 64]);
    // And what was brought in by the wrong one is not given to the right one as its own.
    assert!(machine.read(owned).is_err());
    machine.flush().expect("memory is intact");
    assert_eq!(machine.read(owned), Ok([0x5a; 64]));
}

#[test]
fn every_compartment_reads_shared_and_plaintext_lines() {
    for page_use in [PageUse::Shared, PageUse::Plaintext] {
        let mut machine = machine::<AllChecks>(ContextSwitch::Flush, 4);
        machine.allocate_as(page(2, 1), page_use).expect("memory is intact");
        machine.write(page(2, 1).block(0), [3; 64]).expect("memory is intact");
        assert_eq!(machine.read(page(2, 2).block(0)), Ok([3; 64]));
    }
}
