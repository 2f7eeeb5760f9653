//! Entries on chip, in sets of ways, of which the one that was used longest ago makes room:
//! sequence numbers (OTP/SNC, section 5.1) and words of time stamps (LHash, section 4.3.2).

use std::collections::HashMap;
use std::hash::Hash;

use crate::recency::Recency;

/// How many entries there are, and how many of them any one could take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Entries.
    pub entries: usize,
    /// Entries of a set, a divisor of all; 0 for all.
    pub ways: usize,
}

impl Shape {
    fn sets(self) -> usize {
        match self.ways {
            0 => 1,
            ways => (self.entries / ways).max(1),
        }
    }
}

/// What an entry is found by.
pub trait Key: Copy + Eq + Hash {
    /// Its set is this number modulo the sets.
    fn number(self) -> u64;
}

impl Key for u64 {
    fn number(self) -> u64 {
        self
    }
}

/// Entries of one shape.
pub struct Associative<K, V> {
    shape: Shape,
    /// In which way of its set an entry lies.
    ways: HashMap<K, u32>,
    /// What lies there, set after set, as far as ways were ever in use.
    held: Vec<Option<(K, V)>>,
    sets: Vec<Set>,
    by_use: Recency,
    hits: u64,
    misses: u64,
    frozen: bool,
    /// Look-ups are not counted.
    silent: bool,
}

/// Which ways of a set hold nothing.
#[derive(Clone, Default)]
struct Set {
    /// The first that never held anything, and all behind it.
    unused: u32,
    emptied: Vec<u32>,
}

impl<K: Key, V> Associative<K, V> {
    /// Without entries. There is room for one at least.
    pub fn new(shape: Shape) -> Self {
        let entries = shape.entries.max(1);
        let sets = Shape { entries, ..shape }.sets();
        let shape = Shape { entries, ways: entries / sets };
        Self {
            shape,
            ways: HashMap::new(),
            held: Vec::new(),
            sets: vec![Set::default(); sets],
            by_use: Recency::new(sets, shape.ways),
            hits: 0,
            misses: 0,
            frozen: false,
            silent: false,
        }
    }

    /// Entries that were looked for and found so far.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Entries that were looked for and not found so far.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ways.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Freezes it, or lets it go on. While it is frozen, contents are changed where they are and
    /// else nothing: no entry comes in, none counts as used, and no look-up is counted.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Lets look-ups count, or not. All else goes on.
    pub fn count(&mut self, counts: bool) {
        self.silent = !counts;
    }

    /// Whether an entry that is not here could come in without replacing another.
    pub fn has_room(&self, key: K) -> bool {
        let set = &self.sets[self.set(key)];
        let room = !set.emptied.is_empty() || (set.unused as usize) < self.shape.ways;
        room && !self.frozen
    }

    /// Looks for an entry, which is then the one used last, and counts that.
    pub fn look_up(&mut self, key: K) -> Option<&mut V> {
        let found = u64::from(self.ways.contains_key(&key));
        if !self.frozen && !self.silent {
            self.hits += found;
            self.misses += 1 - found;
        }
        self.get_mut(key)
    }

