//! OTP/SNC: one-time pads with a Sequence Number Cache, and compartments.

mod compartments;
mod equations;
mod oracle;
mod sequence_number_cache;

use casemate_core::checks::{AllChecks, Checks};
use casemate_core::random::Random;
use casemate_schemes::primitives::{CipherKind, MacKind};
use casemate_schemes::unit::bytes::{Algorithms, BytesUnit};
use casemate_schemes::unit::encryption::{ContextSwitch, OneTimePadKind, Replacement, SncShape};
use casemate_schemes::unit::memory::{OffChip, SparseMemory};
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, SchemeError, UnitSize};
use casemate_schemes::unit::{Block, ProtectionUnit, Scheme};

const SECRET: [u8; 32] = [9; 32];
const FRAMES: u64 = 12;

type Unit<C = AllChecks, M = SparseMemory> = ProtectionUnit<BytesUnit<M, C>>;

fn kind(entries: usize, ways: usize, replacement: Replacement) -> OneTimePadKind {
    let snc = SncShape { entries, ways, replacement, ..SncShape::PAPER };
    OneTimePadKind { snc, ..OneTimePadKind::PAPER }
}

fn scheme(kind: OneTimePadKind, cipher: CipherKind, integrity: IntegrityKind) -> Scheme {
    let mac = MacKind::HmacSha1 { bits: 128 };
    let algorithms = Algorithms { cipher, data_mac: mac, node_mac: mac };
    let encryption = EncryptionKind::OneTimePad(kind);
    Scheme {
        encryption,
        integrity,
        algorithms,
        mac_placement: MacPlacement::Region,
        line_blocks: 1,
    }
}

/// A unit without pages, of a scheme whose parts must go together.
fn unit<C: Checks, M: OffChip + Default>(scheme: &Scheme) -> Unit<C, M> {
    scheme.without_pages(M::default(), size(), &SECRET).expect("the parts go together")
}

fn size() -> UnitSize {
    UnitSize::new(FRAMES, 1 << 10)
}

fn random_block(random: &mut Random) -> Block {
    let mut block = [0; 64];
    for word in block.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    block
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    let built = |scheme: Scheme| {
        let built = scheme.without_pages::<_, AllChecks>(SparseMemory::default(), size(), &SECRET);
        built.err()
    };
    let paper = OneTimePadKind::PAPER;
    let (des, none) = (CipherKind::Des, IntegrityKind::None);
    assert_eq!(built(scheme(paper, des, none)), None);
    let tagged = OneTimePadKind { context_switch: ContextSwitch::Tags, ..paper };
    assert_eq!(built(scheme(tagged, CipherKind::Aes256, IntegrityKind::MerkleTree)), None);
    for (entries, ways) in [(0, 0), (0, 1), (4, 0), (4, 3), (2, 4)] {
        let odd = kind(entries, ways, Replacement::Never);
        assert_eq!(built(scheme(odd, des, none)), Some(SchemeError::SequenceNumberCache));
    }
    let logged = IntegrityKind::HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 32 };
    assert_eq!(built(scheme(paper, des, logged)), Some(SchemeError::SequenceNumbersNotLogged));
    assert_eq!(
        built(scheme(paper, des, IntegrityKind::Bonsai)),
        Some(SchemeError::BonsaiWithoutCounters)
    );
    // The seeds of counter mode, cut to 64 bits, would be the same for all blocks.
    let counted = EncryptionKind::GlobalCounter { bits: 32 };
    let counted = Scheme { encryption: counted, ..scheme(paper, des, none) };
    assert_eq!(built(counted), Some(SchemeError::SeedsTooWide(des)));
}
