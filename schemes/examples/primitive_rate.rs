//! What the primitives cost for one 64-byte block, in nanoseconds: the median of many batches.
//!
//! `cargo run --release -p casemate-schemes --example primitive_rate`

use std::hint::black_box;
use std::time::Instant;

use casemate_schemes::primitives::{
    BlockCipher, CipherKind, HashKind, LogHashKey, MacKey, MacKind,
};

const CALLS: u32 = 1000;
const BATCHES: usize = 201;

fn print(what: &str, mut call: impl FnMut()) {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    batches.sort_unstable_by(f64::total_cmp);
    println!("{what:<44} {:8.1} ns", batches[BATCHES / 2]);
}

fn main() {
    let key: [u8; 32] = std::array::from_fn(|at| at as u8 ^ 0x5a);
    let mut block = [7; 64];
    for kind in CipherKind::ALL {
        let cipher = BlockCipher::new(kind, &key[..kind.key_bytes()]).expect("the key's length");
        print(&format!("{kind:?}: pad of 64 bytes, blocks together"), || {
            cipher.encrypt_blocks(black_box(&mut block));
        });
        print(&format!("{kind:?}: pad of 64 bytes, one after another"), || {
            let block = black_box(&mut block);
            for at in (0..64).step_by(kind.block_bytes()) {
                cipher.encrypt_block(&mut block[at..at + kind.block_bytes()]);
            }
        });
        print(&format!("{kind:?}: one block"), || {
            cipher.encrypt_block(&mut black_box(&mut block)[..kind.block_bytes()]);
        });
    }
    for kind in [
        MacKind::HmacSha1 { bits: 128 },
        MacKind::HmacSha256,
        MacKind::CarterWegman56,
        MacKind::SgxCarterWegman56,
        MacKind::Gmac { bits: 128 },
    ] {
        let mac = MacKey::new(kind, &key).expect("a supported width");
        print(&format!("{kind:?}: MAC of 64 bytes and a nonce"), || {
            black_box(mac.mac(Some(black_box(1234)), &[black_box(&block)]));
        });
    }
    for kind in HashKind::ALL {
        print(&format!("{kind:?}: hash of 64 bytes"), || {
            black_box(kind.hash(&[black_box(&block)]));
        });
    }
    let log = LogHashKey::new([7; 16]);
    let mut hash = log.empty(1);
    print("MSet-XOR-MAC: one element of 64 + 12 bytes", || {
        log.add(&mut hash, &[black_box(&block), &[0; 8], &[0; 4]]);
    });
}
