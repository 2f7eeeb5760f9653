//! Any bytes come through the pipe from a recorder, with and without its greeting.
#![no_main]
use casemate_sim::trace::live::lackey::Lackey;
use casemate_sim::trace::live::wire::Wire;
use casemate_sim::trace::{Instruction, Source};

/// The plugin's greeting (SPEC.md, "The recorder's wire"): a control word, 0, version 1.
const GREETING: [u8; 8] = (1_u64 << 16 | 2).to_le_bytes();

fn drain(mut source: impl Source) {
    let mut one = Instruction::default();
    for _ in 0..100_000 {
        if !matches!(source.next(&mut one), Ok(true)) {
            return;
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    drain(Wire::new(bytes, 0));
    drain(Wire::new([&GREETING, bytes].concat().as_slice(), 3));
    drain(Lackey::new(bytes, 0));
});
