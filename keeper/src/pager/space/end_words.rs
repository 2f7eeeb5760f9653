//! The words by which the ends of a space's threads are waited for.

use std::collections::HashMap;

/// The most words that are remembered.
const MOST_REMEMBERED: usize = 1024;

/// Addresses that calls of `clone` gave (`CLONE_CHILD_CLEARTID`): the C library has one a thread,
/// musl the same for all. Threads that were begun before the calls of the space were announced are
/// not among them. One that was killed leaves its word here, so the oldest goes when there is no
/// room.
#[derive(Default)]
pub struct EndWords {
    words: HashMap<u64, Word>,
    begun: u64,
}

#[derive(Default)]
struct Word {
    threads: u32,
    /// How many threads had been begun before its last.
    since: u64,
}

impl EndWords {
    /// A thread begins whose end will clear the word at `address`.
    pub fn begin(&mut self, address: u64) {
        self.begun += 1;
        let word = self.words.entry(address).or_default();
        word.threads += 1;
        word.since = self.begun;
        if self.words.len() > MOST_REMEMBERED {
            let oldest = self.words.iter().min_by_key(|(_, word)| word.since);
            if let Some(address) = oldest.map(|(address, _)| *address) {
                self.words.remove(&address);
            }
        }
    }

    /// A thread ends that has the word at `address`.
    pub fn end(&mut self, address: u64) {
        if let Some(word) = self.words.get_mut(&address) {
            word.threads -= 1;
            if word.threads == 0 {
                self.words.remove(&address);
            }
        }
    }

    /// Whether a thread has the word at `address`.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.words.contains_key(&address)
    }

    /// All addresses, those of the youngest threads first.
    #[must_use]
    pub fn youngest_first(&self) -> Vec<u64> {
        let mut words: Vec<_> = self.words.iter().collect();
        words.sort_unstable_by_key(|(_, word)| std::cmp::Reverse(word.since));
        words.into_iter().map(|(address, _)| *address).collect()
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
        assert_eq!(words.youngest_first(), [8, 16]);
        words.end(8);
        assert!(words.contains(8), "musl's threads have one word");
        words.end(8);
        words.end(8);
        assert_eq!(words.youngest_first(), [16]);
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let mut words = EndWords::default();
        (0..=MOST_REMEMBERED as u64).for_each(|address| words.begin(address));
        assert_eq!(words.youngest_first().len(), MOST_REMEMBERED);
        assert!(words.contains(MOST_REMEMBERED as u64) && !words.contains(0));
    }
}
