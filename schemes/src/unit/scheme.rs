//! Schemes by name: which encryption meets which integrity scheme, and what does not go together.

mod check;

use super::associative::Shape;
use super::bytes::{Algorithms, BytesUnit, Covered, UnitError, UnitSecret, Wiring};
use super::encryption::{
    CounterMode, CountersOfBlocks, Direct, GlobalCounter, NoEncryption, NumberLayout, OneTimePad,
    OneTimePadKind,
};
pub use super::integrity::IntegrityKind;
use super::memory::OffChip;
use super::place::{MacPlacement, Region};
use super::port::UnitPort;
use super::protection_unit::{AnyEncryption, ProtectionUnit};
use super::seed::SeedScheme;
use super::time_stamps::LHASH_CACHE;
use super::{BLOCK_BYTES, PAGE_BLOCKS};
use crate::counters::Organisation;
use crate::primitives::{CipherKind, MacKind};
use casemate_core::checks::Checks;
pub use casemate_core::node_cache::{Capacity, Residency};
use casemate_core::port::FixedBytes;
use casemate_core::violation::Violation;
pub use check::SchemeError;

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
    /// XOR a pad, made of virtual address and sequence number; the numbers are cached on chip.
    OneTimePad(OneTimePadKind),
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
    /// Where the MACs of data blocks lie.
    pub mac_placement: MacPlacement,
    /// Blocks of a line: what is encrypted and verified at once, with one MAC, counter, time stamp
    /// or sequence number. 1, 2 or 4.
    pub line_blocks: u64,
}

/// Blocks that a line may have.
pub const LINE_BLOCKS: [u64; 3] = [1, 2, 4];

/// How large a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitSize {
    /// Page frames of memory.
    pub frames: u64,
    /// The on-chip cache for counters and nodes.
    pub metadata_cache: Capacity,
    /// Bytes on chip for the top of a tree. With 0 that is one node of hashes, or one counter.
    pub on_chip_tree_bytes: usize,
    /// Words of time stamps that a log hash keeps on chip, at least one.
    pub time_stamp_cache: Shape,
}

impl UnitSize {
    /// So many frames, and about so many bytes for counters and nodes. All else is as small as it
    /// can be, but for the time stamp cache, which is LHash's.
    pub const fn new(frames: u64, metadata_cache_bytes: usize) -> UnitSize {
        UnitSize {
            frames,
            metadata_cache: Capacity::Bytes(metadata_cache_bytes),
            on_chip_tree_bytes: 0,
            time_stamp_cache: LHASH_CACHE,
        }
    }

    /// What Delta/ECC, section 5.1, takes from SGX for the top of a tree.
    pub const SGX_ON_CHIP_TREE_BYTES: usize = 3 << 10;
}

/// How a unit brings lines of metadata on chip, verifies them and takes them out. What a scheme
/// costs with one walk says nothing of a scheme that was attacked with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// The scheme that verifies them.
    pub integrity: IntegrityKind,
    /// Who decides which stay.
    pub residency: Residency,
}

