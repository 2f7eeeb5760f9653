//! Caches against naive models, which keep lists and search them.

use casemate_sim::machine::cache::{Cache, CacheConfig, Evicted, Replacement, Ways};
use casemate_sim::machine::{Access, Content};
use proptest::prelude::*;

/// One block of the model.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: u64,
    dirty: bool,
    content: Content,
    came: u64,
    used: u64,
}

/// A set is an array of ways, in which everything is found by looking at all of them.
struct Model {
    sets: Vec<Vec<Option<Block>>>,
    block_bytes: u64,
    policy: Replacement,
    clock: u64,
    /// Of the last uses of each set, oldest first: all that tree-PLRU depends on.
    uses: Vec<Vec<usize>>,
    random: u64,
}

impl Model {
    fn new(config: &CacheConfig) -> Self {
        let lines = config.size_bytes / config.block_bytes;
        let ways = if let Ways::Set(ways) = config.ways { ways } else { lines };
        let sets = (lines / ways) as usize;
        let seed = if let Replacement::Random { seed } = config.replacement { seed } else { 0 };
        Model {
            sets: vec![vec![None; ways as usize]; sets],
            block_bytes: config.block_bytes,
            policy: config.replacement,
            clock: 0,
            uses: vec![Vec::new(); sets],
            random: seed,
        }
    }

    fn set_of(&self, number: u64) -> usize {
        (number % self.sets.len() as u64) as usize
    }

    fn way_of(&self, number: u64) -> Option<usize> {
        let set = &self.sets[self.set_of(number)];
        set.iter().position(|block| block.is_some_and(|block| block.number == number))
    }

    fn use_way(&mut self, set: usize, way: usize) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(block) = &mut self.sets[set][way] {
            block.used = clock;
        }
        self.uses[set].push(way);
    }

    fn access(&mut self, address: u64, access: Access) -> bool {
        let number = address / self.block_bytes;
        let set = self.set_of(number);
        let Some(way) = self.way_of(number) else { return false };
        self.use_way(set, way);
        if let Some(block) = &mut self.sets[set][way] {
            block.dirty |= access == Access::Write;
        }
        true
    }

    fn fill(&mut self, address: u64, dirty: bool, content: Content, into: usize) {
        let number = address / self.block_bytes;
        let set = self.set_of(number);
        self.clock += 1;
        let (came, used) = (self.clock, self.clock);
        self.sets[set][into] = Some(Block { number, dirty, content, came, used });
        self.use_way(set, into);
    }

    fn remove(&mut self, set: usize, way: usize) -> Option<Evicted> {
        let block = self.sets[set][way].take()?;
        let address = block.number * self.block_bytes;
        Some(Evicted { address, dirty: block.dirty, content: block.content })
    }

    /// The way that goes, by the definition of each policy.
    fn victim(&mut self, set: usize) -> usize {
        let ways = self.sets[set].len();
        let by = |key: fn(&Block) -> u64| {
            let blocks = self.sets[set].iter().enumerate();
            blocks.min_by_key(|(_, block)| block.as_ref().map_or(0, key)).map_or(0, |(way, _)| way)
        };
        match self.policy {
            Replacement::Lru => by(|block| block.used),
            Replacement::Fifo => by(|block| block.came),
            Replacement::Random { .. } => {
                // Vigna's reference SplitMix64, then the high word of draw times ways. Written a
                // second time so that the oracle shares no code with the cache that it judges.
                self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = self.random;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((u128::from(z ^ (z >> 31)) * ways as u128) >> 64) as usize
            }
            Replacement::TreePlru => coldest_half(&self.uses[set], 0, ways),
        }
    }
}

