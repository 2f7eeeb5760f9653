//! Page numbers, and maps from them.

use crate::config::PAGE_BYTES;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// Page number in an address space: address / 4096.
pub type Vpn = u64;

/// Hashes page numbers: one multiplication. The keys are the program's addresses, and a program
/// that chooses them to collide slows down only its own run.
#[derive(Default, Clone, Copy)]
pub struct VpnHasher(u64);

impl Hasher for VpnHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        let x = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = x ^ (x >> 32);
    }
}

/// A map from page numbers.
pub type VpnMap<T> = HashMap<Vpn, T, BuildHasherDefault<VpnHasher>>;

/// The pages that a range of bytes touches.
pub(in crate::pager) fn in_pages(start: u64, end: u64) -> Range<Vpn> {
    start / PAGE_BYTES as u64..end.div_ceil(PAGE_BYTES as u64)
}

/// The pages of a range that a map has.
pub(in crate::pager) fn keys_in<T>(map: &VpnMap<T>, range: &Range<Vpn>) -> Vec<Vpn> {
    let length = range.end.saturating_sub(range.start);
    if length < map.len() as u64 {
        range.clone().filter(|vpn| map.contains_key(vpn)).collect()
    } else {
        map.keys().copied().filter(|vpn| range.contains(vpn)).collect()
    }
}
