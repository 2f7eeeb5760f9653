//! Any bytes are offered as a trace of every other tool, compressed or not.
#![no_main]
use std::io::Cursor;

use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::{Instruction, Source};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for format in Format::ALL {
        let Ok(mut source) = format.read(Cursor::new(bytes.to_vec())) else { continue };
        let mut one = Instruction::default();
        // A few compressed bytes may stand for many.
        for _ in 0..10_000 {
            if !matches!(source.next(&mut one), Ok(true)) {
                break;
            }
        }
    }
});
