//! Maps from numbers of blocks and pages. They are never iterated over, so their order does not
//! matter.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type NumberMap<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// One multiplication and a fold: the keys are addresses of a simulated program, not an attacker's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
