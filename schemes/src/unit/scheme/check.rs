//! Which parts of a scheme go together.

use super::{
    Algorithms, CipherKind, EncryptionKind, IntegrityKind, LINE_BLOCKS, MacPlacement, PAGE_BLOCKS,
    Scheme, SeedScheme, UnitError, Violation,
};

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
}
