//! Block ciphers: AES, and for comparison with the papers' own time DES and 3DES.
//!
//! OTP/SNC computes its pads with DES (and names AES as the other choice); AISE/BMT and Delta/ECC
//! assume AES. A 64-byte pad is four AES blocks, which
//! [`encrypt_blocks`](BlockCipher::encrypt_blocks) keeps in flight together.

use aes::cipher::{
    Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, InvalidLength, KeyInit,
};
use aes::{Aes128, Aes256};
use des::{Des, TdesEde3};

/// Which block cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherKind {
    /// DES (FIPS 46-3). Its 56-bit key is searched in hours: for historical comparison only.
    Des,
    /// Triple DES with three keys (SP 800-67), withdrawn: for historical comparison only.
    TripleDes,
    /// AES with a 128-bit key (FIPS 197).
    Aes128,
    /// AES with a 256-bit key (FIPS 197).
    Aes256,
}

impl CipherKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Des, Self::TripleDes, Self::Aes128, Self::Aes256];

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Des | Self::TripleDes => 8,
            Self::Aes128 | Self::Aes256 => 16,
        }
    }

    /// Bytes of a key. A DES key counts 8: one bit in each byte is parity and ignored.
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Des => 8,
            Self::TripleDes => 24,
            Self::Aes128 => 16,
            Self::Aes256 => 32,
        }
    }
}

/// A key has the wrong length for its cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key of {given} bytes for {kind:?}, which takes {}", kind.key_bytes())]
pub struct KeyLength {
    /// The cipher.
    pub kind: CipherKind,
    /// Bytes that were given.
    pub given: usize,
}

/// A block cipher with its key expanded. The round keys are wiped on drop.
pub struct BlockCipher {
    schedule: Schedule,
}

// Boxed, so that moving a cipher copies a pointer and leaves no round keys behind.
enum Schedule {
    Des(Box<Des>),
    TripleDes(Box<TdesEde3>),
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
}

/// Runs the same expression for each cipher's type.
macro_rules! each {
    ($schedule:expr, $cipher:ident => $body:expr) => {
        match $schedule {
            Schedule::Des($cipher) => $body,
            Schedule::TripleDes($cipher) => $body,
            Schedule::Aes128($cipher) => $body,
            Schedule::Aes256($cipher) => $body,
        }
    };
}

impl BlockCipher {
    /// Expands a key.
    pub fn new(kind: CipherKind, key: &[u8]) -> Result<Self, KeyLength> {
        fn expand<C: KeyInit>(key: &[u8]) -> Result<Box<C>, InvalidLength> {
            C::new_from_slice(key).map(Box::new)
        }
        match kind {
            CipherKind::Des => expand(key).map(Schedule::Des),
            CipherKind::TripleDes => expand(key).map(Schedule::TripleDes),
            CipherKind::Aes128 => expand(key).map(Schedule::Aes128),
            CipherKind::Aes256 => expand(key).map(Schedule::Aes256),
        }
        .map(|schedule| Self { schedule })
        .map_err(|_| KeyLength { kind, given: key.len() })
    }

    /// Which cipher this is.
    pub const fn kind(&self) -> CipherKind {
        match self.schedule {
            Schedule::Des(_) => CipherKind::Des,
            Schedule::TripleDes(_) => CipherKind::TripleDes,
            Schedule::Aes128(_) => CipherKind::Aes128,
            Schedule::Aes256(_) => CipherKind::Aes256,
        }
    }

    /// Bytes of a block.
    pub const fn block_bytes(&self) -> usize {
        self.kind().block_bytes()
    }

    /// Encrypts one block where it is.
    ///
    /// # Panics
    /// If `block` is not one block long.
    pub fn encrypt_block(&self, block: &mut [u8]) {
        each!(&self.schedule, cipher => cipher.encrypt_block(one_block(block)));
    }

    /// Decrypts one block where it is.
    ///
    /// # Panics
    /// If `block` is not one block long.
    pub fn decrypt_block(&self, block: &mut [u8]) {
        each!(&self.schedule, cipher => cipher.decrypt_block(one_block(block)));
    }

    /// Encrypts each block of `blocks` by itself, several at once where the processor can.
    ///
    /// # Panics
    /// If `blocks` does not consist of whole blocks.
    pub fn encrypt_blocks(&self, blocks: &mut [u8]) {
        each!(&self.schedule, cipher => cipher.encrypt_blocks(whole_blocks(blocks)));
    }

    /// Decrypts each block of `blocks` by itself, several at once where the processor can.
    ///
    /// # Panics
    /// If `blocks` does not consist of whole blocks.
    pub fn decrypt_blocks(&self, blocks: &mut [u8]) {
        each!(&self.schedule, cipher => cipher.decrypt_blocks(whole_blocks(blocks)));
    }
}

fn one_block<N: aes::cipher::array::ArraySize>(bytes: &mut [u8]) -> &mut Array<u8, N> {
    bytes.try_into().expect("the caller passes exactly one block")
}

fn whole_blocks<N: aes::cipher::array::ArraySize>(bytes: &mut [u8]) -> &mut [Array<u8, N>] {
    let (blocks, rest) = Array::slice_as_chunks_mut(bytes);
    assert!(rest.is_empty(), "the caller passes whole blocks");
    blocks
}

