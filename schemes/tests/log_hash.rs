//! Log hashes beyond what every scheme does: when they check, what a check reads, and that neither
//! the page table nor time stamps need to be trusted.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use casemate_core::UntrustedMemory;
use casemate_core::Violation;
use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::random::Random;
use casemate_schemes::counters::Organisation;
use casemate_schemes::unit::bytes::{Algorithms, BytesUnit};
use casemate_schemes::unit::integrity::LogHashes;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{MacPlacement, Place, Region};
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, SchemeError, UnitSize};
use casemate_schemes::unit::seed::SeedScheme;
use casemate_schemes::unit::{Block, PageAddress, ProtectionUnit, Scheme};

const FRAMES: u64 = 40;
const CHUNKS: u64 = FRAMES * 64;
const SECRET: [u8; 32] = [3; 32];

/// Memory that counts what is read, by region, and can be written behind the unit's back.
#[derive(Clone, Default)]
struct Watched {
    memory: SparseMemory,
    reads: Rc<RefCell<HashMap<Region, u64>>>,
}

impl UntrustedMemory<Place, Block> for Watched {
    fn read(&mut self, place: Place) -> Block {
        *self.reads.borrow_mut().entry(place.region).or_default() += 1;
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.memory.write(place, block);
    }
}

type Unit<C = AllChecks> = ProtectionUnit<BytesUnit<Watched, C>>;

const LHASH: IntegrityKind =
    IntegrityKind::LogHash { hashes: LogHashes::ReadAndWrite, time_stamp_bits: 32 };
const LHASH_RW: IntegrityKind =
    IntegrityKind::LogHash { hashes: LogHashes::Single, time_stamp_bits: 32 };
const H_LHASH: IntegrityKind =
    IntegrityKind::HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 32 };
const ALL: [IntegrityKind; 3] = [LHASH, LHASH_RW, H_LHASH];

fn scheme(encryption: EncryptionKind, integrity: IntegrityKind) -> Scheme {
    let (algorithms, mac_placement) = (Algorithms::AISE_BMT, MacPlacement::Region);
    Scheme { encryption, integrity, algorithms, mac_placement, line_blocks: 1 }
}

fn size() -> UnitSize {
    UnitSize::new(FRAMES, 4096)
}

fn unit<C: Checks>(integrity: IntegrityKind) -> Unit<C> {
    let scheme = scheme(EncryptionKind::None, integrity);
    scheme.on_bytes(Watched::default(), size(), &SECRET).expect("the parts go together")
}

fn without_pages(integrity: IntegrityKind) -> Unit {
    let scheme = scheme(EncryptionKind::None, integrity);
    scheme.without_pages(Watched::default(), size(), &SECRET).expect("the parts go together")
}

fn read_and_drop<C: Checks>(
    unit: &mut Unit<C>,
    frame: u64,
    block: u64,
) -> Result<Block, Violation> {
    let at = PageAddress::identical(frame).block(block);
    let contents = unit.read(at)?;
    unit.drop_clean(at, &contents)?;
    Ok(contents)
}

fn data_reads<C: Checks>(unit: &mut Unit<C>, step: impl FnOnce(&mut Unit<C>)) -> u64 {
    let count = |unit: &mut Unit<C>| {
        let reads = &unit.port_mut().memory_mut().reads;
        reads.borrow().get(&Region::Data).copied().unwrap_or(0)
    };
    let before = count(unit);
    step(unit);
    count(unit) - before
}

/// LHash, sections 4.2.1 and 4.2.2: LHash reads all of memory, H-LHash only the subspaces that were
/// used.
#[test]
fn a_check_reads_what_it_has_to_and_no_more() {
    for used in [0, 1, 2, 7, 40] {
        for integrity in ALL {
            let mut unit = unit::<AllChecks>(integrity);
            unit.check().expect("memory is intact");
            for frame in 0..used {
                for block in [0, 9, 9] {
                    read_and_drop(&mut unit, frame, block).expect("memory is intact");
                }
            }
            let reads = data_reads(&mut unit, |unit| unit.check().expect("memory is intact"));
            let expected = if integrity == H_LHASH { used * 64 } else { CHUNKS };
            assert_eq!(reads, expected, "{integrity:?} after {used} subspaces");
        }
    }
}

