//! A set of page ranges: which parts of an address space are registered with the pager.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint, non-adjacent ranges of page numbers.
#[derive(Debug, Clone, Default)]
pub struct PageRanges {
    /// First page -> one past the last.
    ends: BTreeMap<u64, u64>,
}

impl PageRanges {
    /// Adds a range, joining it with what it touches.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&s, &e)) = self.ends.range(..=end).next_back() {
            if e < start {
                break;
            }
            start = start.min(s);
            end = end.max(e);
            self.ends.remove(&s);
        }
        self.ends.insert(start, end);
    }

    /// Takes a range out.
    pub fn remove(&mut self, range: Range<u64>) {
        while let Some((&s, &e)) = self.ends.range(..range.end).next_back() {
            if e <= range.start {
                break;
            }
            self.ends.remove(&s);
            if s < range.start {
                self.ends.insert(s, range.start);
            }
            if e > range.end {
                self.ends.insert(range.end, e);
            }
        }
    }

    /// Whether a page is inside.
    pub fn contains(&self, page: u64) -> bool {
        self.run_from(page) > 0
    }

    /// How many pages from `page` on are inside without a gap.
    pub fn run_from(&self, page: u64) -> u64 {
        match self.ends.range(..=page).next_back() {
            Some((_, &end)) if end > page => end - page,
            _ => 0,
        }
    }

    /// The parts of `range` that are not inside.
    pub fn missing_from(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let covered = self.run_from(at);
            if covered > 0 {
                at += covered;
                continue;
            }
            let next = self.ends.range(at..).next().map_or(range.end, |(&s, _)| s.min(range.end));
            gaps.push(at..next);
            at = next;
        }
        gaps
    }

    /// The parts of `range` that are inside.
    pub fn common_with(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        for gap in self.missing_from(range.clone()) {
            if at < gap.start {
                parts.push(at..gap.start);
            }
            at = gap.end;
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    /// The part that was in `from` is at `to` now; what was there before is gone.
    pub fn shift(&mut self, from: Range<u64>, to: u64) {
        let parts = self.common_with(&from);
        self.remove(from.clone());
        self.remove(to..to + (from.end - from.start));
        for part in parts {
            self.insert(part.start - from.start + to..part.end - from.start + to);
        }
    }

    /// Nothing inside?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// Whether any page of `range` is inside.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        let last = self.ends.range(..range.end).next_back();
        !range.is_empty() && last.is_some_and(|(_, &end)| end > range.start)
    }

    /// Pages in all.
    pub fn pages(&self) -> u64 {
        self.ends.iter().map(|(s, e)| e - s).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_core::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_plain_set() {
        let mut random = Random::new(1);
        let (mut ranges, mut model) = (PageRanges::default(), BTreeSet::new());
        for step in 0..20_000 {
            let start = random.below(200);
            let range = start..start + random.below(30);
            if random.below(2) == 0 {
                model.extend(range.clone());
                ranges.insert(range);
            } else {
                range.clone().for_each(|p| {
                    model.remove(&p);
                });
                ranges.remove(range);
            }
            assert_eq!(ranges.pages(), model.len() as u64, "step {step}");
            let probe = random.below(230);
            assert_eq!(ranges.contains(probe), model.contains(&probe), "step {step}");
            let asked = probe..probe + random.below(40);
            let gaps: Vec<u64> = ranges.missing_from(asked.clone()).into_iter().flatten().collect();
            let (held, missing): (Vec<u64>, Vec<u64>) =
                asked.clone().partition(|p| model.contains(p));
            assert_eq!(gaps, missing, "step {step}");
            let common: Vec<u64> = ranges.common_with(&asked).into_iter().flatten().collect();
            assert_eq!(ranges.touches(&asked), !held.is_empty(), "step {step}");
            assert_eq!(common, held, "step {step}");
            if step % 7 == 0 {
                let (from, to) = (random.below(200), random.below(200));
                let pages = random.below(30);
                ranges.shift(from..from + pages, to);
                let moved: Vec<u64> = model.range(from..from + pages).copied().collect();
                model.retain(|page| !(from..from + pages).contains(page));
                model.retain(|page| !(to..to + pages).contains(page));
                model.extend(moved.into_iter().map(|page| page - from + to));
                assert!(ranges.iter().flatten().eq(model.iter().copied()), "step {step}");
            }
        }
    }
}
