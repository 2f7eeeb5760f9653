//! Equations 2 to 8 and Algorithm 1, computed once more, from the paper, beside the unit.

use std::cell::RefCell;
use std::rc::Rc;

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use casemate_core::UntrustedMemory;
use casemate_core::checks::AllChecks;
use casemate_core::violation::{Refusal, Violation};
use casemate_schemes::primitives::CipherKind;
use casemate_schemes::unit::encryption::{OneTimePadKind, PageUse, Replacement};
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::IntegrityKind;
use casemate_schemes::unit::seed::{AddressUnit, instruction_seed};
use casemate_schemes::unit::{Block, PageAddress};

use super::{SECRET, Unit, kind, random_block, scheme, size};
use casemate_core::random::Random;

/// Memory that records what it is asked for.
#[derive(Clone, Default)]
struct Watched(Rc<RefCell<Seen>>);

#[derive(Default)]
struct Seen {
    blocks: std::collections::HashMap<Place, Block>,
    accesses: Vec<(char, Region, u64)>,
}

impl UntrustedMemory<Place, Block> for Watched {
    fn read(&mut self, place: Place) -> Block {
        let mut seen = self.0.borrow_mut();
        seen.accesses.push(('r', place.region, place.index));
        seen.blocks.get(&place).copied().unwrap_or([0; 64])
    }

    fn write(&mut self, place: Place, block: &Block) {
        let mut seen = self.0.borrow_mut();
        seen.accesses.push(('w', place.region, place.index));
        seen.blocks.insert(place, *block);
    }
}

impl Watched {
    fn block(&self, region: Region, index: u64) -> Block {
        self.0.borrow().blocks[&Place::new(region, index)]
    }

    fn accesses(&self) -> Vec<(char, Region, u64)> {
        std::mem::take(&mut self.0.borrow_mut().accesses)
    }
}

fn watched(kind: OneTimePadKind, cipher: CipherKind) -> (Unit<AllChecks, Watched>, Watched) {
    let memory = Watched::default();
    let unit =
        scheme(kind, cipher, IntegrityKind::None).without_pages(memory.clone(), size(), &SECRET);
    (unit.expect("the parts go together"), memory)
}

/// A compartment's key for one use, as SPEC.md says.
fn key(label: &str, owner_kind: u8, compartment: u32) -> [u8; 32] {
    let mut material = SECRET.to_vec();
    material.extend([0; 8]);
    material.push(owner_kind);
    material.extend(compartment.to_le_bytes());
    blake3::derive_key(label, &material)
}

/// One block of the cipher, the other way round with `decrypts`.
fn through(cipher: CipherKind, key: &[u8; 32], decrypts: bool, input: &[u8]) -> Vec<u8> {
    macro_rules! run {
        ($kind:ty, $bytes:expr) => {{
            let cipher = <$kind>::new_from_slice(&key[..$bytes]).expect("the key fits");
            let mut block = Array::try_from(input).expect("one block");
            if decrypts {
                cipher.decrypt_block(&mut block)
            } else {
                cipher.encrypt_block(&mut block)
            }
            block.to_vec()
        }};
    }
    match cipher {
        CipherKind::Des => run!(des::Des, 8),
        CipherKind::Aes128 => run!(aes::Aes128, 16),
        _ => unreachable!("not used here"),
    }
}

