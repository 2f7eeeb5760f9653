//! The Sequence Number Cache against a list that is searched from end to end.

use casemate_schemes::unit::encryption::{
    Admission, LineName, Replacement, SequenceNumber, SequenceNumberCache, SncShape,
};

use casemate_core::random::{Random, SeedOnFailure, seed};

/// Entries of one set, least recently used first.
struct Naive {
    sets: Vec<Vec<(LineName, SequenceNumber)>>,
    shape: SncShape,
}

impl Naive {
    fn set(&mut self, line: LineName) -> &mut Vec<(LineName, SequenceNumber)> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line.virtual_line % sets) as usize]
    }

    fn remove(&mut self, line: LineName) -> Option<SequenceNumber> {
        let set = self.set(line);
        let at = set.iter().position(|(held, _)| *held == line)?;
        Some(set.remove(at).1)
    }

    fn look_up(&mut self, line: LineName) -> Option<SequenceNumber> {
        let number = self.remove(line)?;
        self.set(line).push((line, number));
        Some(number)
    }

    fn keep(&mut self, line: LineName, number: SequenceNumber) -> Admission {
        let ways = self.shape.ways;
        let replaces = self.shape.replacement == Replacement::LeastRecentlyUsed;
        let known = self.remove(line).is_some();
        let set = self.set(line);
        let mut admission = Admission::Admitted;
        if !known && set.len() == ways {
            if !replaces {
                return Admission::Full;
            }
            let (victim, number) = set.remove(0);
            admission = Admission::Replaced(victim, number);
        }
        set.push((line, number));
        admission
    }
}

#[test]
fn it_holds_what_a_list_holds() {
    let seed = seed(0x57c);
    let _print = SeedOnFailure(seed);
    for (entries, ways) in [(1, 1), (4, 4), (8, 2), (64, 32), (48, 1)] {
        for replacement in [Replacement::LeastRecentlyUsed, Replacement::Never] {
            let shape = SncShape { entries, ways, replacement, ..SncShape::PAPER };
            let mut cache = SequenceNumberCache::new(shape);
            let mut naive = Naive { sets: vec![Vec::new(); entries / ways], shape };
            let mut random = Random::new(seed ^ entries as u64);
            for _ in 0..40_000 {
                let virtual_line = random.below(2 * entries as u64 + 2);
                let line = LineName { tag: random.below(2) as u32, virtual_line };
                let number = SequenceNumber::from_bits(random.next() as u16);
                match random.below(1_000) {
                    0..450 => assert_eq!(cache.look_up(line), naive.look_up(line)),
                    450..900 => assert_eq!(cache.keep(line, number), naive.keep(line, number)),
                    900..998 => assert_eq!(cache.remove(line), naive.remove(line)),
                    _ => {
                        let mut all: Vec<_> =
                            naive.sets.iter_mut().flat_map(std::mem::take).collect();
                        all.sort_unstable_by_key(|(line, _)| *line);
                        assert_eq!(cache.drain(), all);
                    }
                }
                assert_eq!(cache.len(), naive.sets.iter().map(Vec::len).sum::<usize>());
                assert_eq!(cache.has_room(line), naive.set(line).len() < ways);
            }
        }
    }
}

/// OTP/SNC, section 5.1: 64 KB of two bytes each cover 32 K lines.
#[test]
fn the_papers_cache_has_32_k_entries() {
    assert_eq!(SncShape::PAPER.entries * 2, 64 << 10);
    assert!(SncShape::PAPER.is_sound());
}
