//! What is asked of a protection unit that keeps the bytes.

use casemate_core::checks::Checks;
use casemate_core::violation::Violation;
use casemate_schemes::unit::bytes::BytesUnit;
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::{Block, BlockAddress, PageAddress, ProtectionUnit};

/// A memory of blocks that is protected, as a cache above it sees it. A canary is a decorator
/// around it.
pub trait BlockUnit {
    /// Brings a page of zeros under protection.
    ///
    /// # Errors
    /// The unit found that memory was changed.
    fn allocate(&mut self, page: PageAddress) -> Result<(), Violation>;

    /// A block's plaintext, decrypted and verified as the scheme does it.
    ///
    /// # Errors
    /// The unit found that memory was changed.
    fn read(&mut self, at: BlockAddress) -> Result<Block, Violation>;

    /// Takes a block back that was changed.
    ///
    /// # Errors
    /// The unit found that memory was changed.
    fn write(&mut self, at: BlockAddress, plain: &Block) -> Result<(), Violation>;

    /// Is told of a block that leaves the chip unchanged.
    ///
    /// # Errors
    /// The unit found that memory was changed.
    fn drop_clean(&mut self, at: BlockAddress, plain: &Block) -> Result<(), Violation>;

    /// Verifies what was read since the last check, in schemes that do so at intervals.
    ///
    /// # Errors
    /// The unit found that memory was changed.
    fn check(&mut self) -> Result<(), Violation>;
}

impl<M: OffChip, C: Checks> BlockUnit for ProtectionUnit<BytesUnit<M, C>> {
    fn allocate(&mut self, page: PageAddress) -> Result<(), Violation> {
        ProtectionUnit::allocate(self, page)
    }

    fn read(&mut self, at: BlockAddress) -> Result<Block, Violation> {
        ProtectionUnit::read(self, at)
    }

    fn write(&mut self, at: BlockAddress, plain: &Block) -> Result<(), Violation> {
        ProtectionUnit::write(self, at, plain)
    }

    fn drop_clean(&mut self, at: BlockAddress, plain: &Block) -> Result<(), Violation> {
        ProtectionUnit::drop_clean(self, at, plain)
    }

    fn check(&mut self) -> Result<(), Violation> {
        ProtectionUnit::check(self)
    }
}