/// encrypt_k(seed) for each of the cipher's blocks of a line; `unit` is 1 or 2^13.
fn pad(
    cipher: CipherKind,
    key: &[u8; 32],
    address: u64,
    sequence_number: u64,
    unit: u64,
) -> Vec<u8> {
    let width = cipher.block_bytes();
    let blocks = (0..64 / width).flat_map(|number| {
        let address = address + (number * width) as u64;
        let seed = u128::from(address * unit + sequence_number);
        through(cipher, key, false, &seed.to_be_bytes()[16 - width..])
    });
    blocks.collect()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

#[test]
fn lines_are_encrypted_as_equations_2_to_8_say() {
    for cipher in [CipherKind::Des, CipherKind::Aes128] {
        for (address_unit, unit_of_address) in
            [(AddressUnit::Byte, 1), (AddressUnit::Fine, 1 << 13)]
        {
            let kind = OneTimePadKind {
                timer_period: 7,
                address_unit,
                ..kind(1024, 32, Replacement::LeastRecentlyUsed)
            };
            let (mut unit, memory) = watched(kind, cipher);
            let page = PageAddress { frame: 3, virtual_page: 0x07f1_2345, process: 2 };
            unit.context_switch(2).expect("memory is intact");
            let key = key("casemate unit cipher", 1, 2);
            let mut random = Random::new(5);
            let mut numbers = [None; 64];
            for write in 1..3_000_u64 {
                let block = random.below(64);
                // The timer goes from 1 to 7, one a write.
                let timer = 1 + write % 7;
                let number = match numbers[block as usize] {
                    None => 0,
                    Some(before) => before + timer,
                };
                numbers[block as usize] = Some(number);
                let plain = random_block(&mut random);
                let at = page.block(block);
                unit.write(at, &plain).expect("memory is intact");
                let stored = memory.block(Region::Data, 3 * 64 + block);
                let pad = pad(cipher, &key, 0x007f_1234_5000 + 64 * block, number, unit_of_address);
                assert_eq!(stored.to_vec(), xor(&plain, &pad), "equations 2, 4, 5 and 6");
                assert_eq!(xor(&stored, &pad), plain, "equations 3 and 8");
                assert_eq!(unit.read(at), Ok(plain), "equations 7 and 8");
            }
        }
    }
}

/// OTP/SNC, section 3.4.1, with the vendor's part done here.
#[test]
fn instructions_are_encrypted_by_their_virtual_address() {
    assert_eq!(instruction_seed(0x1_2340), 0x1_2340);
    for cipher in [CipherKind::Des, CipherKind::Aes128] {
        let (mut unit, _) = watched(OneTimePadKind::PAPER, cipher);
        let key = key("casemate unit cipher", 2, 6);
        let code = PageAddress { frame: 2, virtual_page: 0x400, process: 6 };
        let at = code.block(1);
        let instructions: Block = std::array::from_fn(|byte| byte as u8);
        let pad = pad(cipher, &key, 0x40_0040, 0, 1);
        let mut vendors = [0; 64];
        vendors.copy_from_slice(&xor(&instructions, &pad));
        let refused = Violation::Refused(Refusal::NotForInstructions(2));
        assert_eq!(unit.load_instructions(at, &vendors), Err(refused));
        unit.allocate_as(code, PageUse::Instructions).expect("memory is intact");
        unit.load_instructions(at, &vendors).expect("memory is intact");
        assert_eq!(unit.read(at), Ok(instructions));
        let refused = Violation::Refused(Refusal::InstructionsAreRead);
        assert_eq!(unit.write(at, &instructions), Err(refused));
        // The same line loaded into another frame is the same; another compartment has another key.
        let moved = PageAddress { frame: 4, ..code };
        unit.allocate_as(moved, PageUse::Instructions).expect("memory is intact");
        unit.load_instructions(moved.block(1), &vendors).expect("memory is intact");
        assert_eq!(unit.read(moved.block(1)), Ok(instructions));
        let others = PageAddress { process: 7, ..moved };
        assert_ne!(unit.read(others.block(1)), Ok(instructions));
    }
}

use Region::{Data, SequenceNumbers};

/// What each case asks of memory, and in which order (section 4.2, Algorithm 1).
#[test]
fn misses_go_to_memory_as_algorithm_1_says() {
    let (mut unit, memory) = watched(kind(2, 2, Replacement::LeastRecentlyUsed), CipherKind::Des);
    let page = PageAddress { frame: 0, virtual_page: 8, process: 0 };
    let [first, second, third] = [page.block(0), page.block(1), page.block(40)];
    for at in [first, second, third] {
        unit.write(at, &[1; 64]).expect("memory is intact");
    }
    // `third` took the place of `first`, whose page of numbers was made then.
    memory.accesses();
    unit.read(second).expect("memory is intact");
    assert_eq!(memory.accesses(), [('r', Data, 1)], "a query hit");
    unit.write(second, &[2; 64]).expect("memory is intact");
    assert_eq!(memory.accesses(), [('w', Data, 1)], "an update hit");
    unit.read(first).expect("memory is intact");
    let query_miss = [
        ('r', SequenceNumbers, 0), // line 2
        ('r', Data, 0),            // line 7
        ('r', SequenceNumbers, 1), // lines 11 and 12: the victim, among its neighbours
        ('w', SequenceNumbers, 1),
    ];
    assert_eq!(memory.accesses(), query_miss);
    unit.write(third, &[3; 64]).expect("memory is intact");
    let update_miss = [
        ('r', SequenceNumbers, 1), // line 14
        ('w', Data, 40),           // line 23
        ('r', SequenceNumbers, 0), // lines 24 and 25
        ('w', SequenceNumbers, 0),
    ];
    assert_eq!(memory.accesses(), update_miss);
}

/// Section 4.1: without replacement, what finds no room is encrypted directly, and no number goes
/// to memory.
#[test]
fn without_replacement_numbers_stay_on_chip() {
    let (mut unit, memory) = watched(kind(2, 2, Replacement::Never), CipherKind::Des);
    let page = PageAddress::identical(0);
    for block in 0..4 {
        unit.write(page.block(block), &[7; 64]).expect("memory is intact");
        unit.read(page.block(block)).expect("memory is intact");
    }
    let accesses = memory.accesses();
    assert!(accesses.iter().all(|(_, region, _)| *region == Data), "{accesses:?}");
    let stored = [0, 1, 2, 3].map(|block| memory.block(Data, block));
    assert!(stored[0] != stored[1], "these have pads");
    assert_eq!(stored[2], stored[3], "and these do not: equal values look equal");
    let direct = key("casemate unit direct", 1, 0);
    let opened = through(CipherKind::Des, &direct, true, &stored[2][..8]);
    assert_eq!(opened, [7; 8], "as in XOM");
}

/// Section 4.1: numbers that leave the chip are encrypted, directly.
#[test]
fn evicted_numbers_are_encrypted_directly() {
    let (mut unit, memory) = watched(kind(64, 64, Replacement::LeastRecentlyUsed), CipherKind::Des);
    let page = PageAddress { frame: 0, virtual_page: 8, process: 0 };
    for block in [0, 1, 1, 1, 33] {
        unit.write(page.block(block), &[7; 64]).expect("memory is intact");
    }
    unit.flush().expect("memory is intact");
    let direct = key("casemate unit direct", 1, 0);
    let opened = |index| -> Vec<u8> {
        let stored = memory.block(SequenceNumbers, index);
        let blocks =
            stored.chunks(8).flat_map(|block| through(CipherKind::Des, &direct, true, block));
        blocks.collect()
    };
    // Each number plus one, two bytes, little-endian.
    assert_eq!(opened(0)[..6], [1, 0, 3, 0, 0, 0]);
    assert_eq!(opened(1)[..6], [0, 0, 1, 0, 0, 0]);
}

/// Section 4.3: program input and shared libraries lie in memory as they are; aliased memory does
/// not, and neither takes room on chip.
#[test]
fn plaintext_and_shared_pages_take_no_sequence_numbers() {
    let (mut unit, memory) =
        watched(kind(64, 64, Replacement::LeastRecentlyUsed), CipherKind::Aes128);
    let held = |unit: &Unit<AllChecks, Watched>| unit.sequence_number_cache().map(|snc| snc.len());
    let page = PageAddress { frame: 1, virtual_page: 8, process: 0 };
    unit.write(page.block(0), &[9; 64]).expect("memory is intact");
    assert_eq!(held(&unit), Some(1));
    unit.allocate_as(page, PageUse::Shared).expect("memory is intact");
    assert_eq!(held(&unit), Some(0), "the page became shared: its numbers left");
    unit.write(page.block(0), &[5; 64]).expect("memory is intact");
    assert_ne!(memory.block(Data, 64), [5; 64]);
    let alias = PageAddress { frame: 1, virtual_page: 99, process: 3 };
    assert_eq!(unit.read(alias.block(0)), Ok([5; 64]));
    unit.allocate_as(page, PageUse::Plaintext).expect("memory is intact");
    unit.write(page.block(0), &[5; 64]).expect("memory is intact");
    assert_eq!(memory.block(Data, 64), [5; 64]);
    assert_eq!(unit.read(alias.block(0)), Ok([5; 64]));
    assert_eq!(held(&unit), Some(0));
}