/// Tree-PLRU without bits: of two halves, the one goes whose last use is longer ago; the lower one
/// if neither was used.
fn coldest_half(uses: &[usize], from: usize, ways: usize) -> usize {
    if ways == 1 {
        return from;
    }
    let half = ways / 2;
    let last = uses.iter().rev().find(|&&way| (from..from + ways).contains(&way));
    let upper = last.is_some_and(|&way| way < from + half);
    coldest_half(uses, if upper { from + half } else { from }, half)
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Access(u64, Access, Content),
    Invalidate(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let access = prop_oneof![Just(Access::Read), Just(Access::Write)];
    let content = prop_oneof![Just(Content::Data), Just(Content::Metadata)];
    let operation = prop_oneof![
        12 => (0..4096u64, access, content).prop_map(|(at, a, c)| Operation::Access(at, a, c)),
        1 => (0..4096u64).prop_map(Operation::Invalidate),
    ];
    prop::collection::vec(operation, 1..400)
}

/// A cache of 16 blocks of 64 bytes for 64 blocks of addresses.
fn config(ways: Ways, replacement: Replacement) -> CacheConfig {
    CacheConfig { size_bytes: 1024, ways, block_bytes: 64, replacement }
}

/// Runs a cache and its model; the first difference as a sentence.
fn difference(config: &CacheConfig, operations: &[Operation]) -> Option<String> {
    difference_from(config.replacement, config, operations)
}

/// The same with a model of any policy.
fn difference_from(
    policy: Replacement,
    config: &CacheConfig,
    operations: &[Operation],
) -> Option<String> {
    let mut cache = Cache::new(config).expect("a valid configuration");
    let mut model = Model::new(&CacheConfig { replacement: policy, ..*config });
    // Which empty way is filled is no policy: the lowest at first, then the last emptied.
    let ways = model.sets[0].len();
    let mut empty: Vec<Vec<usize>> = vec![(0..ways).rev().collect(); model.sets.len()];
    for (step, &operation) in operations.iter().enumerate() {
        match operation {
            Operation::Access(address, access, content) => {
                let hit = cache.access(address, access, content);
                if hit != model.access(address, access) {
                    return Some(format!("step {step}: hit is {hit}"));
                }
                if hit {
                    continue;
                }
                let set = model.set_of(address / model.block_bytes);
                let expected = if empty[set].is_empty() {
                    let victim = model.victim(set);
                    empty[set].push(victim);
                    model.remove(set, victim)
                } else {
                    None
                };
                let dirty = access == Access::Write;
                let found = cache.fill(address, dirty, content);
                if found != expected {
                    return Some(format!("step {step}: {found:?} went, not {expected:?}"));
                }
                let way = empty[set].pop().expect("an empty way");
                model.fill(address, dirty, content, way);
            }
            Operation::Invalidate(address) => {
                let number = address / model.block_bytes;
                let set = model.set_of(number);
                let expected = model.way_of(number).and_then(|way| {
                    empty[set].push(way);
                    model.remove(set, way)
                });
                if cache.invalidate(address) != expected {
                    return Some(format!("step {step}: invalidation differs"));
                }
            }
        }
        for content in Content::ALL {
            let blocks = model.sets.iter().flatten().flatten();
            let lines = blocks.filter(|block| block.content == content).count() as u64;
            if cache.occupancy_lines(content) != lines {
                return Some(format!("step {step}: occupancy of {content:?}"));
            }
        }
        let both: u64 = Content::ALL.iter().map(|&content| cache.occupancy_lines(content)).sum();
        if both != cache.valid_lines() {
            return Some(format!("step {step}: {both} lines by content, more or fewer are valid"));
        }
    }
    None
}

fn policies() -> [Replacement; 4] {
    let seed = 7;
    let random = Replacement::Random { seed };
    [Replacement::Lru, Replacement::Fifo, random, Replacement::TreePlru]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_policy_follows_its_model(operations in operations()) {
        for replacement in policies() {
            for ways in [Ways::Set(1), Ways::Set(2), Ways::Set(4), Ways::Full] {
                let config = config(ways, replacement);
                prop_assert_eq!(difference(&config, &operations), None, "{:?}", config);
            }
        }
    }

    /// 40 ways are looked up in an index, and 3 sets are no power of two.
    #[test]
    fn large_and_odd_sets_follow_the_model(operations in operations()) {
        for replacement in [Replacement::Lru, Replacement::Fifo, Replacement::Random { seed: 1 }] {
            let full = CacheConfig { size_bytes: 640, ways: Ways::Full, block_bytes: 16, replacement };
            prop_assert_eq!(difference(&full, &operations), None, "{:?}", full);
            let odd = CacheConfig { size_bytes: 960, ways: Ways::Set(5), block_bytes: 64, replacement };
            prop_assert_eq!(difference(&odd, &operations), None, "{:?}", odd);
        }
    }

    #[test]
    fn counts_add_up(operations in operations()) {
        let mut cache = Cache::new(&config(Ways::Set(4), Replacement::Lru)).expect("valid");
        let (mut lookups, mut misses, mut dirty_out, mut removed) = (0, 0, 0, 0);
        for &operation in &operations {
            match operation {
                Operation::Access(address, access, content) => {
                    lookups += 1;
                    if !cache.access(address, access, content) {
                        misses += 1;
                        let evicted = cache.fill(address, access == Access::Write, content);
                        dirty_out += u64::from(evicted.is_some_and(|line| line.dirty));
                    }
                }
                Operation::Invalidate(address) => {
                    removed += u64::from(cache.invalidate(address).is_some());
                }
            }
        }
        let sum = |count: fn(&casemate_sim::machine::cache::statistics::Counts) -> u64| -> u64 {
            Content::ALL.iter().map(|&content| count(cache.statistics().of(content))).sum()
        };
        prop_assert_eq!(sum(|c| c.lookups()), lookups);
        prop_assert_eq!(sum(|c| c.misses()), misses);
        prop_assert_eq!(sum(|c| c.fills), misses);
        prop_assert_eq!(sum(|c| c.write_backs), dirty_out);
        // What came in either went out or is still there.
        let gone = sum(|c| c.write_backs + c.clean_evictions) + removed;
        prop_assert_eq!(sum(|c| c.fills), gone + cache.valid_lines());
    }
}

/// The comparison can fail: a cache with another policy, or another seed, than its model's is found
/// out.
#[test]
fn the_wrong_policy_is_caught() {
    // Twice the cache's blocks, by a linear congruential generator: hits and misses alike.
    let mut state = 1u64;
    let mut address = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % 2048
    };
    let operations: Vec<_> =
        (0..400).map(|_| Operation::Access(address(), Access::Read, Content::Data)).collect();
    let [lru, fifo, random, tree] = policies();
    let seeded = Replacement::Random { seed: 8 };
    for cache in [lru, fifo, random, tree, seeded] {
        for model in [lru, fifo, random, tree, seeded] {
            let config = config(Ways::Set(4), cache);
            let found = difference_from(model, &config, &operations);
            assert_eq!(found.is_none(), cache == model, "{cache:?} beside {model:?}: {found:?}");
        }
    }
}

