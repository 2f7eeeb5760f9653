//! Schemes by name: which encryption meets which integrity scheme, and what does not go together.

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
    /// Level 0 of a counter tree are the counters of data.
    #[error("a counter tree begins with counters of physical blocks in its own organisation")]
    CounterTreeNeedsItsLeaves,
    /// A line of a counter tree has no room for its MAC.
    #[error("the lines of this counter tree have no room for such a MAC")]
    NoRoomForMac,
    /// Only blocks whose MAC binds a counter can have it in the ECC bits.
    #[error("MACs in the ECC bits need a tree over counters that they bind")]
    EccBitsWithoutCounters,
    /// A counter line over more than a page, under seeds that know virtual pages.
    #[error("a counter line over several pages needs seeds that know no virtual page")]
    LineOverSeveralPages,
    /// Seeds of 128 bits under a cipher with smaller blocks.
    #[error("seeds of counter mode have 128 bits, and the blocks of {0:?} fewer")]
    SeedsTooWide(CipherKind),
    /// A log hash counts data and counters, and evicted sequence numbers are neither.
    #[error("a log hash does not cover sequence numbers that leave the chip")]
    SequenceNumbersNotLogged,
    /// No cache has so many ways, or none.
    #[error("a Sequence Number Cache has at least one set of at least one way, all alike")]
    SequenceNumberCache,
    /// A log would be checked at every step, or never be done.
    #[error(
        "time stamps of {0} bits are too short for so many chunks, or, in a hierarchical log hash, \
         longer than 32"
    )]
    TimeStampBits(u32),
    /// A subspace that nodes cannot cover.
    #[error("a subspace must be a power of two and more than a node, not {0} bytes")]
    Subspace(u64),
    /// No unit has such lines, or this one has others.
    #[error("a line has 64, 128 or 256 bytes, the same for scheme and memory, not {0}")]
    Line(u64),
    /// A part whose format is that of one block.
    #[error("lines of {line_bytes} bytes do not go with {part}, whose format is for 64")]
    LineNeedsOneBlock {
        /// Bytes of a line.
        line_bytes: u64,
        /// Which part.
        part: &'static str,
    },
    /// The first pages could not be written: memory that is attacked already, or counters used up.
    #[error("memory could not be brought under protection: {0}")]
    Boot(Violation),
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

    /// Pages whose sequence numbers memory has room for. A tree has to know how much it covers: so
    /// many virtual pages for each frame, over the life of the keys.
    fn sequence_pages(&self, frames: u64) -> u64 {
        if self.integrity.covers_sequence_numbers() {
            64 * frames
        } else {
            u64::MAX / self.number_lines_of_page()
        }
    }

    /// Whether the parts can have lines of so many blocks. Counters that lie in a format for one
    /// page of 64 blocks, or beside their own MAC, and ECC bits, which are 64 for each block of 64
    /// bytes, cannot.
    fn check_line(&self) -> Result<(), SchemeError> {
        let line_bytes = self.line_bytes() as u64;
        if !LINE_BLOCKS.contains(&self.line_blocks) {
            return Err(SchemeError::Line(line_bytes));
        }
        if self.line_blocks == 1 {
            return Ok(());
        }
        let part = match (self.encryption, self.integrity, self.mac_placement) {
            (_, _, MacPlacement::EccBits) => "MACs in the ECC bits",
            (_, IntegrityKind::CounterTree(_), _) => "a tree of counters",
            (EncryptionKind::CounterMode { organisation, .. }, ..) => {
                match organisation.names_pages() {
                    true => "AISE's counters",
                    false => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        Err(SchemeError::LineNeedsOneBlock { line_bytes, part })
    }

    fn build_encryption(&self, frames: u64, most_pages: u64) -> AnyEncryption {
        let blocks = (frames * PAGE_BLOCKS, self.line_blocks);
        self.encryption.build(blocks, self.algorithms.cipher, most_pages)
    }

    fn check_seeds(&self) -> Result<(), SchemeError> {
        let cipher = self.algorithms.cipher;
        match self.encryption {
            EncryptionKind::CounterMode { .. } | EncryptionKind::GlobalCounter { .. }
                if cipher.block_bytes() < 16 =>
            {
                Err(SchemeError::SeedsTooWide(cipher))
            }
            EncryptionKind::OneTimePad(kind) => match self.integrity {
                _ if !kind.snc.is_sound() => Err(SchemeError::SequenceNumberCache),
                IntegrityKind::LogHash { .. } | IntegrityKind::HierarchicalLogHash { .. } => {
                    Err(SchemeError::SequenceNumbersNotLogged)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Whether the parts go together.
    ///
    /// # Errors
    /// If they do not.
    pub fn check(&self) -> Result<(), SchemeError> {
        self.check_line()?;
        self.check_seeds()?;
        let counted = matches!(
            self.encryption,
            EncryptionKind::CounterMode { .. } | EncryptionKind::GlobalCounter { .. }
        );
        if self.integrity == IntegrityKind::Bonsai && !counted {
            return Err(SchemeError::BonsaiWithoutCounters);
        }
        // Two processes' pages at one virtual address may have the same seed, as may two frames one
        // after the other: pads are given away then, but with such a nonce the MAC's key would be,
        // too.
        let repeats = matches!(
            self.encryption,
            EncryptionKind::CounterMode {
                seeds: SeedScheme::VirtualAddress | SeedScheme::ProcessAndVirtualAddress,
                ..
            }
        );
        let Algorithms { data_mac, .. } = self.algorithms;
        if self.integrity == IntegrityKind::Bonsai && repeats && data_mac.needs_nonce() {
            return Err(UnitError::NeedsNonce(data_mac).into());
        }
        let binds_no_version = self.integrity.has_block_macs() && !self.integrity.binds_seeds();
        if binds_no_version && data_mac.needs_nonce() {
            return Err(UnitError::NeedsNonce(data_mac).into());
        }
        if let IntegrityKind::CounterTree(kind) = self.integrity {
            let own = EncryptionKind::CounterMode {
                seeds: SeedScheme::PhysicalAddress,
                organisation: kind.leaf,
            };
            if self.encryption != own {
                return Err(SchemeError::CounterTreeNeedsItsLeaves);
            }
            let bits = kind.mac_bits().ok_or(SchemeError::NoRoomForMac)?;
            if usize::from(self.algorithms.node_mac.bits()) > bits {
                return Err(SchemeError::NoRoomForMac);
            }
        }
        if self.mac_placement == MacPlacement::EccBits && !self.integrity.binds_seeds() {
            return Err(SchemeError::EccBitsWithoutCounters);
        }
        if let EncryptionKind::CounterMode { seeds, organisation } = self.encryption {
            if (seeds == SeedScheme::LogicalPage) != organisation.names_pages() {
                return Err(SchemeError::LogicalPageNeedsItsLine);
            }
            let several = organisation.slots() as u64 * self.line_blocks > PAGE_BLOCKS;
            if several && seeds != SeedScheme::PhysicalAddress {
                return Err(SchemeError::LineOverSeveralPages);
            }
        }
        Ok(())
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
