//! Any bytes are offered as the columns of a block, whose checksum a forger would get right.
#![no_main]
use casemate_sim::trace::Instruction;
use casemate_sim::trace::format::decode::Decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((records, columns)) = bytes.split_first_chunk::<2>() else { return };
    let mut decoder = Decoder::default();
    if decoder.begin(columns.to_vec(), u64::from(u16::from_le_bytes(*records))).is_none() {
        return;
    }
    let mut one = Instruction::default();
    while decoder.left() > 0 && decoder.next(&mut one).is_some() {}
});
