//! The cryptography of a block without any unit around it: a pad, an XOR, a MAC.

use anyhow::{Context, Result, ensure};
use casemate_schemes::primitives::{BlockCipher, MacKey};
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::seed::{Seed, SeedScheme};
use casemate_schemes::unit::{Block, BlockAddress};

/// The ciphers and keys of a scheme, and a seed for each access.
pub struct BareCrypto {
    cipher: BlockCipher,
    mac: MacKey,
    seeds: Vec<Seed>,
}

impl BareCrypto {
    /// As a unit under AISE has them: same key lengths, nonces of the same width.
    pub fn new(algorithms: Algorithms, accesses: &[BlockAddress]) -> Result<Self> {
        // A benchmark's keys protect nothing.
        let key = [1; 32];
        let cipher = BlockCipher::new(algorithms.cipher, &key[..algorithms.cipher.key_bytes()])?;
        let mac = MacKey::new(algorithms.data_mac, &[2; 32])?;
        let seed = |(number, at): (usize, &BlockAddress)| {
            SeedScheme::LogicalPage.seed(*at, 1, (1 + number as u128) << 7)
        };
        let seeds: Result<_, _> = accesses.iter().enumerate().map(seed).collect();
        Ok(BareCrypto { cipher, mac, seeds: seeds.context("a seed does not fit")? })
    }

    /// Encrypts a block and computes its MAC, as access number `number`.
    pub fn seal(&self, number: usize, block: &mut Block, mac: &mut [u8; 16]) {
        let seed = self.seeds[number % self.seeds.len()];
        self.xor_pad(seed, block);
        let binding = seed.base.to_le_bytes();
        mac.copy_from_slice(self.mac.mac(Some(seed.base), &[&binding, block]).as_bytes());
    }

    /// Verifies a sealed block and decrypts it.
    pub fn open(&self, number: usize, sealed: &Block, mac: &[u8; 16]) -> Result<Block> {
        let seed = self.seeds[number % self.seeds.len()];
        let binding = seed.base.to_le_bytes();
        ensure!(self.mac.verify(Some(seed.base), &[&binding, sealed], mac), "a wrong MAC");
        let mut block = *sealed;
        self.xor_pad(seed, &mut block);
        Ok(block)
    }

    fn xor_pad(&self, seed: Seed, block: &mut Block) {
        let mut pad: Block = [0; 64];
        let mut chunk_seed = seed.base;
        for chunk in pad.chunks_exact_mut(16) {
            chunk.copy_from_slice(&chunk_seed.to_be_bytes());
            chunk_seed = chunk_seed.wrapping_add(seed.step);
        }
        self.cipher.encrypt_blocks(&mut pad);
        block.iter_mut().zip(pad).for_each(|(byte, mask)| *byte ^= mask);
    }
}
