//! Seeds: what the block cipher is given, so that no pad is ever used twice.
//!
//! A seed must differ between any two encryptions under one key: between blocks (*spatial*) and
//! between versions of one block (*temporal* uniqueness; AISE/BMT, section 4.1). What it is
//! composed of decides which services of an operating system a scheme can live with (AISE/BMT,
//! Table 1).

use super::place::BlockAddress;
use super::{BLOCK_BYTES, PAGE_BLOCKS};
use casemate_core::violation::Violation;

/// The seeds of a block's chunks: `base`, `base + step`, `base + 2 step`, ...
///
/// The base is different for any two (block, version) that a scheme promises to tell apart, so it
/// is also what a MAC binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seed {
    /// The first chunk's seed.
    pub base: u128,
    /// From one chunk's seed to the next.
    pub step: u128,
}

/// What seeds are composed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeedScheme {
    /// A global counter's value and the chunk's number (AISE/BMT, section 4.1).
    GlobalCounter,
    /// Physical address and the block's counter.
    PhysicalAddress,
    /// Virtual address and the block's counter.
    VirtualAddress,
    /// Process, virtual address and the block's counter.
    ProcessAndVirtualAddress,
    /// AISE: logical page identifier, place in the page, the block's minor counter (section 4.3,
    /// Figure 3).
    LogicalPage,
}

/// Bits of a chunk's number in a block: one of 64 bytes has four chunks of 16 bytes.
const BLOCK_CHUNK_BITS: u32 = 2;
/// Bits of a counter beside an address.
const COUNTER_BITS: u32 = 64;
/// Bits of a virtual block number: 48-bit addresses of bytes, 64 bytes a block.
const VIRTUAL_BITS: u32 = 42;
/// Bits of a process identifier.
const PROCESS_BITS: u32 = 16;
/// Bits of an AISE minor counter.
const MINOR_BITS: u32 = 7;
/// Bits of a block's number in its page.
const OFFSET_BITS: u32 = PAGE_BLOCKS.trailing_zeros();
/// Zeros at the end of an AISE seed: 128 bits less LPID, block, counter and chunk.
const AISE_PADDING_BITS: u32 = 128 - 64 - OFFSET_BITS - MINOR_BITS - BLOCK_CHUNK_BITS;

impl SeedScheme {
    /// What seeds are composed of, in words for tables.
    pub const fn words(self) -> &'static str {
        match self {
            SeedScheme::GlobalCounter => "global counter",
            SeedScheme::PhysicalAddress => "physical address, block counter",
            SeedScheme::VirtualAddress => "virtual address, block counter",
            SeedScheme::ProcessAndVirtualAddress => "process, virtual address, block counter",
            SeedScheme::LogicalPage => "LPID, block in page, minor counter",
        }
    }

    /// The seed of a line whose counter has this value, and which has so many blocks: a power of
    /// two. Its chunks are numbered through; a logical page has no room for more than a block's.
    ///
    /// For [`LogicalPage`](SeedScheme::LogicalPage) the value is LPID and minor counter in one:
    /// `lpid << 7 | minor`.
    ///
    /// # Errors
    /// [`Violation::SeedsExhausted`] if a part does not fit its bits: to cut it off would use a
    /// seed twice.
    pub fn seed(
        self,
        at: BlockAddress,
        line_blocks: u64,
        counter: u128,
    ) -> Result<Seed, Violation> {
        let chunk_bits = BLOCK_CHUNK_BITS + line_blocks.trailing_zeros();
        let field = |value: u128, bits: u32| {
            if value >> bits == 0 { Ok(value) } else { Err(Violation::SeedsExhausted) }
        };
        let counted = || Ok::<_, Violation>(field(counter, COUNTER_BITS)? << chunk_bits);
        let below = COUNTER_BITS + chunk_bits;
        let base = match self {
            SeedScheme::GlobalCounter => counted()?,
            SeedScheme::PhysicalAddress => {
                field(at.physical().into(), 128 - below)? << below | counted()?
            }
            SeedScheme::VirtualAddress => {
                field(at.virtual_block().into(), VIRTUAL_BITS)? << below | counted()?
            }
            SeedScheme::ProcessAndVirtualAddress => {
                let process = field(at.page.process.into(), PROCESS_BITS)?;
                let block = field(at.virtual_block().into(), VIRTUAL_BITS)?;
                process << (below + VIRTUAL_BITS) | block << below | counted()?
            }
            SeedScheme::LogicalPage => {
                let lpid = field(counter >> MINOR_BITS, 64)?;
                let minor = counter & ((1 << MINOR_BITS) - 1);
                let page_offset = field(at.block.into(), OFFSET_BITS)?;
                ((lpid << OFFSET_BITS | page_offset) << MINOR_BITS | minor)
                    << (BLOCK_CHUNK_BITS + AISE_PADDING_BITS)
            }
        };
        let step = match self {
            SeedScheme::LogicalPage => 1 << AISE_PADDING_BITS,
            _ => 1,
        };
        Ok(Seed { base, step })
    }
}