/// A chunk that is on chip is not read by a check (Figure 3, step 2), and still covered by the
/// next.
#[test]
fn chunks_on_chip_survive_checks() {
    for integrity in ALL {
        let mut unit = unit::<AllChecks>(integrity);
        let at = PageAddress::identical(3).block(4);
        let contents = unit.read(at).expect("memory is intact");
        let all = data_reads(&mut unit, |unit| unit.check().expect("memory is intact"));
        assert_eq!(all, CHUNKS - 1);
        // Asked for again, it comes from the chip, whatever memory says.
        let place = Place::new(Region::Data, at.physical());
        unit.port_mut().memory_mut().write(place, &[9; 64]);
        assert_eq!(unit.read(at), Ok(contents));
        unit.port_mut().memory_mut().write(place, &contents);
        unit.drop_clean(at, &contents).expect("memory is intact");
        unit.drop_clean(at, &contents).expect("telling it twice says nothing");
        unit.check().expect("memory is intact");
        unit.port_mut().memory_mut().write(place, &[9; 64]);
        let wrong = read_and_drop(&mut unit, 3, 4);
        assert_eq!(wrong, Ok([9; 64]), "a log hash finds out later");
        assert_eq!(unit.check(), Err(Violation::LogMismatch));
    }
}

/// A line that stays on chip through a check, and leaves before the next: what is read below it is
/// covered. The last scheme has four levels, so that a node's parent can look unused.
#[test]
fn every_check_finds_what_was_read_since_the_last() {
    let deep = IntegrityKind::HierarchicalLogHash { subspace_bytes: 512, time_stamp_bits: 32 };
    for integrity in ALL.into_iter().chain([deep]) {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let mut unit = unit::<AllChecks>(integrity);
            let (frame, block) = (random.below(FRAMES), random.below(64));
            for _ in 0..1 + random.below(3) {
                for _ in 0..random.below(30) {
                    read_and_drop(&mut unit, random.below(FRAMES), 0).expect("memory is intact");
                }
                read_and_drop(&mut unit, frame, block).expect("memory is intact");
                unit.check().expect("memory is intact");
            }
            let place = Place::new(Region::Data, frame * 64 + block);
            unit.port_mut().memory_mut().write(place, &[1; 64]);
            assert_eq!(read_and_drop(&mut unit, frame, block), Ok([1; 64]));
            // Elsewhere, so that the nodes above it leave.
            for other in 0..random.below(20) {
                let elsewhere = (frame + 8 + other) % FRAMES;
                read_and_drop(&mut unit, elsewhere, 0).expect("this is right");
            }
            assert_eq!(unit.check(), Err(Violation::LogMismatch), "{integrity:?} {seed}");
        }
    }
}

fn released_after_failure<C: Checks>(integrity: IntegrityKind) -> bool {
    let mut unit = unit::<C>(integrity);
    let at = PageAddress::identical(1).block(1);
    unit.port_mut().memory_mut().write(Place::new(Region::Data, at.physical()), &[1; 64]);
    unit.check().expect_err("a block was changed");
    let answers = [
        unit.read(at).map(drop),
        unit.write(at, &[0; 64]),
        unit.check(),
        unit.flush(),
        unit.allocate(at.page),
    ];
    answers.iter().any(|answer| *answer != Err(Violation::Poisoned))
}

#[test]
fn nothing_is_released_after_a_failed_check() {
    for integrity in ALL {
        // Without use a hierarchical log hash looks at nothing.
        if integrity != H_LHASH {
            assert!(!released_after_failure::<AllChecks>(integrity));
            assert!(released_after_failure::<broken::NotPoisoned>(integrity), "the canary");
        }
    }
}

/// LHash, section 4.2.1: TIMER never goes past its maximum, a check comes first.
#[test]
fn short_time_stamps_force_checks() {
    let short = [
        IntegrityKind::LogHash { hashes: LogHashes::ReadAndWrite, time_stamp_bits: 13 },
        IntegrityKind::LogHash { hashes: LogHashes::Single, time_stamp_bits: 13 },
        IntegrityKind::HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 10 },
        IntegrityKind::HierarchicalLogHash { subspace_bytes: 512, time_stamp_bits: 11 },
    ];
    for integrity in short {
        let mut unit = unit::<AllChecks>(integrity);
        unit.check().expect("memory is intact");
        let place = Place::new(Region::Data, 5 * 64 + 5);
        let operations = 30_000;
        // One subspace is enough, and far more writes than there are time stamps.
        let reads = data_reads(&mut unit, |unit| {
            for step in 0..operations {
                read_and_drop(unit, 5, step % 64).expect("memory is intact");
            }
        });
        assert!(reads > operations, "{integrity:?} was checked on its way");
        // And a forced check finds what one that is asked for finds.
        unit.port_mut().memory_mut().write(place, &[1; 64]);
        let found = (0..operations).find_map(|step| read_and_drop(&mut unit, 5, step % 64).err());
        assert_eq!(found, Some(Violation::LogMismatch), "{integrity:?}");
    }
}

