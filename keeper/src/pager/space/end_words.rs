//! The words by which the ends of a space's threads are waited for.

use std::collections::BTreeMap;

/// The most words that are remembered; later ones are not.
const MOST_REMEMBERED: usize = 4096;

/// Addresses that calls of `clone` gave (`CLONE_CHILD_CLEARTID`), with the number of threads that
/// have each: the C library has one a thread, musl the same for all. Threads that were begun before
/// the calls of the space were announced are not among them.
#[derive(Default)]
pub struct EndWords(BTreeMap<u64, u32>);

impl EndWords {
    /// A thread begins whose end will clear the word at `address`.
    pub fn begin(&mut self, address: u64) {
        if self.0.len() < MOST_REMEMBERED || self.0.contains_key(&address) {
            *self.0.entry(address).or_default() += 1;
        }
    }

    /// A thread ends that has the word at `address`.
    pub fn end(&mut self, address: u64) {
        if let Some(threads) = self.0.get_mut(&address) {
            *threads -= 1;
            if *threads == 0 {
                self.0.remove(&address);
            }
        }
    }

    /// Whether a thread has the word at `address`.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.0.contains_key(&address)
    }

    /// The first `most` addresses.
    #[must_use]
    pub fn first(&self, most: usize) -> Vec<u64> {
        self.0.keys().copied().take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_remembered_while_a_thread_has_it() {
        let mut words = EndWords::default();
        words.end(8);
        for address in [8, 16, 8] {
            words.begin(address);
        }
        assert_eq!(words.first(1), [8]);
        words.end(8);
        assert!(words.contains(8), "musl's threads have one word");
        words.end(8);
        words.end(8);
        assert_eq!(words.first(9), [16]);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut words = EndWords::default();
        (0..=MOST_REMEMBERED as u64).for_each(|address| words.begin(address));
        assert_eq!(words.first(usize::MAX).len(), MOST_REMEMBERED);
        assert!(!words.contains(MOST_REMEMBERED as u64));
    }
}
