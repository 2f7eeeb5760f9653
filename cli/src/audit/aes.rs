//! AES key schedules in memory: a window of words that all follow from the first of them as
//! FIPS 197, section 5.2, has it. A program that encrypts with AES keeps one, key first; by chance
//! there is none. What is in a live machine's RAM has no flipped bits, so none are forgiven.
//!
//! Not found: a key that is not expanded, a schedule for decryption by the equivalent inverse
//! cipher (its words are mixed), and one in bit-sliced form.

/// Bytes of the longest schedule: fifteen round keys.
pub const MOST_BYTES: usize = 15 * 16;
/// Schedules are arrays of words.
const WORD: usize = 4;
/// Lengths of keys, in words.
const KEY_WORDS: [usize; 3] = [4, 6, 8];

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Schedule {
    /// Of its first byte, in what was searched.
    pub place: usize,
    /// Length of the key, in bits.
    pub bits: u32,
}

impl Schedule {
    /// Bytes of the whole: a round key of 16 bytes for each round, and one before.
    pub fn len(self) -> usize {
        (self.bits as usize / 32 + 7) * 16
    }
}

/// Calls `found` for each schedule in `bytes`, which begin at a word.
pub fn schedules(bytes: &[u8], found: &mut dyn FnMut(Schedule)) {
    // As the standard numbers a word's bytes, and as programs that compute with words on this
    // processor have them in memory.
    for order in [u32::from_be_bytes, u32::from_le_bytes] {
        let words = bytes.as_chunks::<WORD>().0;
        let at = |place: usize| words.get(place).map(|word| order(*word));
        // What the last word of a key, and the first word after it, say of the key's first: nearly
        // all windows fail at that.
        for (last, pair) in words.windows(2).enumerate() {
            let first =
                order(pair[1]) ^ substituted(order(pair[0]).rotate_left(8)) ^ round_constant(1);
            for key in KEY_WORDS {
                let Some(place) = (last + 1).checked_sub(key) else { continue };
                let schedule = Schedule { place: place * WORD, bits: 32 * key as u32 };
                let rest = key + 1..schedule.len() / WORD;
                if order(words[place]) == first && { rest }.all(|n| follows(&at, place, key, n)) {
                    found(schedule);
                }
            }
        }
    }
}

/// Whether word `n` of a window is what those before it make of it.
#[inline]
fn follows(at: &impl Fn(usize) -> Option<u32>, first: usize, key: usize, n: usize) -> bool {
    let (Some(word), Some(before), Some(old)) =
        (at(first + n), at(first + n - 1), at(first + n - key))
    else {
        return false;
    };
    let made = if n.is_multiple_of(key) {
        substituted(before.rotate_left(8)) ^ round_constant(n / key)
    } else if key > 6 && n % key == 4 {
        substituted(before)
    } else {
        before
    };
    word == old ^ made
}

/// `Rcon[i]`: x to the power of `i - 1`, in the word's first byte.
fn round_constant(i: usize) -> u32 {
    let power = (1..i).fold(1, |power, _| doubled(power));
    u32::from(power) << 24
}

/// `SubWord`.
#[inline]
fn substituted(word: u32) -> u32 {
    const TABLE: [u8; 256] = substitutions();
    u32::from_be_bytes(word.to_be_bytes().map(|byte| TABLE[byte as usize]))
}

/// The S-box: the inverse in GF(2^8), then the affine map (section 5.1.1).
const fn substitutions() -> [u8; 256] {
    let mut table = [0; 256];
    // {03} generates all that have an inverse, and {f6} is its inverse.
    let (mut element, mut inverse, mut count) = (1_u8, 1_u8, 0);
    while count < 255 {
        table[element as usize] = affine(inverse);
        element = product(element, 0x03);
        inverse = product(inverse, 0xf6);
        count += 1;
    }
    table[0] = affine(0);
    table
}

const fn affine(b: u8) -> u8 {
    0x63 ^ b ^ b.rotate_left(1) ^ b.rotate_left(2) ^ b.rotate_left(3) ^ b.rotate_left(4)
}

/// Times x, modulo x^8 + x^4 + x^3 + x + 1.
const fn doubled(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 != 0 { 0x1b } else { 0 }
}

