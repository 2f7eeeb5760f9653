//! The virtual-memory manager against plain maps, above every scheme; and every (key, seed) pair that
//! reaches the cipher while it works.

#[path = "../common/mod.rs"]
mod common;

mod oracle;
mod swap_order;
mod table_1;

use std::collections::BTreeMap;

use casemate_engine::attack::schemes::SCHEMES;
use casemate_engine::counters::Organisation;
use casemate_engine::unit::bytes::Algorithms;
use casemate_engine::unit::memory::{OffChip, SparseMemory};
use casemate_engine::unit::place::{MacPlacement, Place, Region};
use casemate_engine::unit::scheme::{EncryptionKind, IntegrityKind};
use casemate_engine::unit::seed::SeedScheme;
use casemate_engine::unit::{Block, Scheme};
use casemate_engine::virtual_memory::swap::Departure;
use casemate_engine::virtual_memory::table_1::{Row, Service, table_1};
use casemate_engine::virtual_memory::{
    Care, MemorySize, ProcessId, Sharing, VirtualMemory, VmError,
};
use common::{Random, SeedOnFailure, seed};

const SECRET: [u8; 32] = [9; 32];
const SIZE: MemorySize = MemorySize { frames: 24, swap_slots: 40, metadata_cache_bytes: 2048 };
/// Pages that processes may have in all, shared ones counted for each: some are on disk, and all fit.
const MOST_PAGES: usize = 56;
const MOST_PROCESSES: usize = 5;

type Memory = VirtualMemory<SparseMemory>;

fn counters(seeds: SeedScheme, organisation: Organisation) -> EncryptionKind {
    EncryptionKind::CounterMode { seeds, organisation }
}

fn aise() -> EncryptionKind {
    counters(SeedScheme::LogicalPage, Organisation::Aise)
}

fn under(encryption: EncryptionKind, integrity: IntegrityKind) -> Scheme {
    let (algorithms, mac_placement) = (Algorithms::AISE_BMT, MacPlacement::Region);
    Scheme { encryption, integrity, algorithms, mac_placement }
}

/// The seed schemes of AISE/BMT's Table 1.
fn table_1_encryptions() -> [EncryptionKind; 6] {
    let whole = Organisation::Monolithic64;
    [
        EncryptionKind::GlobalCounter { bits: 64 },
        // Used up again and again: memory and disk are encrypted anew.
        EncryptionKind::GlobalCounter { bits: 14 },
        counters(SeedScheme::PhysicalAddress, whole),
        counters(SeedScheme::VirtualAddress, whole),
        counters(SeedScheme::ProcessAndVirtualAddress, whole),
        aise(),
    ]
}

/// Those under every kind of tree and without one, and whatever is in the matrix.
fn schemes() -> Vec<Scheme> {
    let mut all = Vec::new();
    for encryption in table_1_encryptions() {
        for integrity in [IntegrityKind::None, IntegrityKind::MerkleTree, IntegrityKind::Bonsai] {
            all.push(under(encryption, integrity));
        }
    }
    let named = SCHEMES.iter().map(|named| named.scheme);
    let others: Vec<_> = named.filter(|scheme| !all.contains(scheme)).collect();
    all.extend(others);
    all
}
