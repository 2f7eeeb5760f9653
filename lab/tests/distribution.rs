//! Sealed images: one processor opens them, no other does, and no change goes through.

use casemate_core::random::Random;
use casemate_lab::distribution;
use casemate_lab::distribution::{OVERHEAD_BYTES, OpenError, open, seal};
use casemate_lab::processor_key::{ProcessorKey, PublicKey};

struct Processor {
    key: ProcessorKey,
    public: PublicKey,
}

fn processor() -> Processor {
    let key = ProcessorKey::generate().expect("there is randomness");
    let public = key.public_key().expect("a fresh key");
    Processor { key, public }
}

/// Changed images that an opener accepts. The oracle of all tests here.
fn accepted(images: impl Iterator<Item = Vec<u8>>, mut opens: impl FnMut(&[u8]) -> bool) -> usize {
    images.filter(|image| opens(image)).count()
}

fn all_flips(image: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..image.len() * 8).map(|bit| {
        let mut changed = image.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

/// As they are, and with a length in the header that fits.
fn all_truncations(image: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..image.len()).flat_map(|length| {
        let cut = image[..length].to_vec();
        let mut corrected = cut.clone();
        if let Some(program_bytes) = length.checked_sub(OVERHEAD_BYTES) {
            corrected[40..48].copy_from_slice(&(program_bytes as u64).to_le_bytes());
        }
        [cut, corrected]
    })
}

#[test]
fn the_program_comes_back_whatever_its_length() {
    let processor = processor();
    let mut random = Random::new(1);
    for length in [0, 1, 15, 16, 17, 1000, 70_000] {
        let mut program = vec![0; length];
        random.fill(&mut program);
        let image = seal(&program, &processor.public).expect("short enough");
        assert_eq!(image.len(), program.len() + OVERHEAD_BYTES);
        let opened = open(&image, &processor.key).expect("its own image");
        assert_eq!(*opened, program, "{length} bytes");
    }
}

/// OTP/SNC, section 2.1: what is encrypted for one processor does not run on another.
#[test]
fn another_processor_cannot_open_it() {
    let (one, two) = (processor(), processor());
    let image = seal(b"program", &one.public).expect("short enough");
    let refused = open(&image, &two.key).map(|_| ());
    assert_eq!(refused, Err(OpenError::OtherProcessor(one.public.fingerprint())));
    // Nor if it is told that the image is its own.
    let mut renamed = image;
    renamed[8..40].copy_from_slice(&two.public.fingerprint().0);
    assert_eq!(open(&renamed, &two.key).map(|_| ()), Err(OpenError::KeyChanged));
}

#[test]
fn no_change_goes_through() {
    let processor = processor();
    let image = seal(b"a program of some bytes", &processor.public).expect("short enough");
    let opens = |image: &[u8]| open(image, &processor.key).is_ok();
    assert!(opens(&image));
    assert_eq!(accepted(all_flips(&image), opens), 0);
    assert_eq!(accepted(all_truncations(&image), opens), 0);
    let longer = (1..40).map(|more| [&image[..], &vec![0; more]].concat());
    assert_eq!(accepted(longer, opens), 0);
}

/// Several flips at once, blocks of noise, and noise that begins like an image.
#[test]
fn no_random_change_goes_through() {
    let processor = processor();
    let image = seal(&[7; 500], &processor.public).expect("short enough");
    let seed = 20_261_121;
    let mut random = Random::new(seed);
    let changed = (0..3000).map(|_| {
        let mut changed = image.clone();
        let from = random.below(image.len() as u64) as usize;
        let to = from + 1 + random.below((image.len() - from) as u64) as usize;
        let before = changed[from..to].to_vec();
        random.fill(&mut changed[from..to]);
        if changed[from..to] == before[..] {
            changed[from] ^= 1;
        }
        changed
    });
    let opens = |image: &[u8]| open(image, &processor.key).is_ok();
    assert_eq!(accepted(changed, opens), 0, "seed {seed}");
}

#[test]
fn parts_of_two_images_do_not_go_together() {
    let processor = processor();
    let seal = || seal(b"program", &processor.public).expect("short enough");
    let (one, two) = (seal(), seal());
    let opens = |image: &[u8]| open(image, &processor.key).is_ok();
    let spliced = (1..one.len()).map(|at| [&one[..at], &two[at..]].concat());
    // Up to the ciphertext of ML-KEM they are the same image.
    let spliced = spliced.filter(|spliced| *spliced != one && *spliced != two);
    assert_eq!(accepted(spliced, opens), 0);
    let differ = one.iter().zip(&two).skip(48).filter(|(a, b)| a != b).count();
    assert!(differ > (one.len() - 48) * 9 / 10, "key, ciphertext or both were used twice");
}

/// The oracle notices an opener that looks at head, length and processor alone.
#[test]
fn an_opener_that_verifies_no_tag_is_caught() {
    let processor = processor();
    let image = seal(b"a program of some bytes", &processor.public).expect("short enough");
    let careless = |image: &[u8]| {
        !matches!(
            open(image, &processor.key),
            Err(OpenError::NotAnImage | OpenError::Length { .. } | OpenError::OtherProcessor(_))
        )
    };
    assert!(accepted(all_flips(&image), careless) > 0);
    assert!(accepted(all_truncations(&image), careless) > 0);
}

#[test]
fn lengths_that_overflow_are_refused() {
    let processor = processor();
    let mut image = seal(b"program", &processor.public).expect("short enough");
    for length in [u64::MAX, u64::MAX - 1200, distribution::MOST_PROGRAM_BYTES + 1] {
        image[40..48].copy_from_slice(&length.to_le_bytes());
        let refused = open(&image, &processor.key).map(|_| ());
        assert!(matches!(refused, Err(OpenError::Length { .. })), "{refused:?}");
    }
}