impl Scheme {
    /// How a unit of this size brings metadata on chip.
    pub fn walk(&self, size: UnitSize) -> Walk {
        Walk { integrity: self.integrity, residency: size.metadata_cache.residency() }
    }

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
        let mut unit = self.without_pages(memory, size, secret)?;
        unit.boot(size.frames).map_err(SchemeError::Boot)?;
        Ok(unit)
    }

    /// The same, but no page is allocated yet. The caller allocates one before using it, or writes
    /// a block before reading it: to read what was never written is a violation.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn without_pages<M: OffChip, C: Checks>(
        &self,
        memory: M,
        size: UnitSize,
        secret: &UnitSecret,
    ) -> Result<ProtectionUnit<BytesUnit<M, C>>, SchemeError> {
        self.in_lines(memory, size, secret)
    }

    /// The same, of lines of so many bytes. The scheme must have the same.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn in_lines<M: OffChip<[u8; LINE]>, C: Checks, const LINE: usize>(
        &self,
        memory: M,
        size: UnitSize,
        secret: &UnitSecret,
    ) -> Result<ProtectionUnit<BytesUnit<M, C, LINE>>, SchemeError> {
        let port = BytesUnit::new(memory, self.algorithms, self.wiring(size)?, secret)?;
        self.build_on(port, size)
    }

    /// A unit that runs this scheme on a port of any interpretation, which is [wired](Self::wiring)
    /// for it. No page is allocated yet.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn build_on<P: UnitPort>(
        &self,
        port: P,
        size: UnitSize,
    ) -> Result<ProtectionUnit<P>, SchemeError> {
        self.check()?;
        if P::Line::BYTES != self.line_bytes() {
            return Err(SchemeError::Line(P::Line::BYTES as u64));
        }
        let extent = self.extent(size.frames);
        let encryption = self.build_encryption(size.frames, extent.most_pages);
        let integrity = self.integrity.build(port, &extent, size)?;
        let mut unit = ProtectionUnit { encryption, integrity };
        unit.initialise(extent.counter_lines).map_err(SchemeError::Boot)?;
        Ok(unit)
    }

    /// How a port is wired for this scheme.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn wiring(&self, size: UnitSize) -> Result<Wiring, SchemeError> {
        self.check()?;
        let extent = self.extent(size.frames);
        let beside = match self.encryption {
            EncryptionKind::OneTimePad(_) if self.integrity.covers_sequence_numbers() => {
                (Region::SequenceNumbers, extent.most_pages * self.number_lines_of_page())
            }
            _ => (Region::Counters, extent.counter_lines),
        };
        let covered = Covered(self.covered(&extent, beside));
        Ok(Wiring {
            covered,
            on_chip_tree_bytes: size.on_chip_tree_bytes,
            mac_placement: self.mac_placement,
            counter_tree: matches!(self.integrity, IntegrityKind::CounterTree(_)),
        })
    }

    /// Lines of sequence numbers for so many frames.
    pub(super) fn sequence_number_lines(&self, frames: u64) -> u64 {
        match self.encryption {
            EncryptionKind::OneTimePad(_) => {
                self.sequence_pages(frames) * self.number_lines_of_page()
            }
            _ => 0,
        }
    }

    /// Bytes of a line.
    pub const fn line_bytes(&self) -> usize {
        self.line_blocks as usize * BLOCK_BYTES
    }

    /// Lines that the sequence numbers of a page take.
    fn number_lines_of_page(&self) -> u64 {
        NumberLayout { line_blocks: self.line_blocks }.lines_of_page()
    }

    /// What memory of so many frames takes.
    pub(super) fn extent(&self, frames: u64) -> Extent {
        let data_lines = frames * PAGE_BLOCKS / self.line_blocks;
        let most_pages = self.sequence_pages(frames);
        let encryption = self.build_encryption(frames, most_pages);
        Extent { data_lines, counter_lines: encryption.counter_lines(data_lines), most_pages }
    }

    /// Pages whose sequence numbers memory has room for. A tree has to know how much it covers, and
    /// where MACs of numbers lie: so many virtual pages for each frame, over the life of the keys.
    fn sequence_pages(&self, frames: u64) -> u64 {
        let has_macs = self.integrity == IntegrityKind::AddressedMac;
        if has_macs || self.integrity.covers_sequence_numbers() {
            64 * frames
        } else {
            u64::MAX / self.number_lines_of_page()
        }
    }

    fn build_encryption(&self, frames: u64, most_pages: u64) -> AnyEncryption {
        let blocks = (frames * PAGE_BLOCKS, self.line_blocks);
        self.encryption.build(blocks, self.algorithms.cipher, most_pages)
    }
}