    /// An entry, which is then the one used last.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let &way = self.ways.get(&key)?;
        let set = self.set(key);
        if !self.frozen {
            self.by_use.renew(set, way as usize);
        }
        let slot = self.slot(set, way);
        self.held.get_mut(slot)?.as_mut().map(|(_, value)| value)
    }

    /// Lets an entry in that is not here. Returns the one that had to go: of a full set the one
    /// used longest ago, and the new one itself while nothing can come in.
    pub fn insert(&mut self, key: K, value: V) -> Option<(K, V)> {
        if self.frozen {
            return Some((key, value));
        }
        let set = self.set(key);
        let (way, replaced) = match self.empty_way(set) {
            Some(way) => (way, None),
            None => self.replace_oldest(set),
        };
        let slot = self.slot(set, way);
        if slot >= self.held.len() {
            self.held.resize_with(slot + 1, || None);
        }
        self.held[slot] = Some((key, value));
        self.ways.insert(key, way);
        self.by_use.push(set, way as usize);
        replaced
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let (way, set) = (self.ways.remove(&key)?, self.set(key));
        self.by_use.remove(set, way as usize);
        self.sets[set].emptied.push(way);
        let slot = self.slot(set, way);
        self.held[slot].take().map(|(_, value)| value)
    }

    /// Takes all entries out, in the order of their keys.
    pub fn drain(&mut self) -> Vec<(K, V)>
    where
        K: Ord,
    {
        let mut all: Vec<_> = self.held.drain(..).flatten().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let Self { hits, misses, frozen, silent, .. } = *self;
        *self = Self { hits, misses, frozen, silent, ..Self::new(self.shape) };
        all
    }

    fn empty_way(&mut self, set: usize) -> Option<u32> {
        let most = self.shape.ways;
        let set = &mut self.sets[set];
        set.emptied.pop().or_else(|| {
            let way = set.unused;
            set.unused += u32::from((way as usize) < most);
            ((way as usize) < most).then_some(way)
        })
    }

    /// Empties the way of a full set that was used longest ago.
    fn replace_oldest(&mut self, set: usize) -> (u32, Option<(K, V)>) {
        let way = self.by_use.oldest(set);
        self.by_use.remove(set, way);
        let slot = self.slot(set, way as u32);
        let replaced = self.held[slot].take();
        if let Some((key, _)) = &replaced {
            self.ways.remove(key);
        }
        (way as u32, replaced)
    }

    fn set(&self, key: K) -> usize {
        (key.number() % self.sets.len() as u64) as usize
    }

    fn slot(&self, set: usize, way: u32) -> usize {
        set * self.shape.ways + way as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these numbers, in turn, are found; each that is not comes in.
    fn found(entries: usize, ways: usize, numbers: &[u64]) -> String {
        let mut cache = Associative::new(Shape { entries, ways });
        let mut look = |number: u64| {
            let hit = cache.look_up(number).is_some();
            if !hit {
                cache.insert(number, ());
            }
            if hit { 'h' } else { 'm' }
        };
        numbers.iter().map(|number| look(*number)).collect()
    }

    /// By hand. 0 and 4 share a set of four, 1 and 5 do; with two ways 0, 2, 4 and 6 share one.
    #[test]
    fn ways_decide_what_is_found() {
        let numbers = [0, 4, 0, 4, 1, 0];
        assert_eq!(found(4, 1, &numbers), "mmmmmm");
        assert_eq!(found(4, 2, &numbers), "mmhhmh");
        // 2 replaces 4, which was used before 0; in one set of four all have room.
        let numbers = [0, 4, 0, 2, 0, 4];
        assert_eq!(found(4, 2, &numbers), "mmhmhm");
        assert_eq!(found(4, 0, &numbers), "mmhmhh");
        assert_eq!(found(4, 4, &numbers), "mmhmhh");
    }

    #[test]
    fn what_is_frozen_changes_in_place_and_in_nothing_else() {
        let mut cache = Associative::new(Shape { entries: 2, ways: 0 });
        cache.insert(1_u64, 'a');
        cache.insert(2, 'b');
        cache.freeze(true);
        if let Some(value) = cache.look_up(1) {
            *value = 'c';
        }
        assert_eq!(cache.look_up(3), None);
        assert_eq!(cache.insert(3, 'd'), Some((3, 'd')));
        cache.freeze(false);
        assert_eq!((cache.hits(), cache.misses()), (0, 0));
        // 1 is still the one used longest ago, with its new contents.
        assert_eq!(cache.insert(3, 'd'), Some((1, 'c')));
        assert_eq!(cache.drain(), [(2, 'b'), (3, 'd')]);
    }
}
