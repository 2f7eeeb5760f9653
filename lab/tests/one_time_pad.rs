//! OTP/SNC under an operating system: the manager of virtual memory tells the unit which process
//! runs.

use casemate_core::checks::AllChecks;
use casemate_lab::virtual_memory::{Care, MemorySize, VirtualMemory};
use casemate_schemes::primitives::{CipherKind, MacKind};
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::encryption::{OneTimePadKind, SncShape};
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{Capacity, EncryptionKind, IntegrityKind};

/// OTP/SNC, section 4.3: with another process the sequence numbers on chip are flushed, and then it
/// is that one's that are kept.
#[test]
fn a_context_switch_reaches_the_sequence_number_cache() {
    let size = MemorySize {
        frames: 6,
        unit_frames: 0,
        swap_slots: 10,
        metadata_cache: Capacity::Bytes(2048),
    };
    let snc = SncShape { entries: 64, ways: 32, ..SncShape::PAPER };
    let mac = MacKind::HmacSha1 { bits: 128 };
    let scheme = Scheme {
        encryption: EncryptionKind::OneTimePad(OneTimePadKind { snc, ..OneTimePadKind::PAPER }),
        integrity: IntegrityKind::None,
        algorithms: Algorithms { cipher: CipherKind::Des, data_mac: mac, node_mac: mac },
        mac_placement: MacPlacement::Region,
        line_blocks: 1,
    };
    let memory = SparseMemory::default();
    let mut memory =
        VirtualMemory::<_, AllChecks>::new(&scheme, memory, size, Care::Careful, &[9; 32])
            .expect("the parts go together");
    let held = |memory: &mut VirtualMemory<_, AllChecks>| {
        memory.unit_mut().sequence_number_cache().expect("this scheme has one").len()
    };
    let (first, second) = (memory.spawn(), memory.spawn());
    memory.switch_to(first).expect("it was just made");
    memory.map(first, 5).expect("there is room");
    memory.write(5, 3, &[7; 64]).expect("memory is intact");
    assert!(held(&mut memory) > 0);
    memory.switch_to(second).expect("it was just made");
    assert_eq!(held(&mut memory), 0);
    memory.switch_to(first).expect("it is there");
    assert_eq!(memory.read(5, 3), Ok([7; 64]));
    assert!(held(&mut memory) > 0);
}
