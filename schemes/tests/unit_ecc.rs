//! MACs in the ECC bits of a unit, and what a cold read fetches.

use std::collections::BTreeMap;

use casemate_core::UntrustedMemory;
use casemate_core::Violation;
use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::hostile_memory;
use casemate_schemes::catalogue::SCHEMES;
use casemate_schemes::counters::Organisation;
use casemate_schemes::ecc::scrubber::Sweep;
use casemate_schemes::unit::bytes::{Algorithms, BytesUnit, UnitError};
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{MacPlacement, Place, Region};
use casemate_schemes::unit::port::{Corrections, UnitPort};
use casemate_schemes::unit::scheme::{EncryptionKind, SchemeError, UnitSize};
use casemate_schemes::unit::seed::SeedScheme;
use casemate_schemes::unit::{Block, BlockAddress, PageAddress, ProtectionUnit, Scheme};

const SECRET: [u8; 32] = [5; 32];
const FRAMES: u64 = 2;

type HostileMemory = hostile_memory::HostileMemory<Place, Block>;
type Unit<C> = ProtectionUnit<BytesUnit<HostileMemory, C>>;

fn named(name: &str) -> Scheme {
    SCHEMES.iter().find(|named| named.name == name).expect("it is in the matrix").scheme
}

fn unit<C: Checks>(name: &str) -> Unit<C> {
    let size = UnitSize::new(FRAMES, 0);
    named(name).on_bytes(HostileMemory::default(), size, &SECRET).expect("the parts go together")
}

fn address(number: u64) -> BlockAddress {
    PageAddress::identical(number / 64).block(number % 64)
}

fn all() -> impl Iterator<Item = BlockAddress> {
    (0..FRAMES * 64).map(address)
}

fn contents(number: u64) -> Block {
    [number as u8 ^ 0x5a; 64]
}

fn written<C: Checks>(name: &str) -> Unit<C> {
    let mut unit = unit::<C>(name);
    for number in 0..FRAMES * 64 {
        unit.write(address(number), &contents(number)).expect("memory is intact");
    }
    unit.flush().expect("memory is intact");
    unit
}

/// Flips bits of a block's ciphertext, and of its ECC word from 512 on.
fn flip<C: Checks>(unit: &mut Unit<C>, number: u64, bits: &[usize]) {
    let anatomy = unit.anatomy(address(number));
    let mac = anatomy.mac.expect("each block has one");
    for &bit in bits {
        let (place, bit) = match bit.checked_sub(512) {
            None => (anatomy.data.place, bit),
            Some(bit) => (mac.place, mac.bits.start + bit),
        };
        unit.port_mut().memory_mut().change(place, |block| block[bit / 8] ^= 1 << (bit % 8));
    }
}

fn corrections(blocks: u64, data_bits: u64, words: u64) -> Corrections {
    Corrections { blocks, data_bits, words }
}

#[test]
fn one_and_two_flipped_bits_are_corrected_and_counted() {
    for name in ["delta+ecc", "dual+ecc"] {
        let mut unit = written::<AllChecks>(name);
        // What is flipped, and the counts after it.
        let mut total = Corrections::default();
        for (number, (bits, data_bits, words)) in [
            (&[0][..], 1, 0),
            (&[511], 1, 0),
            (&[3, 300], 2, 0),
            (&[512], 0, 1),
            (&[512 + 56], 0, 1),
            (&[512 + 63], 0, 1),
            (&[7, 8, 512 + 20], 2, 1),
        ]
        .into_iter()
        .enumerate()
        {
            let number = number as u64 + 30;
            flip(&mut unit, number, bits);
            total.blocks += 1;
            total.data_bits += data_bits;
            total.words += words;
            // The second time nothing is left to be corrected: memory was repaired.
            for _ in 0..2 {
                assert_eq!(unit.read(address(number)), Ok(contents(number)), "{bits:?}");
                assert_eq!(unit.port_mut().corrections(), total, "{name} {bits:?}");
            }
        }
    }
}

#[test]
fn more_flipped_bits_are_a_violation() {
    for bits in [&[1, 2, 3][..], &[0, 64, 128, 192], &[512, 513], &[9, 512 + 1, 512 + 2]] {
        let mut unit = written::<AllChecks>("delta+ecc");
        flip(&mut unit, 40, bits);
        let place = Place::new(Region::Data, 40);
        assert_eq!(
            unit.read(address(40)),
            Err(Violation::BlockMac { place: place.named() }),
            "{bits:?}"
        );
        assert_eq!(unit.read(address(41)), Err(Violation::Poisoned));
        assert_eq!(unit.port_mut().corrections(), Corrections::default());
    }
}

/// Canary: without the comparison flipped bits come out as they are.
#[test]
fn canary_without_the_comparison_nothing_is_corrected() {
    let mut unit = written::<broken::LeavesUnverified>("delta+ecc");
    flip(&mut unit, 40, &[0]);
    assert_ne!(unit.read(address(40)), Ok(contents(40)));
}