#[test]
fn time_stamps_that_are_too_short_are_refused() {
    let too_short = [
        (IntegrityKind::LogHash { hashes: LogHashes::Single, time_stamp_bits: 12 }, 12),
        (IntegrityKind::HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 8 }, 8),
        (IntegrityKind::HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 33 }, 33),
    ];
    for (integrity, bits) in too_short {
        let scheme = scheme(EncryptionKind::None, integrity);
        let built = scheme.on_bytes::<_, AllChecks>(SparseMemory::default(), size(), &SECRET);
        assert_eq!(built.err(), Some(SchemeError::TimeStampBits(bits)));
    }
    let odd = IntegrityKind::HierarchicalLogHash { subspace_bytes: 100, time_stamp_bits: 32 };
    let built = scheme(EncryptionKind::None, odd).on_bytes::<_, AllChecks>(
        SparseMemory::default(),
        size(),
        &SECRET,
    );
    assert_eq!(built.err(), Some(SchemeError::Subspace(100)));
}

/// Section 4.2.1: chunks are added page by page, and a check reads valid pages only.
#[test]
fn only_allocated_pages_are_checked() {
    for integrity in ALL {
        let mut unit = without_pages(integrity);
        for frame in [2, 3, 30] {
            unit.allocate(PageAddress::identical(frame)).expect("memory is intact");
        }
        unit.allocate(PageAddress::identical(3)).expect("a new owner of a page that is covered");
        let reads = data_reads(&mut unit, |unit| unit.check().expect("memory is intact"));
        assert_eq!(reads, 3 * 64, "{integrity:?}");
        unit.check().expect("memory is intact");
    }
}

/// Section 4.2.1: the page table need not be trusted.
#[test]
fn a_page_table_that_lies_is_found_out() {
    type Lie = fn(&mut Unit);
    let lies: [(&str, Lie); 4] = [
        ("a page is added twice", |unit| {
            unit.page_table_mut().expect("it has one").remove(3);
            let _ = unit.allocate(PageAddress::identical(3));
        }),
        ("a page is left out", |unit| {
            unit.page_table_mut().expect("it has one").remove(3);
        }),
        ("a page is there that never was added", |unit| {
            unit.page_table_mut().expect("it has one").insert(5);
            let _ = read_and_drop(unit, 5, 0);
        }),
        ("a page is used that never was added", |unit| {
            let _ = read_and_drop(unit, 6, 0);
        }),
    ];
    for integrity in ALL {
        for (name, lie) in lies {
            let mut unit = without_pages(integrity);
            for frame in [2, 3, 4] {
                unit.allocate(PageAddress::identical(frame)).expect("memory is intact");
            }
            unit.check().expect("memory is intact");
            read_and_drop(&mut unit, 3, 1).expect("memory is intact");
            lie(&mut unit);
            assert_eq!(unit.check(), Err(Violation::LogMismatch), "{integrity:?}: {name}");
        }
        // A page beyond memory is none, and its name would be a counter's.
        let mut unit = without_pages(integrity);
        unit.page_table_mut().expect("it has one").insert(FRAMES);
        unit.check().expect("nothing was read");
    }
}

/// What the scheme cannot do: a counter that was put back is believed until the next check, and so
/// one pad is used twice. A tree over the counters does not let that happen.
#[test]
fn a_replayed_counter_makes_a_pad_repeat_before_the_check_finds_it() {
    let encryption = EncryptionKind::CounterMode {
        seeds: SeedScheme::LogicalPage,
        organisation: Organisation::AISE,
    };
    for (integrity, repeats) in
        [(LHASH, true), (LHASH_RW, true), (H_LHASH, true), (IntegrityKind::Bonsai, false)]
    {
        let scheme = scheme(encryption, integrity);
        let mut unit: Unit =
            scheme.on_bytes(Watched::default(), size(), &SECRET).expect("the parts go together");
        unit.port_mut().log_seeds();
        let at = PageAddress::identical(2).block(1);
        let counters = Place::new(Region::Counters, 2);
        unit.flush().expect("memory is intact");
        let old = unit.port_mut().memory_mut().read(counters);
        unit.write(at, &[1; 64]).expect("memory is intact");
        unit.flush().expect("memory is intact");
        unit.port_mut().memory_mut().write(counters, &old);
        assert_eq!(unit.write(at, &[2; 64]).is_ok(), repeats, "{integrity:?}");
        let log = unit.port_mut().used_seeds().log.clone().expect("it was asked for");
        let distinct: std::collections::HashSet<_> = log.iter().collect();
        assert_eq!(distinct.len() < log.len(), repeats, "{integrity:?}");
        assert_eq!(unit.check().is_err(), repeats, "{integrity:?} finds it, if late");
    }
}