impl EncryptionKind {
    /// What the cipher is given, in words for tables.
    pub const fn seeds(self) -> &'static str {
        match self {
            EncryptionKind::None => "none",
            EncryptionKind::Direct { addressed: false } => "none: the block itself",
            EncryptionKind::Direct { addressed: true } => "none: the block and its address",
            EncryptionKind::GlobalCounter { .. } => SeedScheme::GlobalCounter.words(),
            EncryptionKind::CounterMode { seeds, .. } => seeds.words(),
            EncryptionKind::OneTimePad(_) => "virtual address, sequence number",
        }
    }

    /// How counters are kept, by the name of the organisation; `None` where there are none in
    /// lines.
    pub const fn organisation(self) -> Option<Organisation> {
        match self {
            EncryptionKind::CounterMode { organisation, .. } => Some(organisation),
            _ => None,
        }
    }

    fn build(
        self,
        (data_blocks, line_blocks): (u64, u64),
        cipher: CipherKind,
        most_pages: u64,
    ) -> AnyEncryption {
        match self {
            EncryptionKind::OneTimePad(kind) => {
                let cipher_bytes = cipher.block_bytes();
                let pad = OneTimePad::new(kind, cipher_bytes, line_blocks, most_pages);
                AnyEncryption::OneTimePad(pad)
            }
            EncryptionKind::None => AnyEncryption::None(NoEncryption),
            EncryptionKind::Direct { addressed } => AnyEncryption::Direct(Direct { addressed }),
            EncryptionKind::GlobalCounter { bits } => {
                let counters = CountersOfBlocks::Global(GlobalCounter::new(bits));
                AnyEncryption::CounterMode(CounterMode::new(
                    counters,
                    SeedScheme::GlobalCounter,
                    data_blocks,
                    line_blocks,
                ))
            }
            EncryptionKind::CounterMode { seeds, organisation } => {
                let counters = CountersOfBlocks::PerBlock(organisation);
                let mode = CounterMode::new(counters, seeds, data_blocks, line_blocks);
                AnyEncryption::CounterMode(mode)
            }
        }
    }
}

/// What memory holds.
pub(super) struct Extent {
    /// Lines of data.
    pub data_lines: u64,
    /// Lines of counters.
    pub counter_lines: u64,
    /// Pages whose sequence numbers there is room for.
    pub most_pages: u64,
}

impl Extent {
    /// Data and counters, as a log hash counts them.
    pub fn chunks(&self) -> u64 {
        self.data_lines + self.counter_lines
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

    /// Today's default for data, AES-256 and AES-256-GMAC; nodes of hashes have no nonce to give.
    pub const GMAC: Algorithms = Algorithms {
        cipher: CipherKind::Aes256,
        data_mac: MacKind::Gmac256 { bits: 128 },
        node_mac: MacKind::HmacSha1 { bits: 128 },
    };

    /// SGX (Delta/ECC, section 3.2): 56-bit Carter-Wegman MACs for blocks and lines.
    pub const SGX: Algorithms = Algorithms {
        cipher: CipherKind::Aes128,
        data_mac: MacKind::SgxCarterWegman56,
        node_mac: MacKind::SgxCarterWegman56,
    };

    /// VAULT and Morphable Counters, whose lines have room for 64 bits of MAC. Which MAC is our
    /// choice.
    pub const GMAC64: Algorithms = Algorithms {
        cipher: CipherKind::Aes128,
        data_mac: MacKind::Gmac { bits: 64 },
        node_mac: MacKind::Gmac { bits: 64 },
    };

    /// Delta/ECC: SGX's MAC in the ECC bits, a Bonsai tree of arity eight over the counters. The
    /// paper does not name the MAC in its nodes; eight fit a line if they have 64 bits.
    pub const DELTA_ECC: Algorithms = Algorithms {
        cipher: CipherKind::Aes128,
        data_mac: MacKind::SgxCarterWegman56,
        node_mac: MacKind::HmacSha1 { bits: 64 },
    };
}