const fn product(a: u8, b: u8) -> u8 {
    let (mut power, mut sum, mut bit) = (a, 0, 0);
    while bit < 8 {
        sum ^= if b >> bit & 1 == 1 { power } else { 0 };
        power = doubled(power);
        bit += 1;
    }
    sum
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The expanded keys of FIPS 197, appendix A.
    pub const AES_128: &str = "\
        2b7e151628aed2a6abf7158809cf4f3c a0fafe1788542cb123a339392a6c7605 \
        f2c295f27a96b9435935807a7359f67f 3d80477d4716fe3e1e237e446d7a883b \
        ef44a541a8525b7fb671253bdb0bad00 d4d1c6f87c839d87caf2b8bc11f915bc \
        6d88a37a110b3efddbf98641ca0093fd 4e54f70e5f5fc9f384a64fb24ea6dc4f \
        ead27321b58dbad2312bf5607f8d292f ac7766f319fadc2128d12941575c006e \
        d014f9a8c9ee2589e13f0cc8b6630ca6";
    const AES_192: &str = "\
        8e73b0f7da0e6452c810f32b809079e5 62f8ead2522c6b7bfe0c91f72402f5a5 \
        ec12068e6c827f6b0e7a95b95c56fec2 4db7b4bd69b5411885a74796e92538fd \
        e75fad44bb095386485af05721efb14f a448f6d94d6dce24aa326360113b30e6 \
        a25e7ed583b1cf9a27f939436a94f767 c0a69407d19da4e1ec1786eb6fa64971 \
        485f703222cb8755e26d135233f0b7b3 40beeb282f18a2596747d26b458c553e \
        a7e1466c9411f1df821f750aad07d753 ca4005388fcc5006282d166abc3ce7b5 \
        e98ba06f448c773c8ecc720401002202";
    const AES_256: &str = "\
        603deb1015ca71be2b73aef0857d7781 1f352c073b6108d72d9810a30914dff4 \
        9ba354118e6925afa51a8b5f2067fcde a8b09c1a93d194cdbe49846eb75d5b9a \
        d59aecb85bf3c917fee94248de8ebe96 b5a9328a2678a647983122292f6c79b3 \
        812c81addadf48ba24360af2fab8b464 98c5bfc9bebd198e268c3ba709e04214 \
        68007bacb2df331696e939e46c518d80 c814e20476a9fb8a5025c02d59c58239 \
        de1369676ccc5a71fa2563959674ee15 5886ca5d2e2f31d77e0af1fa27cf73c3 \
        749c47ab18501ddae2757e4f7401905a cafaaae3e4d59b349adf6acebd10190d \
        fe4890d1e6188d0b046df344706c631e";

    pub fn bytes(digits: &str) -> Vec<u8> {
        let digits: String = digits.split_whitespace().collect();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    fn found(bytes: &[u8]) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        schedules(bytes, &mut |schedule| found.push((schedule.place, schedule.bits)));
        found
    }

    /// Bytes without any order, from a generator of xorshift's kind.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        std::iter::repeat_with(&mut next).flatten().take(count).collect()
    }

    #[test]
    fn the_standards_examples_are_found() {
        for (digits, bits, length) in
            [(AES_128, 128, 176), (AES_192, 192, 208), (AES_256, 256, 240)]
        {
            let schedule = bytes(digits);
            assert_eq!((schedule.len(), Schedule { place: 0, bits }.len()), (length, length));
            assert_eq!(found(&schedule), [(0, bits)]);
            let among = [&noise(1028), &schedule[..], &noise(4096)].concat();
            assert_eq!(found(&among), [(1028, bits)]);
            assert_eq!(found(&schedule[..length - 4]), []);
        }
    }

    #[test]
    fn words_in_this_processors_order_are_found() {
        let swapped = |word: &[u8; 4]| [word[3], word[2], word[1], word[0]];
        let words = bytes(AES_256);
        let words: Vec<u8> = words.as_chunks::<4>().0.iter().flat_map(swapped).collect();
        assert_eq!(found(&words), [(0, 256)]);
    }

    #[test]
    fn one_wrong_bit_anywhere_makes_it_another() {
        for digits in [AES_128, AES_192, AES_256] {
            let mut schedule = bytes(digits);
            for bit in 0..schedule.len() * 8 {
                schedule[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(found(&schedule), [], "bit {bit}");
                schedule[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn there_is_none_in_noise_or_in_one_value() {
        assert_eq!(found(&noise(4 << 20)), []);
        assert_eq!([0, 0x63, 0xff].map(|byte| found(&[byte; 4096])), [[], [], []]);
    }

    #[test]
    fn the_substitution_is_the_standards() {
        // Section 5.1.1, figure 7, by row and column; and the example of SubBytes there.
        let table = substitutions();
        assert_eq!([0x00, 0x01, 0x53, 0xff].map(|byte| table[byte]), [0x63, 0x7c, 0xed, 0x16]);
        // {57} times {83} (section 4.2).
        assert_eq!(product(0x57, 0x83), 0xc1);
    }
}
