//! Every scheme against a plain map: what is read is what was written last, whatever the caches'
//! size, and no scheme that promises unique seeds uses one twice.
//!
//! `CASEMATE_SOAK=1` makes ten times as many operations (`cargo xtask soak`).

mod traffic;

use std::collections::{HashMap, HashSet};

use casemate_core::checks::AllChecks;
use casemate_core::hash_tree::HashTree;
use casemate_core::random::{Random, SeedOnFailure, seed};
use casemate_schemes::catalogue::SCHEMES;
use casemate_schemes::counter_tree::CounterTreeKind;
use casemate_schemes::counters::Organisation;
use casemate_schemes::primitives::{CipherKind, MacKind};
use casemate_schemes::unit::bytes::{Algorithms, BytesUnit, Covered, Wiring};
use casemate_schemes::unit::integrity::LogHashes;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{MacPlacement, Region};
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, SchemeError};
use casemate_schemes::unit::seed::SeedScheme;
use casemate_schemes::unit::{PageAddress, Scheme};
use traffic::{SECRET, Unit, governed, random_block, run, run_throwing_out, size, unit};

const AISE: EncryptionKind = EncryptionKind::CounterMode {
    seeds: SeedScheme::LogicalPage,
    organisation: Organisation::AISE,
};

/// So many, or ten times as many in a soak.
fn operations(bounded: u64) -> u64 {
    let is_soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    if is_soak { 10 * bounded } else { bounded }
}

fn encryptions() -> Vec<EncryptionKind> {
    use EncryptionKind::{CounterMode, Direct, GlobalCounter, None};
    let mut all = vec![
        None,
        Direct { addressed: false },
        Direct { addressed: true },
        GlobalCounter { bits: 64 },
        GlobalCounter { bits: 32 },
        // Small enough to be used up: all of memory is encrypted anew, again and again.
        GlobalCounter { bits: 14 },
        CounterMode { seeds: SeedScheme::LogicalPage, organisation: Organisation::AISE },
    ];
    for seeds in [
        SeedScheme::PhysicalAddress,
        SeedScheme::VirtualAddress,
        SeedScheme::ProcessAndVirtualAddress,
    ] {
        all.push(CounterMode { seeds, organisation: Organisation::MONOLITHIC_64 });
    }
    // Everything else that needs no tree of its own.
    for organisation in Organisation::ALL {
        let listed = [Organisation::AISE, Organisation::MONOLITHIC_64];
        if organisation.mac_field().is_none() && !listed.contains(&organisation) {
            all.push(CounterMode { seeds: SeedScheme::PhysicalAddress, organisation });
        }
    }
    all
}

fn integrities() -> Vec<IntegrityKind> {
    use IntegrityKind::{AddressedMac, Bonsai, MerkleTree, None};
    let mut all = vec![None, AddressedMac, MerkleTree, Bonsai];
    all.extend(log_hashes());
    all
}

/// The last one with a tree of four levels.
fn log_hashes() -> [IntegrityKind; 4] {
    use IntegrityKind::{HierarchicalLogHash, LogHash};
    [
        LogHash { hashes: LogHashes::ReadAndWrite, time_stamp_bits: 32 },
        LogHash { hashes: LogHashes::Single, time_stamp_bits: 16 },
        HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 32 },
        HierarchicalLogHash { subspace_bytes: 512, time_stamp_bits: 12 },
    ]
}

/// All combinations that go together, under the paper's algorithms.
fn schemes() -> Vec<Scheme> {
    let mut all = Vec::new();
    for encryption in encryptions() {
        for integrity in integrities() {
            let (algorithms, mac_placement) = (Algorithms::AISE_BMT, MacPlacement::Region);
            let scheme =
                Scheme { encryption, integrity, algorithms, mac_placement, line_blocks: 1 };
            match scheme.on_bytes::<_, AllChecks>(SparseMemory::default(), size(0, 0), &SECRET) {
                Ok(_) => all.push(scheme),
                Err(error) => assert_eq!(error, SchemeError::BonsaiWithoutCounters),
            }
        }
    }
    assert_eq!(
        all.len(),
        encryptions().len() * integrities().len() - 3,
        "a Bonsai tree needs counters; all else combines"
    );
    // What does not combine freely, and other algorithms.
    let others = SCHEMES.iter().map(|named| named.scheme);
    let others: Vec<_> = others.filter(|scheme| !all.contains(scheme)).collect();
    all.extend(others);
    all.extend(small_counter_trees());
    all
}

/// Counter trees whose counters overflow soon on every level, and one whose MACs have no nonce.
fn small_counter_trees() -> Vec<Scheme> {
    let tree = |organisation, algorithms| Scheme {
        encryption: EncryptionKind::CounterMode {
            seeds: SeedScheme::PhysicalAddress,
            organisation,
        },
        integrity: IntegrityKind::CounterTree(CounterTreeKind::uniform(organisation)),
        algorithms,
        mac_placement: MacPlacement::Region,
        line_blocks: 1,
    };
    let hmac = MacKind::HmacSha1 { bits: 64 };
    let without_nonce = Algorithms { cipher: CipherKind::Aes128, data_mac: hmac, node_mac: hmac };
    let sgx_in_ecc_bits =
        Scheme { mac_placement: MacPlacement::EccBits, ..tree(Organisation::SGX, Algorithms::SGX) };
    vec![
        tree(Organisation::VAULT_LEAF, Algorithms::GMAC64),
        tree(Organisation::MORPHABLE, without_nonce),
        sgx_in_ecc_bits,
    ]
}

