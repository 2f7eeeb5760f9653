//! Tests of the transform, and of the bare one that it is not.

use super::*;
use casemate_core::random::{Random, SeedOnFailure, seed};
use proptest::prelude::*;

const N: usize = 64;
const SECRET: [u8; N] = [0x5a; N];

fn memory_of(bytes: usize, random: &mut Random) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    random.fill(&mut memory);
    spread(&SECRET, &mut memory).expect("it has room");
    memory
}

fn opened(memory: &[u8]) -> [u8; N] {
    let mut secret = [0; N];
    open(memory, &mut secret, &mut [0; CHECK_BYTES]).expect("it has room");
    secret
}

/// The secret XOR a hash of the random part: what the transform is not.
fn bare(memory: &[u8]) -> [u8; N] {
    let (random, masked) = memory.split_at(memory.len() - N);
    let mut secret = [0; N];
    derive(MASK_CONTEXT, &[random], &mut secret);
    xor(&mut secret, masked);
    secret
}

/// Over how many bits the results of memory and of memory with one bit flipped differ: the least
/// and the most for all its bits, and the mean.
fn changed_bits(memory: &mut [u8], result: fn(&[u8]) -> [u8; N]) -> (u32, u32, f64) {
    let before = result(memory);
    let (mut least, mut most, mut sum) = (u32::MAX, 0, 0);
    for bit in 0..memory.len() * 8 {
        memory[bit / 8] ^= 1 << (bit % 8);
        let after = result(memory);
        memory[bit / 8] ^= 1 << (bit % 8);
        let changed = before.iter().zip(after).map(|(a, b)| (a ^ b).count_ones()).sum();
        (least, most, sum) = (least.min(changed), most.max(changed), sum + changed);
    }
    (least, most, f64::from(sum) / (memory.len() * 8) as f64)
}

/// Half of 512 bits, with a standard deviation of 11.3: six of them leave out none of thousands.
fn is_half_of_all(of: (u32, u32, f64)) -> bool {
    of.0 >= 256 - 68 && of.1 <= 256 + 68 && (of.2 - 256.0).abs() < 1.5
}

#[test]
fn a_flipped_bit_anywhere_changes_half_of_the_secret() {
    let seed = seed(1);
    let _told = SeedOnFailure(seed);
    let mut memory = memory_of(512, &mut Random::new(seed));
    assert_eq!(opened(&memory), SECRET);
    let changed = changed_bits(&mut memory, opened);
    assert!(is_half_of_all(changed), "{changed:?}");
    // The law can be broken: one bit of the bare transform's masked secret costs one bit.
    let changed = changed_bits(&mut memory, bare);
    assert!(!is_half_of_all(changed) && changed.0 == 1, "{changed:?}");
}

#[test]
fn a_flipped_bit_anywhere_is_told() {
    let mut memory = memory_of(N + EXTRA_BYTES, &mut Random::new(2));
    let mut secret = [0; N];
    for bit in 0..memory.len() * 8 {
        memory[bit / 8] ^= 1 << (bit % 8);
        secret.fill(1);
        assert_eq!(gather(&memory, &mut secret), Err(SpreadError::Changed), "bit {bit}");
        assert_eq!(secret, [0; N], "bit {bit}");
        memory[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(gather(&memory, &mut secret), Ok(()));
    assert_eq!(secret, SECRET);
}

#[test]
fn the_layout_is_the_documented_one() {
    let mut memory = vec![7; 4096];
    spread(&SECRET, &mut memory).expect("it has room");
    let seed = [7; 32];
    let mut expected = vec![7; 4096 - N - 48];
    let mut mask = [0; N];
    blake3::Hasher::new_derive_key(MASK_CONTEXT).update(&seed).finalize_xof().fill(&mut mask);
    expected.extend(mask.map(|byte| byte ^ 0x5a));
    expected.extend(&blake3::derive_key(CHECK_CONTEXT, &seed)[..16]);
    let digest = blake3::derive_key(DIGEST_CONTEXT, &expected);
    expected.extend(digest.map(|byte| byte ^ 7));
    assert!(memory == expected);
}

#[test]
fn memory_without_room_is_refused() {
    let least = N + EXTRA_BYTES;
    for given in [0, EXTRA_BYTES, least - 1] {
        let refused = Err(SpreadError::TooSmall { given, least });
        assert_eq!(spread(&SECRET, &mut vec![0; given]), refused);
        assert_eq!(gather(&vec![0; given], &mut [0; N]), refused);
    }
}

proptest! {
    #[test]
    fn it_comes_back_from_any_memory(seed: u64, bytes in N + EXTRA_BYTES..5000, secret: [u8; 32]) {
        let mut memory = vec![0; bytes];
        Random::new(seed).fill(&mut memory);
        spread(&secret, &mut memory).expect("it has room");
        let mut back = [0; 32];
        prop_assert_eq!(gather(&memory, &mut back), Ok(()));
        prop_assert_eq!(back, secret);
    }
}