/// One set of 16. Blocks 0 to 15, 0 again, then 16: LRU drops 1, FIFO 0, tree-PLRU the lowest way
/// of the half that was not used last, 8.
#[test]
fn victims_are_those_of_the_definitions() {
    for (policy, expected) in
        [(Replacement::Lru, 1), (Replacement::Fifo, 0), (Replacement::TreePlru, 8)]
    {
        let mut cache = Cache::new(&config(Ways::Full, policy)).expect("valid");
        for block in 0..16 {
            assert_eq!(cache.fill(block * 64, false, Content::Data), None);
        }
        assert!(cache.access(0, Access::Read, Content::Data));
        let went = cache.fill(16 * 64, false, Content::Data).map(|line| line.address / 64);
        assert_eq!(went, Some(expected), "{policy:?}");
    }
}

#[test]
fn a_flush_hands_out_what_is_dirty_and_leaves_nothing() {
    let mut cache = Cache::new(&config(Ways::Set(2), Replacement::Lru)).expect("valid");
    cache.fill(0, true, Content::Data);
    cache.fill(64, false, Content::Data);
    cache.fill(128, false, Content::Metadata);
    assert!(cache.access(130, Access::Write, Content::Metadata));
    let evicted = |address, content| Evicted { address, dirty: true, content };
    let expected = vec![evicted(0, Content::Data), evicted(128, Content::Metadata)];
    assert_eq!(cache.flush(), expected);
    assert_eq!(cache.valid_lines(), 0);
    assert!(!cache.contains(64));
}
