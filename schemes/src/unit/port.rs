//! The operations that a protection unit needs, beside those on the lines of its tree ([`Port`]).

use std::ops::Range;

use super::anatomy::Part;
use super::log_port::LogPort;
use super::place::Place;
use super::seed::Seed;
use crate::counter_tree::CounterPort;
use crate::memory_line::MemoryLine;
use casemate_core::port::{LinePlace, Port, Use};
use casemate_core::unverified::Unverified;
use casemate_core::violation::Violation;

/// Bytes of the longest MAC; shorter ones are followed by zeros.
pub const MAX_MAC_BYTES: usize = 32;

/// A MAC over a block.
pub type BlockMac = [u8; MAX_MAC_BYTES];

/// What a block's MAC binds beside the ciphertext: all that makes the block this one and no other,
/// now and not then. A seed's base under counter mode, the address otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding(pub u128);

/// The two ways of a block: out to memory, in from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

/// Whose key data goes through the cipher under. A compartment's comes with its program (OTP/SNC,
/// section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DataKey {
    /// The unit's own, for whatever belongs to no compartment alone.
    #[default]
    Unit,
    /// That of a compartment's data.
    Compartment(u32),
    /// That of a compartment's instructions, under which its vendor encrypted them.
    Instructions(u32),
}

/// Repairs, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Corrections {
    /// Blocks of which anything was repaired.
    pub blocks: u64,
    /// Bits of data that were flipped back.
    pub data_bits: u64,
    /// ECC words of which a bit was wrong.
    pub words: u64,
}

/// The operations that a protection unit needs from memory, cipher and MAC unit.
///
/// [`Port`] beside it has the lines that a tree covers; which of the regions those are is the
/// port's configuration. [`CounterPort`] has the MACs in the lines of a counter tree, [`LogPort`]
/// what log hashes need.
pub trait UnitPort: Port<Line: MemoryLine, Mac = BlockMac> + CounterPort + LogPort {
    /// Where a block's MAC is kept, if it has one.
    fn mac_part(&self, place: Place) -> Part;

    /// Where a line of the tree lies.
    fn line_place(&self, line: LinePlace) -> Place;

    /// Fetches a block that no tree covers. Its address is known at `from`.
    fn fetch(&mut self, place: Place, from: Self::Moment) -> Self::V<Unverified<Self::Line>>;

    /// Stores a block that no tree covers.
    fn store(&mut self, place: Place, block: &Self::V<Self::Line>);

    /// The MAC that is kept for a block: in a region of its own, or in its ECC bits. From there it
    /// comes with the block, in one fetch, and is the whole ECC word.
    fn fetch_mac(&mut self, place: Place, from: Self::Moment) -> Self::V<Unverified<BlockMac>>;

    /// Keeps a block's MAC.
    fn store_mac(&mut self, place: Place, mac: &Self::V<BlockMac>);

    /// Chooses the key for [`pad`](Self::pad) and [`cipher`](Self::cipher) from now on. It is the
    /// unit's own until then. Where nothing is encrypted there is nothing to choose.
    fn select_key(&mut self, _key: DataKey) {}

    /// Of the blocks that are fetched, stored and sent through [`cipher`](Self::cipher) from now on
    /// only these bytes are wanted: whole chunks of the cipher. With `None` it is all of a block
    /// again. Calls take and give whole blocks all the same; what is moved and deciphered for them
    /// is less, where no check needs the rest.
    #[inline]
    fn want_part(&mut self, _part: Option<Range<usize>>) {}

    /// Encrypts the seeds of all chunks of a block (AISE/BMT, section 4.1), to encrypt or to
    /// decrypt it.
    fn pad(&mut self, direction: Direction, seed: Seed, from: Self::Moment) -> Self::V<Self::Line>;

    /// Sends a block through the cipher itself. With `tweak` the address is mixed in.
    fn cipher(
        &mut self,
        direction: Direction,
        tweak: Option<u64>,
        block: &Self::V<Self::Line>,
    ) -> Self::V<Self::Line>;

    /// Computes a block's MAC over binding and contents. The place names the block; what
    /// the MAC binds of it is in the binding.
    fn mac(
        &mut self,
        place: Place,
        binding: &Self::V<Binding>,
        block: &Self::V<Self::Line>,
    ) -> Self::V<BlockMac>;

    /// Compares the MAC of a fetched block with the one kept for it, and releases the block. With
    /// the MAC in the ECC bits the block is first repaired, in memory too, if that can be done.
    fn release(
        &mut self,
        place: Place,
        binding: &Self::V<Binding>,
        block: Self::V<Unverified<Self::Line>>,
        kept: Self::V<Unverified<BlockMac>>,
    ) -> Result<Self::V<Self::Line>, Violation>;

    /// Whether a block's ECC bits show, without any MAC, that something was flipped. Never without
    /// such bits.
    fn looks_damaged(&mut self, place: Place, from: Self::Moment) -> Self::V<bool>;

    /// What [`release`](Self::release) has repaired so far.
    fn corrections(&self) -> Corrections;

    /// Replaces the key that data is encrypted under. What was encrypted under the old one cannot
    /// be read any more.
    fn renew_key(&mut self);

    /// Releases a block without any check: what a scheme without integrity does with all it reads.
    fn release_unchecked(&mut self, block: Self::V<Unverified<Self::Line>>) -> Self::V<Self::Line>;

    /// One block XOR another.
    fn xor(&mut self, a: &Self::V<Self::Line>, b: &Self::V<Self::Line>) -> Self::V<Self::Line> {
        let (mut out, other) = (*Self::peek(a), Self::peek(b));
        for (byte, other) in out.as_mut().iter_mut().zip(other.as_ref()) {
            *byte ^= other;
        }
        let at = self.join(Self::moment(a), Self::moment(b));
        Self::carry(out, at)
    }

    /// The same as [`used`](Port::used), of a line that is in no tree.
    #[inline]
    fn metadata_used(&mut self, _place: Place, _how: Use, from: Self::Moment) -> Self::Moment {
        from
    }
}
