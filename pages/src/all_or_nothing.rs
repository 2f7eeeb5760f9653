//! A secret spread over memory so that it can be had only with all of that memory (Canetti, Dodis,
//! Halevi, Kushilevitz and Sahai, "Exposure-Resilient Functions and All-Or-Nothing Transforms",
//! EUROCRYPT 2000).
//!
//! It is for memory that decays when its power is cut (Halderman et al., "Lest We Remember: Cold
//! Boot Attacks on Encryption Keys", USENIX Security 2008, on what can be done against it): a few
//! bits that an attacker cannot read cost him the whole secret.
//!
//! # Layout
//!
//! | bytes | what |
//! |---|---|
//! | all but the rest | random |
//! | N | secret XOR `G(seed)` |
//! | 16 | `C(seed)`, the check |
//! | 32 | seed XOR `H(all of the above)` |
//!
//! `G`, `C` and `H` are BLAKE3's `derive_key` under three contexts; the seed is random.
//!
//! # Why not the secret XOR a hash of random memory
//!
//! Then a bit that is missing in the random part would cost everything, but one that is missing in
//! the masked secret only itself: the attacker has all other bits of the key. The transform above
//! is OAEP, of which Boyko showed that it is an all-or-nothing transform for any place of the
//! missing bits ("On the Security Properties of OAEP as an All-or-Nothing Transform", CRYPTO 1999).
//! With BLAKE3 as random oracles, and ℓ bits missing:
//!
//! - all of `G(seed)` is unknown to who did not ask `G` for exactly this seed;
//! - if bits above the seed are missing, the seed is unknown to who did not ask `H` for exactly
//!   these bytes: a guess is right with probability 2^-ℓ;
//! - if bits of the masked seed are missing, `H` gives him the seed but for these: again 2^-ℓ;
//! - if both are missing, he has to guess both.
//!
//! So who asks q times learns anything of the secret with probability q / 2^ℓ + q / 2^256 at most.
//! There is no more to it than that: who reads every bit has the secret.
//!
//! The check says that memory is as it was; without it a decayed bit would give a wrong key. It
//! also tells an attacker that a guess is right, which any page's tag would tell him too.

use casemate_core::key_derivation::derive;
use zeroize::Zeroize;

const MASK_CONTEXT: &str = "casemate 2026-11-27 all-or-nothing mask of the secret v1";
const CHECK_CONTEXT: &str = "casemate 2026-11-27 all-or-nothing check v1";
const DIGEST_CONTEXT: &str = "casemate 2026-11-27 all-or-nothing digest of memory v1";

/// Bytes of the seed.
const SEED_BYTES: usize = 32;
/// Bytes of the check. A wrong secret passes it once in 2^128 times.
const CHECK_BYTES: usize = 16;
/// Bytes of memory that are needed besides the secret's own.
pub const EXTRA_BYTES: usize = CHECK_BYTES + SEED_BYTES;

/// Why there is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpreadError {
    /// The memory has no room.
    #[error("a secret needs {least} bytes of memory to be spread over, and there are {given}")]
    TooSmall {
        /// Bytes that there are.
        given: usize,
        /// Bytes that are needed.
        least: usize,
    },
    /// Some bit is not as it was.
    #[error("the memory over which a secret was spread has changed, and the secret is lost")]
    Changed,
}

/// Spreads a secret over memory that is filled with fresh random bytes. Those are used up: memory
/// must be filled anew for the next secret.
///
/// # Errors
/// If the memory is too small.
pub fn spread<const N: usize>(secret: &[u8; N], memory: &mut [u8]) -> Result<(), SpreadError> {
    let Parts { body, seed } = parts_mut::<N>(memory)?;
    let masked_at = body.len() - N - CHECK_BYTES;
    let (masked, check) = body[masked_at..].split_at_mut(N);
    derive(MASK_CONTEXT, &[seed], masked);
    derive(CHECK_CONTEXT, &[seed], check);
    xor(masked, secret);
    let mut digest = [0; SEED_BYTES];
    derive(DIGEST_CONTEXT, &[body], &mut digest);
    xor(seed, &digest);
    digest.zeroize();
    Ok(())
}

/// Copies the secret out of memory, which stays as it is.
///
/// # Errors
/// If any bit of the memory has changed; `secret` is zeros then.
pub fn gather<const N: usize>(memory: &[u8], secret: &mut [u8; N]) -> Result<(), SpreadError> {
    let mut check = [0; CHECK_BYTES];
    let stored = open(memory, secret, &mut check)?;
    let difference = check.iter().zip(stored).fold(0, |all, (a, b)| all | (a ^ b));
    check.zeroize();
    if difference != 0 {
        secret.zeroize();
        return Err(SpreadError::Changed);
    }
    Ok(())
}

/// What memory gives, right or not: the secret, and the check that belongs to its seed. Returns the
/// check that is stored.
fn open<'a, const N: usize>(
    memory: &'a [u8],
    secret: &mut [u8; N],
    check: &mut [u8; CHECK_BYTES],
) -> Result<&'a [u8], SpreadError> {
    let seed_at = room::<N>(memory)? - SEED_BYTES;
    let (body, masked_seed) = memory.split_at(seed_at);
    let mut seed = [0; SEED_BYTES];
    derive(DIGEST_CONTEXT, &[body], &mut seed);
    xor(&mut seed, masked_seed);
    derive(MASK_CONTEXT, &[&seed], secret);
    derive(CHECK_CONTEXT, &[&seed], check);
    seed.zeroize();
    let (masked, stored) = body[body.len() - N - CHECK_BYTES..].split_at(N);
    xor(secret, masked);
    Ok(stored)
}

/// The memory's two halves of OAEP.
struct Parts<'a> {
    body: &'a mut [u8],
    seed: &'a mut [u8],
}

fn parts_mut<const N: usize>(memory: &mut [u8]) -> Result<Parts<'_>, SpreadError> {
    let seed_at = room::<N>(memory)? - SEED_BYTES;
    let (body, seed) = memory.split_at_mut(seed_at);
    Ok(Parts { body, seed })
}

/// Bytes of the memory, if they are enough.
fn room<const N: usize>(memory: &[u8]) -> Result<usize, SpreadError> {
    let (given, least) = (memory.len(), N + EXTRA_BYTES);
    if given < least { Err(SpreadError::TooSmall { given, least }) } else { Ok(given) }
}

fn xor(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
}

#[cfg(test)]
mod tests;
