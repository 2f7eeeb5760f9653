//! The bytes interpretation: real lines, real MACs, real violations.

use std::marker::PhantomData;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::directory_shape::{Line, MAC_BYTES, Mac, SHAPE};
use crate::keys::{DirectoryKeys, KeptKeys};
use casemate_core::UntrustedMemory;
use casemate_core::checks::{AllChecks, Checks};
use casemate_core::on_bytes::OnBytes;
use casemate_core::port::{LinePlace, Port, Shape};
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

/// The port on bytes. A value is the value; every moment is now.
pub struct BytesPort<M, C = AllChecks> {
    memory: M,
    keys: KeptKeys,
    checks: PhantomData<C>,
}

impl<M, C> BytesPort<M, C> {
    /// A port to this memory. It keeps a copy of the keys, wiped on drop.
    pub fn new(memory: M, keys: &DirectoryKeys) -> Self {
        Self { memory, keys: KeptKeys::copy_of(keys), checks: PhantomData }
    }

    /// A port to this memory that uses the keys where they are, and keeps no copy.
    pub fn new_in_place(memory: M, keys: &'static DirectoryKeys) -> Self {
        Self { memory, keys: KeptKeys::InPlace(keys), checks: PhantomData }
    }

    /// The untrusted memory, for adversaries.
    #[cfg(any(test, feature = "adversary"))]
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// The untrusted memory.
    pub(crate) fn untrusted(&mut self) -> &mut M {
        &mut self.memory
    }

    /// The key of a log of lines: that of level 0, which no tree has beside a log.
    pub(crate) fn log_key(&self) -> &[u8; 32] {
        self.keys.level(0).expect("there is a key for level 0")
    }

    fn mac(&self, place: LinePlace, line: &Line) -> Mac {
        let key = self.keys.level(place.level).expect("the tree has a key for each of its levels");
        keyed_mac(key, line)
    }
}

/// BLAKE3 keyed by level, truncated to 128 bits. Two compressions.
///
/// The index is not hashed: a line's MAC is compared with the one slot of its parent that belongs
/// to it, which binds its position.
fn keyed_mac(key: &[u8; 32], bytes: &[u8]) -> Mac {
    let hash = blake3::keyed_hash(key, bytes);
    let mut mac = [0; MAC_BYTES];
    mac.copy_from_slice(&hash.as_bytes()[..MAC_BYTES]);
    mac
}

impl<M, C> OnBytes for BytesPort<M, C> {}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> Port for BytesPort<M, C> {
    type Line = Line;
    type Mac = Mac;
    type Checks = C;

    #[inline]
    fn shape(&self) -> Shape {
        SHAPE
    }

    fn fetch_line(&mut self, place: LinePlace, (): ()) -> Unverified<Line> {
        Unverified::from_untrusted(self.memory.read(place))
    }

    fn store_line(&mut self, place: LinePlace, line: &Line) {
        self.memory.write(place, line);
    }

    fn line_mac(&mut self, place: LinePlace, line: &Line) -> Mac {
        self.mac(place, line)
    }

    fn release_line(
        &mut self,
        place: LinePlace,
        line: Unverified<Line>,
        expected: &Mac,
    ) -> Result<Line, Violation> {
        let mac = self.mac(place, line.for_mac());
        let checked = if place.level == 0 { C::VERIFY_LEAVES } else { C::VERIFY_NODES };
        if checked && verify_slices_are_equal(&mac, expected).is_err() {
            return Err(Violation::MetadataLine { level: place.level, index: place.index });
        }
        Ok(line.open())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test vectors that the authors of BLAKE3 publish (keyed_hash, first 16 bytes).
    #[test]
    fn published_keyed_vectors() {
        let key = b"whats the Elvish word for friend";
        let vectors: [(usize, u128); 4] = [
            (0, 0x92b2_b756_04ed_3c76_1f9d_6f62_392c_8a92),
            (1, 0x6d78_78df_ff2f_4856_35d3_9013_278a_e14f),
            (1023, 0xc951_ecdf_0328_8d0f_cc96_ee34_1356_3d8a),
            (1024, 0x75c4_6f6f_3d9e_b4f5_5eca_aee4_80db_732e),
        ];
        for (length, expected) in vectors {
            let input: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            assert_eq!(keyed_mac(key, &input), expected.to_be_bytes(), "length {length}");
        }
    }
}
