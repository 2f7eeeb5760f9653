//! Any bytes are a program, and its text: the machine ends it, traps, or gives it up.
#![no_main]
use casemate_lab::certified::{ExecutionError, Machine, assemble};
use casemate_lab::certified::instruction::Instruction;
use casemate_schemes::unit::memory::SparseMemory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(words) = assemble(text)
    {
        assert!(words.iter().all(|word| Instruction::decode(*word).is_some()));
    }
    let (words, _) = bytes.as_chunks::<8>();
    let program: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    for word in &program {
        assert!(Instruction::decode(*word).is_none_or(|instruction| instruction.encode() == *word));
    }
    let memory = SparseMemory::default();
    let Ok(mut machine) = Machine::<_>::load(&program, &[1, 2, 3], 512, memory, &[1; 32]) else {
        return;
    };
    let ended = machine.run(500).and_then(|_| machine.finish());
    assert!(!matches!(ended, Err(ExecutionError::Tampered(_) | ExecutionError::Unit(_))));
});
