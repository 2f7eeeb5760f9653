//! The bytes interpretation of a protection unit: real ciphertext, real MACs, real violations.

mod block_macs;
mod counter_macs;
mod data_keys;
mod log;

use std::marker::PhantomData;

use super::BLOCK_BYTES;
use super::anatomy::Part;
use super::extents::mac_place;
use super::memory::OffChip;
use super::place::{MacPlacement, Place, Region};
use super::port::{Binding, BlockMac, Corrections, DataKey, Direction, MAX_MAC_BYTES, UnitPort};
use super::seed::Seed;
use block_macs::{BlockMacs, Fit};
use data_keys::DataKeys;

use crate::memory_line::MemoryLine;
use crate::primitives::{CipherKind, KeyLength, MacKey, MacKind, UnsupportedWidth};
use casemate_core::checks::{AllChecks, Checks};
use casemate_core::key_derivation;
use casemate_core::on_bytes::OnBytes;
use casemate_core::port::{LinePlace, Port, Shape};
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

/// What a unit on bytes computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithms {
    /// The block cipher.
    pub cipher: CipherKind,
    /// The MAC over data blocks.
    pub data_mac: MacKind,
    /// The MAC in tree nodes. In a hash tree it must need no nonce: a node has none. In a counter
    /// tree it may.
    pub node_mac: MacKind,
}

/// Secrets of a unit, from which all its keys come.
pub type UnitSecret = [u8; 32];

/// What lies on level 0 of the tree, region after region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered(pub Vec<(Region, u64)>);

impl Covered {
    /// Lines on level 0.
    pub fn lines(&self) -> u64 {
        self.0.iter().map(|(_, lines)| lines).sum()
    }

    /// Where a line of the tree lies.
    pub fn place(&self, line: LinePlace) -> Place {
        if line.level > 0 {
            return Place::new(Region::Nodes(line.level), line.index);
        }
        let mut index = line.index;
        for (region, lines) in &self.0 {
            if index < *lines {
                return Place::new(*region, index);
            }
            index -= lines;
        }
        // Past the last region: lines that stay empty, if the tree is larger than what it covers.
        Place::new(Region::Nodes(0), index)
    }
}

/// How a unit on bytes is put together, beside its algorithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    /// What the tree covers.
    pub covered: Covered,
    /// Bytes on chip for the top of a hash tree; see [`Shape::over`].
    pub on_chip_tree_bytes: usize,
    /// Where data MACs lie.
    pub mac_placement: MacPlacement,
    /// Whether the tree is one of counters, whose MACs have nonces.
    pub counter_tree: bool,
}

/// The port on bytes, of lines of so many.
pub struct BytesUnit<M, C = AllChecks, const LINE: usize = BLOCK_BYTES> {
    memory: M,
    keys: DataKeys,
    block_macs: BlockMacs,
    node_mac: MacKey,
    shape: Shape,
    wiring: Wiring,
    corrections: Corrections,
    algorithms: Algorithms,
    secret: zeroize::Zeroizing<UnitSecret>,
    epoch: u64,
    used: UsedSeeds,
    logs: log::LogUnit,
    checks: PhantomData<C>,
}

/// Every (key, seed) pair that something was encrypted under, where a test wants to know.
#[derive(Debug, Clone, Default)]
pub struct UsedSeeds {
    /// Number of the key and seed of each chunk that was encrypted, in order; `None` if it is not
    /// logged.
    pub log: Option<Vec<(u64, u128)>>,
    /// Key, its epoch and nonce of each MAC that takes a nonce; `None` if it is not logged.
    pub macs: Option<Vec<(KeyUse, u64, u128)>>,
}

/// Which MAC key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyUse {
    /// That of data blocks.
    Data,
    /// That of tree nodes.
    Nodes,
}

