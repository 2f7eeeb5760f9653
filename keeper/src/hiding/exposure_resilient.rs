//! Roots hidden behind an all-or-nothing transform over ordinary memory.

use std::io;
use std::ops::RangeInclusive;

use casemate_pages::all_or_nothing::{gather, spread};

use super::{Hideaway, SECRET_BYTES};
use crate::secret::{SecretMemory, fill_random};

/// Hides a secret from who reads memory after its power was cut, with some bits decayed: a few
/// unknown bits of the memory cost all of the secret. It hides nothing from who reads every bit.
///
/// The memory is locked, since a copy in swap would not decay. All of it is random and drawn anew
/// at every [`hide`](Hideaway::hide), also for a secret that was hidden before: cells that hold one
/// value for long come to prefer it, or decay more slowly from it.
///
/// BLAKE3 leaves parts of the secret on the stack, so its methods are to be called on a
/// [`SecretStack`](crate::secret::SecretStack) or inside
/// [`with_wiped_stack`](crate::secret::with_wiped_stack).
pub struct ExposureResilient {
    memory: SecretMemory,
    hides: bool,
}

impl ExposureResilient {
    /// How much memory it can be given. The least is a page; more than the most would take seconds.
    pub const SIZES: RangeInclusive<usize> = 4 << 10..=1 << 30;

