//! Schemes by name: which encryption meets which integrity scheme, and the unit that comes of it.

use super::anatomy::Anatomy;
use super::bytes::{Algorithms, BytesUnit, Covered, UnitError, UnitSecret};
use super::encryption::{
    CounterMode, CountersOfBlocks, Direct, Encryption, GlobalCounter, NoEncryption,
};
use super::integrity::{AddressedMac, Bonsai, Integrity, MerkleTree, NoIntegrity};
use super::memory::OffChip;
use super::place::{BlockAddress, PageAddress, Place, Region};
use super::port::UnitPort;
use super::seed::SeedScheme;
use super::{BLOCK_BYTES, Block, PAGE_BLOCKS};
use crate::checks::Checks;
use crate::counters::Organisation;
use crate::primitives::{CipherKind, MacKind};
use crate::violation::Violation;

/// How contents are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EncryptionKind {
    /// Not at all.
    None,
    /// Through the cipher itself, with the address mixed in or not.
    Direct {
        /// Whether it is.
        addressed: bool,
    },
    /// XOR a pad, made of one counter for all blocks.
    GlobalCounter {
        /// Bits of the counter.
        bits: u32,
    },
    /// XOR a pad, made of a counter for each block.
    CounterMode {
        /// What seeds are composed of.
        seeds: SeedScheme,
        /// How the counters are kept.
        organisation: Organisation,
    },
}

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntegrityKind {
    /// Not at all.
    None,
    /// A MAC over contents and address.
    AddressedMac,
    /// A Merkle tree over data and counters.
    MerkleTree,
    /// A Merkle tree over the counters, MACs over data and counter.
    Bonsai,
}

/// A protection scheme, as a user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// How contents are hidden.
    pub encryption: EncryptionKind,
    /// How changes are noticed.
    pub integrity: IntegrityKind,
    /// What it is computed with.
    pub algorithms: Algorithms,
}

/// How large a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitSize {
    /// Page frames of memory.
    pub frames: u64,
    /// Bytes of on-chip cache for counters and nodes.
    pub metadata_cache_bytes: usize,
}

/// Two parts of a scheme that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// Algorithms that do not go together.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A Bonsai tree covers counters, and there are none, or they are not a version of a block.
    #[error("a Bonsai tree protects data through its counters, and this encryption has none")]
    BonsaiWithoutCounters,
    /// AISE's identifiers and counters share a line; neither goes without the other.
    #[error(
        "logical page seeds need counter lines with a logical page identifier, and these only them"
    )]
    LogicalPageNeedsItsLine,
    /// A counter line over more than a page, under seeds that know virtual pages.
    #[error("a counter line over several pages needs seeds that know no virtual page")]
    LineOverSeveralPages,
}

impl Scheme {
    /// A unit that runs this scheme on bytes.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn on_bytes<M: OffChip, C: Checks>(
        &self,
        memory: M,
        size: UnitSize,
        secret: &UnitSecret,
    ) -> Result<ProtectionUnit<BytesUnit<M, C>>, SchemeError> {
        self.check()?;
        let data_blocks = size.frames * PAGE_BLOCKS;
        let encryption = self.encryption.build(data_blocks);
        let counter_lines = match &encryption {
            AnyEncryption::CounterMode(mode) => data_blocks.div_ceil(mode.slots()),
            _ => 0,
        };
        let covered = Covered(match self.integrity {
            IntegrityKind::MerkleTree => {
                vec![(Region::Data, data_blocks), (Region::Counters, counter_lines)]
            }
            _ => vec![(Region::Counters, counter_lines)],
        });
        if self.integrity == IntegrityKind::AddressedMac && self.algorithms.data_mac.needs_nonce() {
            return Err(UnitError::NeedsNonce(self.algorithms.data_mac).into());
        }
        let port = BytesUnit::new(memory, self.algorithms, covered, secret)?;
        let integrity = self.integrity.build(port, data_blocks, size.metadata_cache_bytes);
        let mut unit = ProtectionUnit { encryption, integrity };
        unit.boot(size.frames, counter_lines).map_err(|_| SchemeError::BonsaiWithoutCounters)?;
        Ok(unit)
    }

    fn check(&self) -> Result<(), SchemeError> {
        let counted = matches!(
            self.encryption,
            EncryptionKind::CounterMode { .. } | EncryptionKind::GlobalCounter { .. }
        );
        if self.integrity == IntegrityKind::Bonsai && !counted {
            return Err(SchemeError::BonsaiWithoutCounters);
        }
        if let EncryptionKind::CounterMode { seeds, organisation } = self.encryption {
            if (seeds == SeedScheme::LogicalPage) != (organisation == Organisation::Aise) {
                return Err(SchemeError::LogicalPageNeedsItsLine);
            }
            let several = organisation.slots() as u64 > PAGE_BLOCKS;
            if several && seeds != SeedScheme::PhysicalAddress {
                return Err(SchemeError::LineOverSeveralPages);
            }
        }
        Ok(())
    }
}