#[test]
fn a_quick_scrub_finds_odd_flips_and_a_thorough_one_all() {
    let mut unit = written::<AllChecks>("delta+ecc");
    flip(&mut unit, 3, &[100]);
    flip(&mut unit, 5, &[100, 101]);
    flip(&mut unit, 7, &[512 + 9]);
    let report = unit.scrub(Sweep::Quick, all()).expect("all can be repaired");
    assert_eq!((report.looked_at, report.opened, report.repaired), (128, 2, 2));
    let report = unit.scrub(Sweep::Thorough, all()).expect("all can be repaired");
    assert_eq!((report.looked_at, report.opened, report.repaired), (128, 128, 1));
    assert_eq!(unit.port_mut().corrections(), corrections(3, 3, 1));
    let report = unit.scrub(Sweep::Thorough, all()).expect("all is well");
    assert_eq!((report.opened, report.repaired), (128, 0));
    flip(&mut unit, 9, &[0, 1, 2]);
    let place = Place::new(Region::Data, 9);
    assert_eq!(unit.scrub(Sweep::Quick, all()), Err(Violation::BlockMac { place: place.named() }));
}

#[test]
fn without_ecc_bits_a_quick_scrub_opens_nothing() {
    let mut unit = written::<AllChecks>("delta+bmt");
    flip(&mut unit, 3, &[100]);
    assert_eq!(unit.scrub(Sweep::Quick, all()).map(|report| report.opened), Ok(0));
    assert!(unit.scrub(Sweep::Thorough, all()).is_err());
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    let refusal = |scheme: Scheme| {
        let size = UnitSize::new(0, 0);
        let unit = scheme.on_bytes::<_, AllChecks>(SparseMemory::default(), size, &SECRET);
        unit.err().expect("it is refused")
    };
    let in_ecc_bits = |name| Scheme { mac_placement: MacPlacement::EccBits, ..named(name) };
    assert_eq!(refusal(in_ecc_bits("counter")), SchemeError::EccBitsWithoutCounters);
    let gmac = Algorithms::GMAC;
    let unlinear = UnitError::EccBitsNeedLinearMac(gmac.data_mac);
    assert_eq!(refusal(in_ecc_bits("aise+bmt-gmac")), SchemeError::Unit(unlinear));
    let hashes = Scheme { algorithms: Algorithms::SGX, ..named("delta+bmt") };
    let needs = UnitError::NeedsNonce(Algorithms::SGX.node_mac);
    assert_eq!(refusal(hashes), SchemeError::Unit(needs));
    let encryption = EncryptionKind::CounterMode {
        seeds: SeedScheme::VirtualAddress,
        organisation: Organisation::DELTA,
    };
    let repeated = UnitError::NeedsNonce(Algorithms::DELTA_ECC.data_mac);
    assert_eq!(refusal(Scheme { encryption, ..named("delta+ecc") }), SchemeError::Unit(repeated));
    let wide = Scheme { algorithms: Algorithms::GMAC64, ..named("sgx") };
    assert_eq!(refusal(wide), SchemeError::NoRoomForMac);
    let other_leaves = Scheme { integrity: named("vault").integrity, ..named("sgx") };
    assert_eq!(refusal(other_leaves), SchemeError::CounterTreeNeedsItsLeaves);
}

/// Memory that counts what is read of each region.
#[derive(Default)]
struct Counting {
    memory: SparseMemory,
    reads: BTreeMap<Region, u64>,
}

impl UntrustedMemory<Place, Block> for Counting {
    fn read(&mut self, place: Place) -> Block {
        *self.reads.entry(place.region).or_default() += 1;
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.memory.write(place, block);
    }
}

/// What a cold read of a block in 512 MiB fetches, with 3 KiB of the tree on chip: lines of the
/// tree, counters among them; MACs; data. Words in ECC bits are no fetch.
fn cold_read(name: &str) -> (u64, u64, u64) {
    let size = UnitSize {
        on_chip_tree_bytes: UnitSize::SGX_ON_CHIP_TREE_BYTES,
        ..UnitSize::new((512 << 20) / 4096, 32 << 10)
    };
    let scheme = named(name);
    let unit = scheme.without_pages::<_, AllChecks>(Counting::default(), size, &SECRET);
    let mut unit = unit.expect("the parts go together");
    let at = PageAddress::identical(77_777).block(5);
    unit.write(at, &[7; 64]).expect("memory is intact");
    unit.flush().expect("memory is intact");
    unit.port_mut().memory_mut().reads.clear();
    assert_eq!(unit.read(at), Ok([7; 64]));
    let reads = &unit.port_mut().memory_mut().reads;
    let of = |region| reads.get(&region).copied().unwrap_or(0);
    let nodes: u64 = (1..20).map(|level| of(Region::Nodes(level))).sum();
    (of(Region::Counters) + nodes, of(Region::Macs), of(Region::Data))
}

/// Delta/ECC, section 5.1: five levels off chip; section 5.2: four with delta encoding.
#[test]
fn a_cold_read_fetches_one_line_of_each_level_off_chip() {
    assert_eq!(cold_read("sgx"), (5, 1, 1));
    assert_eq!(cold_read("mono56+bmt"), (5, 1, 1));
    assert_eq!(cold_read("delta+bmt"), (4, 1, 1));
    assert_eq!(cold_read("delta+ecc"), (4, 0, 1));
    assert_eq!(cold_read("dual+ecc"), (4, 0, 1));
    assert_eq!(cold_read("vault"), (3, 1, 1));
    assert_eq!(cold_read("morphable"), (2, 1, 1));
}