// The types' own block sizes are what `CipherKind` says.
const _: () = {
    assert!(size_of::<Block<Des>>() == CipherKind::Des.block_bytes());
    assert!(size_of::<Block<TdesEde3>>() == CipherKind::TripleDes.block_bytes());
    assert!(size_of::<Block<Aes128>>() == CipherKind::Aes128.block_bytes());
    assert!(size_of::<Block<Aes256>>() == CipherKind::Aes256.block_bytes());
};

/// The library must promise to wipe its round keys.
const fn is_wiped<C: zeroize::ZeroizeOnDrop + BlockSizeUser>() {}
const _: () = {
    is_wiped::<Des>();
    is_wiped::<TdesEde3>();
    is_wiped::<Aes128>();
    is_wiped::<Aes256>();
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::primitives::hex;

    /// One block forth and back, and the same as part of several.
    fn check(kind: CipherKind, key: &str, plain: &str, cipher: &str) {
        let (plain, cipher) = (hex(plain), hex(cipher));
        let key = BlockCipher::new(kind, &hex(key)).expect("a key of the right length");
        let mut blocks = plain.clone();
        key.encrypt_blocks(&mut blocks);
        assert_eq!(blocks, cipher, "{kind:?}");
        key.decrypt_blocks(&mut blocks);
        assert_eq!(blocks, plain, "{kind:?}");
        for (plain, cipher) in
            plain.chunks(kind.block_bytes()).zip(cipher.chunks(kind.block_bytes()))
        {
            let mut block = plain.to_vec();
            key.encrypt_block(&mut block);
            assert_eq!(block, cipher, "{kind:?}");
            key.decrypt_block(&mut block);
            assert_eq!(block, plain, "{kind:?}");
        }
    }

    /// NBS Special Publication 500-20, which the validation for FIPS 46-3 uses: the variable
    /// plaintext test (first vectors), and the classic example of the maintenance test.
    #[test]
    fn des_nbs_special_publication_500_20() {
        check(CipherKind::Des, "0101010101010101", "8000000000000000", "95F8A5E5DD31D900");
        check(CipherKind::Des, "0101010101010101", "4000000000000000", "DD7F121CA5015619");
        check(CipherKind::Des, "0101010101010101", "0000000000000001", "166B40B44ABA4BD6");
        check(CipherKind::Des, "8001010101010101", "0000000000000000", "95A8D72813DAA94D");
        check(CipherKind::Des, "133457799BBCDFF1", "0123456789ABCDEF", "85E813540F0AB405");
    }

    /// NIST SP 800-67, appendix B.1.
    #[test]
    fn triple_des_sp_800_67() {
        check(
            CipherKind::TripleDes,
            "0123456789ABCDEF 23456789ABCDEF01 456789ABCDEF0123",
            "5468652071756663 6B2062726F776E20 666F78206A756D70",
            "A826FD8CE53B855F CCE21C8112256FE6 68D5C05DD9B6B900",
        );
    }

    /// FIPS 197, appendix C.1 and C.3.
    #[test]
    fn aes_fips_197() {
        let plain = "00112233445566778899aabbccddeeff";
        check(
            CipherKind::Aes128,
            "000102030405060708090a0b0c0d0e0f",
            plain,
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        );
        check(
            CipherKind::Aes256,
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            plain,
            "8ea2b7ca516745bfeafc49904b496089",
        );
    }

    /// NIST SP 800-38A, appendix F.1.1 and F.1.5: four blocks, the size of a pad.
    #[test]
    fn aes_sp_800_38a() {
        let plain = "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
                     30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710";
        check(
            CipherKind::Aes128,
            "2b7e151628aed2a6abf7158809cf4f3c",
            plain,
            "3ad77bb40d7a3660a89ecaf32466ef97 f5d3d58503b9699de785895a96fdbaaf
             43b1cd7f598ece23881b00e3ed030688 7b0c785e27e8ad3f8223207104725dd4",
        );
        check(
            CipherKind::Aes256,
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            plain,
            "f3eed1bdb5d2a03c064b5a7e3db181f8 591ccb10d410ed26dc5ba74a31362870
             b6ed21b99ca6f4f9f153e7b1beafed1d 23304b7a39f9f3ff067d8d8f9e24ecc7",
        );
    }

    proptest! {
        #[test]
        fn several_blocks_are_each_block(key: [u8; 32], blocks: [u8; 160], count in 0usize..=10) {
            for kind in CipherKind::ALL {
                let cipher = BlockCipher::new(kind, &key[..kind.key_bytes()]).expect("long enough");
                let mut together = blocks[..count * kind.block_bytes()].to_vec();
                let plain = together.clone();
                let mut apart = together.clone();
                cipher.encrypt_blocks(&mut together);
                apart.chunks_mut(kind.block_bytes()).for_each(|block| cipher.encrypt_block(block));
                prop_assert_eq!(&together, &apart);
                cipher.decrypt_blocks(&mut together);
                prop_assert_eq!(&together, &plain);
            }
        }
    }

    #[test]
    fn keys_of_another_length_are_refused() {
        for kind in CipherKind::ALL {
            for given in 0..=40 {
                let made = BlockCipher::new(kind, &[7; 40][..given]);
                match made {
                    Ok(cipher) => assert_eq!((given, cipher.kind()), (kind.key_bytes(), kind)),
                    Err(error) => assert_eq!(error, KeyLength { kind, given }),
                }
            }
        }
    }
}
