//! Any bytes lie in untrusted memory: counter lines, nodes, MACs, ECC words, time stamps, data,
//! under every scheme. Nothing wrong is released by a scheme that promises it, and nothing panics.
#![no_main]
use casemate_lab::attack::promise::{Promise, promise};
use casemate_schemes::catalogue::SCHEMES;
use casemate_lab::attack::strike::Attack;
use casemate_core::checks::AllChecks;
use casemate_schemes::unit::memory::{OffChip, SparseMemory};
use casemate_schemes::unit::scheme::UnitSize;
use casemate_schemes::unit::{Block, PageAddress};

const FRAMES: u64 = 2;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([scheme, rest @ ..], changes)) = bytes.split_first_chunk::<3>() else { return };
    let scheme = SCHEMES[usize::from(*scheme) % SCHEMES.len()].scheme;
    let size = UnitSize::new(FRAMES, 0);
    let unit = scheme.on_bytes::<_, AllChecks>(SparseMemory::default(), size, &[1; 32]);
    let mut unit = unit.expect("the matrix has schemes that can be built");
    let blocks = || (0..FRAMES).flat_map(|frame| PageAddress::identical(frame).blocks());
    let content = |number: usize| -> Block { [number as u8 ^ 0x5a; 64] };
    for (number, at) in blocks().enumerate() {
        unit.write(at, &content(number)).expect("memory is intact");
    }
    unit.flush().expect("memory is intact");
    let memory = unit.port_mut().memory_mut();
    let mut places: Vec<_> = memory.iter().map(|(place, _)| place).collect();
    places.sort_unstable();
    let mut first = usize::from(u16::from_le_bytes(*rest));
    for change in changes.chunks(64) {
        let place = places[first % places.len()];
        let mut block = memory.read(place);
        block[..change.len()].copy_from_slice(change);
        memory.write(place, &block);
        first = first.wrapping_mul(31).wrapping_add(7);
    }
    let mut wrong = false;
    let mut read_all = || {
        for (number, at) in blocks().enumerate() {
            let block = unit.read(at)?;
            wrong |= block != content(number);
            unit.drop_clean(at, &block)?;
        }
        unit.check()
    };
    let passed = read_all().is_ok();
    // A replay of old content takes more than bytes at random, so that an addressed MAC keeps its
    // word, too.
    let undetected = matches!(promise(&scheme, Attack::Spoof), Promise::Undetected(_));
    assert!(undetected || !(passed && wrong));
});