impl EncryptionKind {
    fn build(self, data_blocks: u64) -> AnyEncryption {
        match self {
            EncryptionKind::None => AnyEncryption::None(NoEncryption),
            EncryptionKind::Direct { addressed } => AnyEncryption::Direct(Direct { addressed }),
            EncryptionKind::GlobalCounter { bits } => {
                let counters = CountersOfBlocks::Global(GlobalCounter::new(bits));
                AnyEncryption::CounterMode(CounterMode::new(
                    counters,
                    SeedScheme::GlobalCounter,
                    data_blocks,
                ))
            }
            EncryptionKind::CounterMode { seeds, organisation } => {
                let counters = CountersOfBlocks::PerBlock(organisation);
                AnyEncryption::CounterMode(CounterMode::new(counters, seeds, data_blocks))
            }
        }
    }
}

impl IntegrityKind {
    fn build<P: UnitPort>(self, port: P, data_blocks: u64, cache_bytes: usize) -> AnyIntegrity<P> {
        match self {
            IntegrityKind::None => AnyIntegrity::None(NoIntegrity::new(port, cache_bytes)),
            IntegrityKind::AddressedMac => {
                AnyIntegrity::AddressedMac(AddressedMac::new(port, cache_bytes))
            }
            IntegrityKind::MerkleTree => {
                AnyIntegrity::MerkleTree(MerkleTree::new(port, data_blocks, cache_bytes))
            }
            IntegrityKind::Bonsai => AnyIntegrity::Bonsai(Bonsai::new(port, cache_bytes)),
        }
    }
}

/// The encryption of a unit.
pub enum AnyEncryption {
    /// None.
    None(NoEncryption),
    /// Direct.
    Direct(Direct),
    /// Counter mode.
    CounterMode(CounterMode),
}

/// The integrity scheme of a unit.
pub enum AnyIntegrity<P: UnitPort> {
    /// None.
    None(NoIntegrity<P>),
    /// Addressed MAC.
    AddressedMac(AddressedMac<P>),
    /// Merkle tree.
    MerkleTree(MerkleTree<P>),
    /// Bonsai Merkle tree.
    Bonsai(Bonsai<P>),
}

/// Calls the same method on whichever integrity scheme it is.
macro_rules! with_integrity {
    ($any:expr, $integrity:ident => $call:expr) => {
        match $any {
            AnyIntegrity::None($integrity) => $call,
            AnyIntegrity::AddressedMac($integrity) => $call,
            AnyIntegrity::MerkleTree($integrity) => $call,
            AnyIntegrity::Bonsai($integrity) => $call,
        }
    };
}

/// A protection unit: blocks in and out of untrusted memory.
///
/// It is asked by one cache: whoever reads a block that the cache holds gets what memory has.
pub struct ProtectionUnit<P: UnitPort> {
    encryption: AnyEncryption,
    integrity: AnyIntegrity<P>,
}

