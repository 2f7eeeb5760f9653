//! Attackers who look at what memory has of values that they know: whether equal values look equal,
//! and whether two pads are one.

use std::collections::HashSet;

use super::epoch::Epoch;
use super::strike::Attack;
use super::verdict::{Released, Verdict, verdict};
use casemate_core::checks::Checks;
use casemate_schemes::unit::scheme::EncryptionKind;
use casemate_schemes::unit::{BlockAddress, PAGE_BLOCKS};

/// Bytes of the smallest cipher's block, and so of a pad by itself.
const PAD_BYTES: usize = 8;
/// Writes to a line after which its sequence number is as far from the next line's as the address
/// of its last block, in bytes, is from that: 64.
const WRITES_TO_COLLIDE: u64 = 70;
/// Blocks that are written before a reboot and after it.
const BLOCKS_BEFORE_REBOOT: u64 = 4;

/// What the attacker knows of pads.
///
/// Of two ciphertexts under one pad the XOR is the XOR of their plaintexts: C1 XOR C2 = P1 XOR P2
/// (OTP/SNC, section 3.4). That is so if and only if C1 XOR P1 = C2 XOR P2; so these are kept, and
/// each is compared with all others at once.
#[derive(Default)]
pub(super) struct KnownPads {
    pads: HashSet<[u8; PAD_BYTES]>,
    /// Whether two ciphertexts were under one pad.
    twice: bool,
}

impl KnownPads {
    /// Looks at a block whose plaintext is known.
    pub fn see(&mut self, plain: &[u8], cipher: &[u8]) {
        for (plain, cipher) in plain.chunks_exact(PAD_BYTES).zip(cipher.chunks_exact(PAD_BYTES)) {
            let pad = std::array::from_fn(|at| plain[at] ^ cipher[at]);
            self.twice |= !self.pads.insert(pad);
        }
    }

    fn seen(&self) -> Verdict {
        if self.twice { Verdict::Undetected } else { Verdict::Harmless }
    }
}

impl<C: Checks, const LINE: usize> Epoch<C, LINE> {
    /// One value is written twice, and the attacker compares what memory has of it.
    pub(super) fn watched(&mut self, attack: Attack) -> Option<Verdict> {
        self.traffic();
        let first = self.any_block();
        let second = match attack {
            Attack::SameValueTwoPlaces => self.other_block(Attack::SplicePages, first)?,
            _ => first,
        };
        let value = self.random_value();
        let seen = self.store(first, value);
        if second == first {
            self.write(first);
        }
        let seen_again = self.store(second, value);
        Some(if seen == seen_again { Verdict::Undetected } else { Verdict::Harmless })
    }

    /// A block is written, its line of counters put back, and the block written again.
    pub(super) fn counter_reused(&mut self, attack: Attack) -> Option<Verdict> {
        self.traffic();
        let victim = self.any_block();
        // A line that found no room for its sequence number gets one after the first flush.
        for _ in 0..2 {
            self.write(victim);
            self.unit.flush().ok()?;
        }
        let old = self.memory().image();
        let mut pads = KnownPads::default();
        self.write_known(victim, &mut pads);
        self.unit.flush().ok()?;
        let anatomy = self.unit.anatomy(victim);
        if !attack.applies_to(&anatomy) {
            return None;
        }
        let memory = self.unit.port_mut().memory_mut();
        if !attack.strike(memory, &anatomy, &anatomy, &old, &mut self.random) {
            return Some(Verdict::Void);
        }
        let value = self.random_value();
        self.operations += 1;
        let written = self.unit.write(victim, &value);
        if written.is_ok() {
            let seen = self.memory().line(anatomy.data.place);
            pads.see(&value, &seen);
        }
        let found = written.and_then(|()| self.unit.check()).is_err();
        let released = Released { wrong: pads.twice };
        Some(verdict(found, &released, self.unit.checks_at_intervals(), false))
    }

    /// A line is written again and again, then the next one. `None` if nothing is under a pad.
    pub(super) fn seeds_collided(&mut self) -> Option<Verdict> {
        if matches!(self.scheme.encryption, EncryptionKind::None | EncryptionKind::Direct { .. }) {
            return None;
        }
        self.traffic();
        let first = self.any_block();
        let blocks = Self::LINE_BLOCKS;
        let first = first.page.block(first.block.min(PAGE_BLOCKS - 2 * blocks));
        let next = first.page.block(first.block + blocks);
        let mut pads = KnownPads::default();
        for _ in 0..WRITES_TO_COLLIDE {
            self.write_known(first, &mut pads);
        }
        self.write_known(next, &mut pads);
        Some(pads.seen())
    }

    /// Some blocks are written, the machine is switched off and on, and they are written again.
    /// `None` if no counter is for all of memory.
    pub(super) fn global_counter_reset(&mut self) -> Option<Verdict> {
        self.unit.global_counter()?;
        let blocks: Vec<_> = (0..BLOCKS_BEFORE_REBOOT).map(|_| self.any_block()).collect();
        let mut pads = KnownPads::default();
        blocks.iter().for_each(|at| self.write_known(*at, &mut pads));
        self.reboot().ok()?;
        blocks.iter().for_each(|at| self.write_known(*at, &mut pads));
        Some(pads.seen())
    }

    /// Writes a value that the attacker knows, and lets him look.
    fn write_known(&mut self, at: BlockAddress, pads: &mut KnownPads) {
        let value = self.random_value();
        let seen = self.store(at, value);
        pads.see(&value, &seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_schemes::unit::Block;

    #[test]
    fn two_ciphertexts_under_one_pad_give_themselves_away() {
        let (pad, plain) = ([0x5a; 64], [[1; 64], [0xf3; 64]]);
        let mut other = [0; 64];
        (0..).zip(&mut other).for_each(|(at, byte)| *byte = at);
        let under =
            |plain: &Block, pad: &Block| -> Block { std::array::from_fn(|at| plain[at] ^ pad[at]) };
        // Bytes of `pad` are all alike, so its chunks are: one block would be enough.
        let mut pads = KnownPads::default();
        pads.see(&plain[0], &under(&plain[0], &other));
        assert_eq!(pads.seen(), Verdict::Harmless);
        pads.see(&plain[1], &under(&plain[1], &other));
        assert_eq!(pads.seen(), Verdict::Undetected);
        let mut one = KnownPads::default();
        one.see(&plain[0], &under(&plain[0], &pad));
        assert!(one.twice);
    }
}