impl UsedSeeds {
    fn note_mac(&mut self, key: KeyUse, epoch: u64, nonce: u128) {
        if let Some(macs) = &mut self.macs {
            macs.push((key, epoch, nonce));
        }
    }
}

/// A unit cannot be built so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The MAC cannot be so wide.
    #[error(transparent)]
    Width(#[from] UnsupportedWidth),
    /// A derived key does not fit its cipher.
    #[error(transparent)]
    Key(#[from] KeyLength),
    /// A MAC that needs a nonce where there is none: the second message under one nonce gives the
    /// key away.
    #[error("{0:?} needs a nonce for each block, and here there is none")]
    NeedsNonce(MacKind),
    /// The ECC bits have room for 56, and correction needs a linear hash.
    #[error("{0:?} is no MAC for the ECC bits: these take a 56-bit Carter-Wegman MAC")]
    EccBitsNeedLinearMac(MacKind),
}

/// Key derivation labels.
const NODE_MAC: &str = "casemate unit node mac";

fn derive(secret: &UnitSecret, label: &str, epoch: u64) -> zeroize::Zeroizing<[u8; 32]> {
    derive_for(secret, label, epoch, &[])
}

/// A key that is one owner's.
fn derive_for(
    secret: &UnitSecret,
    label: &str,
    epoch: u64,
    owner: &[u8],
) -> zeroize::Zeroizing<[u8; 32]> {
    let mut key = zeroize::Zeroizing::new([0; 32]);
    key_derivation::derive(label, &[secret, &epoch.to_le_bytes(), owner], &mut *key);
    key
}

impl<M, C, const LINE: usize> BytesUnit<M, C, LINE> {
    /// A port to this memory.
    ///
    /// # Errors
    /// If the algorithms do not go together.
    pub fn new(
        memory: M,
        algorithms: Algorithms,
        wiring: Wiring,
        secret: &UnitSecret,
    ) -> Result<Self, UnitError> {
        let Algorithms { cipher, data_mac, node_mac } = algorithms;
        if node_mac.needs_nonce() && !wiring.counter_tree {
            return Err(UnitError::NeedsNonce(node_mac));
        }
        let (lines, on_chip) = (wiring.covered.lines(), wiring.on_chip_tree_bytes);
        let shape = Shape::over(lines, LINE, node_mac.bytes(), on_chip);
        Ok(Self {
            memory,
            keys: DataKeys::new(cipher, secret, DataKey::default(), 0)?,
            block_macs: BlockMacs::new(data_mac, wiring.mac_placement, secret, 0)?,
            node_mac: MacKey::new(node_mac, &derive(secret, NODE_MAC, 0))?,
            shape,
            wiring,
            corrections: Corrections::default(),
            algorithms,
            secret: zeroize::Zeroizing::new(*secret),
            epoch: 0,
            used: UsedSeeds::default(),
            logs: log::LogUnit::new(secret),
            checks: PhantomData,
        })
    }

    /// Untrusted memory, for adversaries.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Begins to write down every seed that is encrypted, and every nonce of a MAC.
    pub fn log_seeds(&mut self) {
        self.used = UsedSeeds { log: Some(Vec::new()), macs: Some(Vec::new()) };
    }

    /// The seeds written down so far.
    pub fn used_seeds(&self) -> &UsedSeeds {
        &self.used
    }

    /// Where a line's MAC lies: the line of the MAC region, or of ECC words, and the bytes in it.
    fn mac_place(&self, place: Place) -> (Place, std::ops::Range<usize>) {
        let bytes = self.block_macs.kept_bytes();
        let (place, at) = mac_place(self.wiring.mac_placement, LINE, bytes, place);
        (place, at..at + bytes)
    }
}

impl<M: OffChip<[u8; LINE]>, C: Checks, const LINE: usize> BytesUnit<M, C, LINE> {
    /// What is released of a copy that was verified: that copy.
    fn verified(&mut self, place: Place, copy: Unverified<[u8; LINE]>) -> [u8; LINE] {
        if C::USE_WHAT_WAS_VERIFIED { copy.open() } else { self.memory.read(place) }
    }
}

impl<M, C, const LINE: usize> OnBytes for BytesUnit<M, C, LINE> {}

impl<M: OffChip<[u8; LINE]>, C: Checks, const LINE: usize> Port for BytesUnit<M, C, LINE> {
    type Line = [u8; LINE];
    type Mac = BlockMac;
    type Checks = C;

    fn shape(&self) -> Shape {
        self.shape
    }

    fn fetch_line(&mut self, place: LinePlace, (): ()) -> Unverified<[u8; LINE]> {
        Unverified::from_untrusted(self.memory.read(self.wiring.covered.place(place)))
    }

    fn store_line(&mut self, place: LinePlace, line: &[u8; LINE]) {
        self.memory.write(self.wiring.covered.place(place), line);
    }

    /// The position is bound by the slot in the parent; the level is not, so it goes into the MAC.
    fn line_mac(&mut self, place: LinePlace, line: &[u8; LINE]) -> BlockMac {
        widened(self.node_mac.mac(None, &[&[place.level], line]).as_bytes())
    }

    fn release_line(
        &mut self,
        place: LinePlace,
        line: Unverified<[u8; LINE]>,
        expected: &BlockMac,
    ) -> Result<[u8; LINE], Violation> {
        let parts: [&[u8]; 2] = [&[place.level], line.for_mac()];
        let kept = &expected[..self.shape.mac_bytes];
        let checked = if place.level == 0 { C::VERIFY_LEAVES } else { C::VERIFY_NODES };
        if checked && !self.node_mac.verify(None, &parts, kept) {
            return Err(Violation::MetadataLine { level: place.level, index: place.index });
        }
        Ok(self.verified(self.wiring.covered.place(place), line))
    }
}

fn widened(mac: &[u8]) -> BlockMac {
    let mut wide = [0; MAX_MAC_BYTES];
    wide[..mac.len()].copy_from_slice(mac);
    wide
}

impl<M: OffChip<[u8; LINE]>, C: Checks, const LINE: usize> UnitPort for BytesUnit<M, C, LINE> {
    fn mac_part(&self, place: Place) -> Part {
        let (place, at) = self.mac_place(place);
        Part::of(place, at)
    }

    fn line_place(&self, line: LinePlace) -> Place {
        self.wiring.covered.place(line)
    }

    fn fetch(&mut self, place: Place, (): ()) -> Unverified<[u8; LINE]> {
        Unverified::from_untrusted(self.memory.read(place))
    }

    fn store(&mut self, place: Place, block: &[u8; LINE]) {
        self.memory.write(place, block);
    }

    fn fetch_mac(&mut self, place: Place, (): ()) -> Unverified<BlockMac> {
        let (place, at) = self.mac_place(place);
        Unverified::from_untrusted(widened(&self.memory.read(place)[at]))
    }

    /// The other MACs of the line stay as they are, unlooked at: each is checked when it is used.
    fn store_mac(&mut self, place: Place, mac: &BlockMac) {
        let (place, at) = self.mac_place(place);
        self.memory.write_part(place, at.start, &mac[..at.len()]);
    }

    fn select_key(&mut self, key: DataKey) {
        if key != self.keys.owner() {
            self.keys = self.keys.renewed(&self.secret, key, self.epoch);
        }
    }

    fn pad(&mut self, direction: Direction, seed: Seed, (): ()) -> [u8; LINE] {
        let mut pad = [0; LINE];
        let width = self.keys.pad.block_bytes();
        let mut chunk_seed = seed.base;
        for chunk in pad.chunks_exact_mut(width) {
            chunk.copy_from_slice(&chunk_seed.to_be_bytes()[16 - width..]);
            if let (Direction::Encrypt, Some(log)) = (direction, &mut self.used.log) {
                log.push((self.keys.number(), chunk_seed));
            }
            chunk_seed = chunk_seed.wrapping_add(seed.step);
        }
        self.keys.pad.encrypt_blocks(&mut pad);
        pad
    }

    /// With a tweak: each chunk XOR the encrypted address of the chunk, before and after the
    /// cipher, so that neither equal contents nor contents that differ as their addresses do look
    /// alike.
    fn cipher(
        &mut self,
        direction: Direction,
        tweak: Option<u64>,
        block: &[u8; LINE],
    ) -> [u8; LINE] {
        let mut out = *block;
        let mut mask = [0; LINE];
        if let Some(address) = tweak {
            let width = self.keys.tweak.block_bytes();
            for (number, chunk) in mask.chunks_exact_mut(width).enumerate() {
                // Chunks of a line of several blocks go on with the addresses of its other blocks.
                let chunk_address = (u128::from(address) << 3) + number as u128;
                chunk.copy_from_slice(&chunk_address.to_be_bytes()[16 - width..]);
            }
            self.keys.tweak.encrypt_blocks(&mut mask);
        }
        let mix = |block: &mut [u8; LINE]| {
            for (byte, mask) in block.iter_mut().zip(&mask) {
                *byte ^= mask;
            }
        };
        mix(&mut out);
        match direction {
            Direction::Encrypt => self.keys.direct.encrypt_blocks(&mut out),
            Direction::Decrypt => self.keys.direct.decrypt_blocks(&mut out),
        }
        mix(&mut out);
        out
    }

    fn mac(&mut self, _: Place, binding: &Binding, block: &[u8; LINE]) -> BlockMac {
        if let Some(nonce) = self.block_macs.nonce(*binding) {
            self.used.note_mac(KeyUse::Data, self.epoch, nonce);
        }
        self.block_macs.mac(*binding, block)
    }

    fn release(
        &mut self,
        place: Place,
        binding: &Binding,
        block: Unverified<[u8; LINE]>,
        kept: Unverified<BlockMac>,
    ) -> Result<[u8; LINE], Violation> {
        if !C::VERIFY_LEAVES {
            return Ok(block.open());
        }
        match self.block_macs.fit(*binding, block.for_mac(), kept.for_mac()) {
            Fit::No => Err(Violation::BlockMac { place: place.named() }),
            Fit::AsTheyAre => Ok(self.verified(place, block)),
            Fit::Repaired(opened) => {
                self.corrections.blocks += 1;
                self.corrections.data_bits += u64::from(opened.flips.count());
                self.corrections.words += u64::from(opened.word_repaired);
                // [u8; LINE] and word as they were sealed: no new MAC, so no nonce is used again.
                let line = MemoryLine::beginning_with(&opened.block);
                self.store(place, &line);
                self.store_mac(place, &widened(&opened.word.to_bytes()));
                Ok(line)
            }
        }
    }

    fn looks_damaged(&mut self, place: Place, (): ()) -> bool {
        let (block, kept) = (self.fetch(place, ()), self.fetch_mac(place, ()));
        self.block_macs.looks_damaged::<C, _>(block.for_mac(), kept.for_mac())
    }

    fn corrections(&self) -> Corrections {
        self.corrections
    }

    fn release_unchecked(&mut self, block: Unverified<[u8; LINE]>) -> [u8; LINE] {
        block.open()
    }

    /// The MAC's key too, if the MAC takes its nonces from the seeds that now begin anew.
    fn renew_key(&mut self) {
        self.epoch += 1;
        let data_mac = self.algorithms.data_mac;
        self.keys = self.keys.renewed(&self.secret, self.keys.owner(), self.epoch);
        if data_mac.needs_nonce() {
            let placement = self.wiring.mac_placement;
            self.block_macs = BlockMacs::new(data_mac, placement, &self.secret, self.epoch)
                .expect("the same kind of MAC takes a key again");
        }
    }
}