impl<P: UnitPort> ProtectionUnit<P> {
    /// A block's plaintext: what was last written there.
    ///
    /// # Errors
    /// [`Violation`] if the integrity scheme finds that untrusted memory was changed.
    pub fn read(&mut self, at: BlockAddress) -> Result<P::V<Block>, Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => {
            let from = integrity.port().now();
            match encryption {
                AnyEncryption::None(scheme) => scheme.read(integrity, at, from),
                AnyEncryption::Direct(scheme) => scheme.read(integrity, at, from),
                AnyEncryption::CounterMode(scheme) => scheme.read(integrity, at, from),
            }
        })
    }

    /// Puts a block's plaintext into untrusted memory, encrypted.
    ///
    /// # Errors
    /// As [`read`](Self::read): to write a block, counters and nodes are read.
    pub fn write(&mut self, at: BlockAddress, plain: &P::V<Block>) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        with_integrity!(&mut self.integrity, integrity => match encryption {
            AnyEncryption::None(scheme) => scheme.write(integrity, at, plain),
            AnyEncryption::Direct(scheme) => scheme.write(integrity, at, plain),
            AnyEncryption::CounterMode(scheme) => scheme.write(integrity, at, plain),
        })
    }

    /// A page of zeros for a new owner.
    pub fn allocate(&mut self, page: PageAddress) -> Result<(), Violation> {
        let encryption = &mut self.encryption;
        let now = with_integrity!(&mut self.integrity, integrity => {
            match encryption {
                AnyEncryption::None(scheme) => scheme.allocate(integrity, page)?,
                AnyEncryption::Direct(scheme) => scheme.allocate(integrity, page)?,
                AnyEncryption::CounterMode(scheme) => scheme.allocate(integrity, page)?,
            }
            integrity.port().now()
        });
        let zeros = P::carry([0; BLOCK_BYTES], now);
        page.blocks().try_for_each(|at| self.write(at, &zeros))
    }

    /// Puts all that is on chip into memory and forgets it.
    pub fn flush(&mut self) -> Result<(), Violation> {
        with_integrity!(&mut self.integrity, integrity => integrity.flush())
    }

    /// The world that the unit asks.
    pub fn port_mut(&mut self) -> &mut P {
        with_integrity!(&mut self.integrity, integrity => integrity.port())
    }

    /// Where all that belongs to a block lies in untrusted memory.
    pub fn anatomy(&mut self, at: BlockAddress) -> Anatomy {
        let data = Place::new(Region::Data, at.physical());
        let counter = match &self.encryption {
            AnyEncryption::CounterMode(mode) => Some(mode.counter_at(at).0),
            _ => None,
        };
        with_integrity!(&mut self.integrity, integrity => integrity.anatomy(data, counter))
    }

    /// Blocks encrypted anew so far because a counter overflowed.
    pub fn reencrypted_blocks(&self) -> u64 {
        match &self.encryption {
            AnyEncryption::CounterMode(mode) => mode.reencrypted_blocks,
            _ => 0,
        }
    }

    /// Brings all of memory under protection, as a machine does when it is switched on.
    fn boot(&mut self, frames: u64, counter_lines: u64) -> Result<(), Violation> {
        with_integrity!(&mut self.integrity, integrity => integrity.initialise(counter_lines)?);
        (0..frames).try_for_each(|frame| self.allocate(PageAddress::identical(frame)))
    }
}

/// What the papers' comparisons and today's machines would choose.
impl Algorithms {
    /// AISE/BMT, section 6: AES, HMAC based on SHA-1, 128 bits.
    pub const AISE_BMT: Algorithms = Algorithms {
        cipher: CipherKind::Aes128,
        data_mac: MacKind::HmacSha1 { bits: 128 },
        node_mac: MacKind::HmacSha1 { bits: 128 },
    };
}
