//! Any bytes are offered as a trace file, alone and written over a good one; what is read of a
//! damaged file is a part of the truth.
#![no_main]
use std::io::Cursor;
use std::sync::LazyLock;

use casemate_sim::trace::format::{Reader, Writer};
use casemate_sim::trace::{Header, Instruction, Reference, Source};

fn program() -> impl Iterator<Item = Instruction> {
    (0..600_u64).map(|i| Instruction {
        pc: 0x40_0000 + 4 * (i % 50),
        length_bytes: 4,
        references: vec![Reference::load(0x1000 + 8 * i, 8), Reference::store(1 << (i % 47), 4)],
        ..Instruction::default()
    })
}

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let writer = Writer::with_block_records(Vec::new(), &Header::default(), 64);
    let mut writer = writer.expect("the header fits");
    program().for_each(|one| writer.write(&one).expect("the instruction fits"));
    writer.finish().expect("memory can be written").1
});

fn read(bytes: &[u8], salvage: bool) -> Vec<Instruction> {
    let input = Cursor::new(bytes);
    let opened = if salvage { Reader::salvage(input) } else { Reader::open(input) };
    let Ok(mut reader) = opened else { return Vec::new() };
    let _ = reader.totals();
    let _ = reader.seek(300);
    let _ = reader.seek(0);
    let (mut all, mut one) = (Vec::new(), Instruction::default());
    while all.len() < 10_000 && matches!(reader.next(&mut one), Ok(true)) {
        all.push(one.clone());
    }
    all
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    read(bytes, false);
    read(bytes, true);
    let Some((at, over)) = bytes.split_first_chunk::<2>() else { return };
    let at = usize::from(u16::from_le_bytes(*at)) % GOOD.len();
    let mut changed = GOOD[..at].to_vec();
    changed.extend_from_slice(over);
    // The rest as it was, or cut off.
    if over.first().is_some_and(|byte| byte % 2 == 0) {
        changed.extend_from_slice(GOOD.get(changed.len()..).unwrap_or_default());
    }
    let truth: Vec<Instruction> = program().collect();
    for salvage in [false, true] {
        let all = read(&changed, salvage);
        // Blocks of 64, checked one by one: each one that comes out was written.
        assert!(all.iter().all(|one| truth.contains(one)));
    }
});