/// Log hashes with and without counters as chunks: many operations, checks now and then.
#[test]
fn log_hashes_stay_right_for_long() {
    let seed = seed(0x106);
    let _print = SeedOnFailure(seed);
    for integrity in log_hashes() {
        for encryption in [EncryptionKind::None, AISE] {
            for cache in [0, 64 << 10] {
                let (algorithms, mac_placement) = (Algorithms::AISE_BMT, MacPlacement::Region);
                let scheme =
                    Scheme { encryption, integrity, algorithms, mac_placement, line_blocks: 1 };
                run(
                    &mut unit(&scheme, cache),
                    &mut Random::new(seed ^ cache as u64),
                    operations(50_000),
                );
            }
        }
    }
}

#[test]
fn every_scheme_reads_what_was_written_last() {
    let seed = seed(0x5eed);
    let _print = SeedOnFailure(seed);
    for scheme in schemes() {
        for cache in [0, 64 << 10] {
            let mut random = Random::new(seed ^ cache as u64);
            run(&mut unit(&scheme, cache), &mut random, operations(7_000));
        }
        run_throwing_out(&mut governed(&scheme), &mut Random::new(seed), operations(3_500), 6);
    }
}

#[test]
fn no_scheme_uses_a_seed_twice() {
    let seed = seed(0x5eed5);
    let _print = SeedOnFailure(seed);
    for scheme in schemes() {
        let mut random = Random::new(seed);
        let mut unit = unit(&scheme, 2048);
        unit.port_mut().log_seeds();
        run(&mut unit, &mut random, operations(6_000));
        let counted = matches!(
            scheme.encryption,
            EncryptionKind::CounterMode { .. }
                | EncryptionKind::GlobalCounter { .. }
                | EncryptionKind::OneTimePad(_)
        );
        let log = unit.port_mut().used_seeds().log.clone().expect("it was asked for");
        assert_eq!(counted, !log.is_empty());
        let distinct: HashSet<_> = log.iter().collect();
        assert_eq!(distinct.len(), log.len(), "{scheme:?} used a seed twice");
        let macs = unit.port_mut().used_seeds().macs.clone().expect("it was asked for");
        let nonces = [scheme.algorithms.data_mac, scheme.algorithms.node_mac];
        let nonces = nonces.iter().any(|mac| mac.needs_nonce());
        assert_eq!(nonces, !macs.is_empty());
        let distinct: HashSet<_> = macs.iter().collect();
        assert_eq!(distinct.len(), macs.len(), "{scheme:?} used a MAC's nonce twice");
    }
}

#[test]
fn macs_of_every_width_work() {
    let widths = [32, 64, 96, 128, 160].map(|bits| MacKind::HmacSha1 { bits });
    for mac in widths.into_iter().chain([MacKind::HmacSha256]) {
        for integrity in
            [IntegrityKind::AddressedMac, IntegrityKind::MerkleTree, IntegrityKind::Bonsai]
        {
            let algorithms =
                Algorithms { cipher: CipherKind::Aes256, data_mac: mac, node_mac: mac };
            let encryption = EncryptionKind::CounterMode {
                seeds: SeedScheme::LogicalPage,
                organisation: Organisation::AISE,
            };
            let mac_placement = MacPlacement::Region;
            let scheme =
                Scheme { encryption, integrity, algorithms, mac_placement, line_blocks: 1 };
            run(&mut unit(&scheme, 1024), &mut Random::new(3), 1_000);
        }
    }
}

/// Lines that a hash tree caches and lines that it does not may lie under one node. To bring that
/// node in may then evict such a cached line, which brings in the node itself.
#[test]
fn cached_and_uncached_lines_share_nodes() {
    const LINES: u64 = 600;
    let wiring = Wiring {
        covered: Covered(vec![(Region::Counters, LINES)]),
        on_chip_tree_bytes: 0,
        mac_placement: MacPlacement::Region,
        counter_tree: false,
    };
    let port: BytesUnit<_, AllChecks> =
        BytesUnit::new(SparseMemory::default(), Algorithms::DELTA_ECC, wiring, &SECRET)
            .expect("they go together");
    let mut tree = HashTree::new(port, 0);
    let (mut model, mut random) = (HashMap::new(), Random::new(8));
    for _ in 0..50_000 {
        let (index, block) = (random.below(LINES), random_block(&mut random));
        let expected = model.get(&index).copied().unwrap_or([0; 64]);
        match (index % 2, random.one_in(2)) {
            (0, true) => tree.amend(index, (), |line| *line = block).expect("memory is intact"),
            (0, false) => {
                assert_eq!(tree.read(index, ()).map(|(line, ())| *line), Ok(expected));
                continue;
            }
            (_, true) => tree.write_through(index, &block).expect("memory is intact"),
            (_, false) => {
                assert_eq!(tree.read_through(index, ()), Ok(expected));
                continue;
            }
        }
        model.insert(index, block);
    }
}

/// Morphable's line of counters is two pages wide, and here the last page has none beside it.
#[test]
fn a_line_of_counters_may_reach_over_the_end_of_memory() {
    let named =
        SCHEMES.iter().find(|named| named.name == "morphable").expect("it is in the matrix");
    let unit = named.scheme.on_bytes(SparseMemory::default(), size(3, 0), &SECRET);
    let mut unit: Unit = unit.expect("the parts go together");
    let (last, mut random) = (PageAddress::identical(2), Random::new(6));
    for round in 0..2_000 {
        let block = random_block(&mut random);
        unit.write(last.block(round % 40), &block).expect("memory is intact");
        assert_eq!(unit.read(last.block(round % 40)), Ok(block));
    }
    assert!(unit.reencrypted_blocks() > 0);
}