/// The seed of a block of instructions (OTP/SNC, section 3.4.1): its virtual address. Instructions
/// are never written back, so nothing has to tell versions of them apart; their key is not that of
/// data.
pub fn instruction_seed(virtual_byte_address: u64) -> u128 {
    virtual_byte_address.into()
}

/// In what the addresses of OTP/SNC's seeds are counted: equation 5 adds a sequence number to an
/// address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressUnit {
    /// Bytes, as the equation is printed. Then a line with sequence number 64 has the pad of the
    /// next line with number 0. Only to show that; executed by tests only.
    Byte,
    /// The 2^13th part of a byte: so many that no sequence number (16 bits) reaches the next block
    /// of a cipher (at least 2^3 bytes). Then no two sums are the same.
    Fine,
}

/// Bits of a sequence number (OTP/SNC, section 5.1).
const SEQUENCE_BITS: u32 = 16;
/// Of the address of a cipher's block, of 8 bytes or more, so many bits are zero.
const LEAST_CIPHER_BITS: u32 = 3;
/// Bits of a byte's virtual address.
const ADDRESS_BITS: u32 = VIRTUAL_BITS + BLOCK_BYTES.trailing_zeros();

impl AddressUnit {
    fn shift(self) -> u32 {
        match self {
            AddressUnit::Byte => 0,
            AddressUnit::Fine => SEQUENCE_BITS - LEAST_CIPHER_BITS,
        }
    }

    /// The seeds of a line's chunks (OTP/SNC, equations 5 and 7; Algorithm 1, lines 5 and 18): the
    /// virtual address of each of the cipher's blocks, plus the line's sequence number. With
    /// [`Fine`](Self::Fine) a seed has 61 bits, so that it fits a block of DES.
    ///
    /// # Errors
    /// [`Violation::SeedsExhausted`] if an address has more than 48 bits.
    pub fn seed(
        self,
        virtual_byte_address: u64,
        sequence_number: u16,
        cipher_bytes: u64,
    ) -> Result<Seed, Violation> {
        if virtual_byte_address >> ADDRESS_BITS != 0 {
            return Err(Violation::SeedsExhausted);
        }
        let base = (u128::from(virtual_byte_address) << self.shift()) + u128::from(sequence_number);
        Ok(Seed { base, step: u128::from(cipher_bytes) << self.shift() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::PageAddress;
    use super::*;

    /// AISE/BMT, Figure 3: 64-bit LPID, 6-bit block, 7-bit counter, 2-bit chunk, zeros.
    #[test]
    fn aise_seeds_are_laid_out_as_figure_3_says() {
        let at = PageAddress { frame: 99, virtual_page: 5, process: 1 }.block(0x2a);
        let seed = SeedScheme::LogicalPage.seed(at, 1, 0x0123_4567_89ab_cdef << 7 | 0x55).unwrap();
        let third = seed.base + 2 * seed.step;
        let bits = format!("{third:0128b}");
        assert_eq!(&bits[..64], format!("{:064b}", 0x0123_4567_89ab_cdef_u64));
        assert_eq!(&bits[64..70], "101010");
        assert_eq!(&bits[70..77], "1010101");
        assert_eq!(&bits[77..79], "10");
        assert_eq!(&bits[79..], "0".repeat(49));
    }

    #[test]
    fn aise_seeds_do_not_depend_on_addresses() {
        let here = PageAddress { frame: 1, virtual_page: 2, process: 3 }.block(4);
        let there = PageAddress { frame: 5, virtual_page: 6, process: 7 }.block(4);
        let seed = |at| SeedScheme::LogicalPage.seed(at, 1, 12345).unwrap();
        assert_eq!(seed(here), seed(there));
    }

    #[test]
    fn a_part_that_does_not_fit_is_refused() {
        let at = PageAddress::identical(1).block(0);
        for scheme in [SeedScheme::GlobalCounter, SeedScheme::PhysicalAddress] {
            assert_eq!(scheme.seed(at, 1, 1 << 64), Err(Violation::SeedsExhausted));
            assert!(scheme.seed(at, 1, (1 << 64) - 1).is_ok());
        }
        assert_eq!(SeedScheme::LogicalPage.seed(at, 1, 1 << 71), Err(Violation::SeedsExhausted));
        let far = PageAddress { frame: 0, virtual_page: 1 << 36, process: 0 }.block(0);
        assert_eq!(SeedScheme::VirtualAddress.seed(far, 1, 0), Err(Violation::SeedsExhausted));
        let process = PageAddress { frame: 0, virtual_page: 0, process: 1 << 16 }.block(0);
        assert_eq!(
            SeedScheme::ProcessAndVirtualAddress.seed(process, 1, 0),
            Err(Violation::SeedsExhausted)
        );
    }
}
