//! Text: words from a vocabulary, the *n*-th of them with a frequency of 1/*n*, in sentences and
//! lines.

use crate::random::Random;

/// Different words.
const VOCABULARY: usize = 20_000;
const LINE: usize = 72;

/// A vocabulary, and how to draw from it.
pub struct Words {
    words: Vec<String>,
    /// The sum of the frequencies up to each word, in 2^-32 of all.
    bounds: Vec<u64>,
}

impl Words {
    /// Made of syllables; frequent words are short.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        let mut words: Vec<String> = (0..VOCABULARY).map(|_| word(random)).collect();
        words.sort_by_key(String::len);
        let all: f64 = (1..=VOCABULARY).map(|n| 1.0 / n as f64).sum();
        let mut sum = 0.0;
        let bounds = (1..=VOCABULARY).map(|n| {
            sum += 1.0 / n as f64;
            (sum / all * (1_u64 << 32) as f64) as u64
        });
        Words { words, bounds: bounds.collect() }
    }

    /// One word.
    pub fn draw(&self, random: &mut Random) -> &str {
        let at = random.below(1 << 32);
        let found = self.bounds.partition_point(|bound| *bound <= at);
        &self.words[found.min(VOCABULARY - 1)]
    }
}

fn word(random: &mut Random) -> String {
    const CONSONANTS: &[u8] = b"bcdfghklmnprstvw";
    const VOWELS: &[u8] = b"aeiou";
    let mut word = String::new();
    for _ in 0..=random.index(4) {
        word.push(CONSONANTS[random.index(CONSONANTS.len())].into());
        word.push(VOWELS[random.index(VOWELS.len())].into());
        if random.below(3) == 0 {
            word.push(CONSONANTS[random.index(CONSONANTS.len())].into());
        }
    }
    word
}

/// About so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = Words::new(&mut random);
    let mut text = String::new();
    let mut line = 0;
    while (text.len() as u64) < size_bytes {
        let word = words.draw(&mut random);
        text += word;
        line += word.len() + 1;
        match random.below(12) {
            0 => text += ".",
            1 => text += ",",
            _ => {}
        }
        if line > LINE {
            text.push('\n');
            line = 0;
        } else {
            text.push(' ');
        }
    }
    text.push('\n');
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The most frequent of 20,000 words by 1/n is one in ln(20,000) + 0.58 = 10.5.
    #[test]
    fn words_follow_zipf() {
        let text = String::from_utf8(make(1 << 20, 3)).expect("ASCII");
        let mut counts: HashMap<&str, u64> = HashMap::new();
        let mut all = 0;
        for word in text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty()) {
            *counts.entry(word).or_default() += 1;
            all += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        assert!((all / 14..all / 9).contains(&most), "{most} of {all}");
        assert!(counts.len() > 5000);
    }
}
