//! The virtual-memory manager against plain maps, above every scheme; and every (key, seed) pair
//! that reaches the cipher while it works.

mod oracle;
mod run;
mod swap_order;
mod table_1;

use std::collections::BTreeMap;

use casemate_core::random::{Random, SeedOnFailure, seed};
use casemate_lab::virtual_memory::swap::Departure;
use casemate_lab::virtual_memory::table_1::{Row, Service, table_1};
use casemate_lab::virtual_memory::{Care, MemorySize, ProcessId, Sharing, VirtualMemory, VmError};
use casemate_schemes::catalogue::SCHEMES;
use casemate_schemes::counters::Organisation;
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{MacPlacement, Place, Region};
use casemate_schemes::unit::scheme::{Capacity, EncryptionKind, IntegrityKind};
use casemate_schemes::unit::seed::SeedScheme;
use casemate_schemes::unit::{Block, Scheme};

const SECRET: [u8; 32] = [9; 32];
const SIZE: MemorySize = MemorySize {
    frames: 24,
    unit_frames: 0,
    swap_slots: 40,
    metadata_cache: Capacity::Bytes(2048),
};
/// Pages that processes may have in all, shared ones counted for each: some are on disk, and all
/// fit.
const MOST_PAGES: usize = 56;
const MOST_PROCESSES: usize = 5;

type Memory = VirtualMemory<SparseMemory>;

fn counters(seeds: SeedScheme, organisation: Organisation) -> EncryptionKind {
    EncryptionKind::CounterMode { seeds, organisation }
}

fn aise() -> EncryptionKind {
    counters(SeedScheme::LogicalPage, Organisation::AISE)
}

fn under(encryption: EncryptionKind, integrity: IntegrityKind) -> Scheme {
    let (algorithms, mac_placement) = (Algorithms::AISE_BMT, MacPlacement::Region);
    Scheme { encryption, integrity, algorithms, mac_placement, line_blocks: 1 }
}

/// The seed schemes of AISE/BMT's Table 1.
fn table_1_encryptions() -> [EncryptionKind; 6] {
    let whole = Organisation::MONOLITHIC_64;
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

/// Those under every kind of tree and without one, and all that are in the matrix.
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