    /// A place over this much memory, rounded up to pages, with nothing hidden yet.
    ///
    /// # Errors
    /// If the size is not one of [`SIZES`](Self::SIZES), or the memory cannot be had or locked.
    pub fn new(bytes: usize) -> io::Result<Self> {
        if !Self::SIZES.contains(&bytes) {
            let sentence = format!(
                "keys can be hidden behind 4 KiB to 1 GiB of memory, and {bytes} bytes are not"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        Ok(Self { memory: SecretMemory::locked(bytes)?, hides: false })
    }
}

impl Hideaway for ExposureResilient {
    fn hide(&mut self, secret: &[u8; SECRET_BYTES]) -> io::Result<()> {
        self.hides = false;
        fill_random(self.memory.slice_mut())?;
        spread(secret, self.memory.slice_mut()).map_err(io::Error::other)?;
        self.hides = true;
        Ok(())
    }

    fn reveal(&mut self, secret: &mut [u8; SECRET_BYTES]) -> io::Result<()> {
        if !self.hides {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no keys are hidden here"));
        }
        gather(self.memory.slice(), secret)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn memory(&mut self) -> &mut [u8] {
        self.memory.slice_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_core::random::Random;

    const OLD: [u8; SECRET_BYTES] =
        *b"the root of the epoch before,  !the root of this one, 32 bytes !";
    const BYTES: usize = 16 << 10;

    fn hidden(secret: &[u8; SECRET_BYTES]) -> ExposureResilient {
        let mut place = ExposureResilient::new(BYTES).expect("memory that can be locked");
        place.hide(secret).expect("the kernel has random bytes");
        place
    }

    fn revealed(place: &mut ExposureResilient) -> io::Result<[u8; SECRET_BYTES]> {
        let mut secret = [1; SECRET_BYTES];
        place.reveal(&mut secret).map(|()| secret)
    }

    fn has(memory: &[u8], part: &[u8]) -> bool {
        memory.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn a_secret_comes_back_until_another_takes_its_place() {
        let mut place = hidden(&OLD);
        for _ in 0..2 {
            assert_eq!(revealed(&mut place).expect("unchanged"), OLD);
        }
        let before = place.memory().to_vec();
        assert_eq!(before.len(), BYTES);
        let new = [3; SECRET_BYTES];
        place.hide(&new).expect("the kernel has random bytes");
        assert_eq!(revealed(&mut place).expect("unchanged"), new);
        // Nothing is left of what was there: the chance of 16 equal bytes is 2^-104.
        let mut pairs = before.chunks(16).zip(place.memory().chunks(16));
        assert!(pairs.all(|(before, after)| before != after));
        // The same again, over other bits.
        let before = place.memory().to_vec();
        place.hide(&new).expect("the kernel has random bytes");
        let changed: u32 =
            before.iter().zip(place.memory()).map(|(a, b)| (a ^ *b).count_ones()).sum();
        assert!(changed.abs_diff(BYTES as u32 * 4) < 1200, "{changed} bits");
    }

    #[test]
    fn one_flipped_bit_anywhere_is_an_error() {
        let mut place = hidden(&OLD);
        let mut random = Random::new(1);
        let ends = (0..64).chain(BYTES * 8 - 112 * 8..BYTES * 8);
        for bit in ends.chain((0..256).map(|_| random.index(BYTES * 8))) {
            place.memory()[bit / 8] ^= 1 << (bit % 8);
            let error = revealed(&mut place).expect_err("a bit is wrong");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "bit {bit}");
            place.memory()[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(revealed(&mut place).expect("all bits are right again"), OLD);
    }

    #[test]
    fn neither_the_secret_nor_its_key_schedules_are_in_memory() {
        let schedules: Vec<u8> = OLD.chunks(32).flat_map(key_schedule).collect();
        let mut place = hidden(&OLD);
        let found = |memory: &[u8]| {
            OLD.chunks(8).chain(schedules.chunks(8)).filter(|part| has(memory, part)).count()
        };
        assert_eq!(found(place.memory()), 0);
        // It would be found.
        place.memory()[100..100 + 240].copy_from_slice(&schedules[..240]);
        assert!(found(place.memory()) >= 30);
    }

    /// A byte of the substitution of AES (FIPS 197, 5.1.1): its inverse in GF(2^8), turned.
    fn substituted(byte: u8) -> u8 {
        let times = |mut a: u8, mut b: u8| {
            let mut product = 0;
            while b != 0 {
                product ^= if b & 1 == 1 { a } else { 0 };
                a = (a << 1) ^ if a & 0x80 != 0 { 0x1b } else { 0 };
                b >>= 1;
            }
            product
        };
        let inverse = (0..254).fold(1, |power, _| times(power, byte));
        (1..5).fold(inverse ^ 0x63, |sum, by| sum ^ inverse.rotate_left(by))
    }

    /// The 15 round keys of AES-256 (FIPS 197, 5.2).
    fn key_schedule(key: &[u8]) -> Vec<u8> {
        let mut schedule = key.to_vec();
        for word in 8..60 {
            let mut last = [0; 4];
            last.copy_from_slice(&schedule[word * 4 - 4..]);
            if word % 8 == 0 {
                last.rotate_left(1);
            }
            if word % 4 == 0 {
                last = last.map(substituted);
            }
            if word % 8 == 0 {
                last[0] ^= 1 << (word / 8 - 1);
            }
            for (place, byte) in (word * 4 - 32..).zip(last) {
                schedule.push(schedule[place] ^ byte);
            }
        }
        schedule
    }

    #[test]
    fn the_key_schedule_is_that_of_the_standard() {
        // FIPS 197, appendix A.3.
        let key: [u8; 32] = *b"\x60\x3d\xeb\x10\x15\xca\x71\xbe\x2b\x73\xae\xf0\x85\x7d\x77\x81\
            \x1f\x35\x2c\x07\x3b\x61\x08\xd7\x2d\x98\x10\xa3\x09\x14\xdf\xf4";
        let schedule = key_schedule(&key);
        assert_eq!(schedule[32..36], [0x9b, 0xa3, 0x54, 0x11]);
        assert_eq!(schedule[236..], [0x70, 0x6c, 0x63, 0x1e]);
    }

    #[test]
    fn nothing_is_revealed_before_something_is_hidden() {
        let mut place = ExposureResilient::new(4096).expect("memory that can be locked");
        let error = revealed(&mut place).expect_err("nothing is hidden");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn other_sizes_are_refused() {
        for bytes in [0, 4095, (1 << 30) + 1, usize::MAX] {
            let error = ExposureResilient::new(bytes).err().expect("no such size");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bytes}");
        }
    }
}
