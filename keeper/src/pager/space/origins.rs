//! What pages hold that the program has not written, or has dropped, where that is not zeros: in
//! memory that took the place of a private mapping of a file.

use super::Vpn;
use crate::sys::file_pages::FilePages;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, Clone)]
struct Part {
    end: Vpn,
    file: Arc<FilePages>,
    /// The number of its first page in the file.
    first: u64,
}

/// Where such a page comes from.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The file.
    pub file: Arc<FilePages>,
    /// The page's number in it.
    pub number: u64,
    /// So many pages from this one on are of the file in order.
    pub pages: u64,
}

/// Ranges of pages that begin as pages of files.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// First page -> the rest; disjoint.
    parts: BTreeMap<Vpn, Part>,
}

impl Origins {
    /// A range begins as pages of `file`, from that of number `first` on.
    pub fn set(&mut self, range: &Range<Vpn>, file: &Arc<FilePages>, first: u64) {
        self.clear(range);
        if !range.is_empty() {
            let file = Arc::clone(file);
            self.parts.insert(range.start, Part { end: range.end, file, first });
        }
    }

    /// A range begins as zeros.
    pub fn clear(&mut self, range: &Range<Vpn>) {
        while let Some((&start, part)) = self.parts.range(..range.end).next_back() {
            if part.end <= range.start {
                break;
            }
            let part = part.clone();
            self.parts.remove(&start);
            if part.end > range.end {
                let first = part.first + (range.end - start);
                self.parts.insert(range.end, Part { first, ..part.clone() });
            }
            if start < range.start {
                self.parts.insert(start, Part { end: range.start, ..part });
            }
        }
    }

    /// What is said of `source` holds from `to` on as well.
    pub fn copy(&mut self, source: &Range<Vpn>, to: Vpn) {
        let within: Vec<(Range<Vpn>, Part)> = self
            .parts
            .range(..source.end)
            .filter(|(_, part)| part.end > source.start)
            .map(|(&start, part)| {
                let common = start.max(source.start)..part.end.min(source.end);
                let first = part.first + (common.start - start);
                (common, Part { first, ..part.clone() })
            })
            .collect();
        self.clear(&(to..to + (source.end - source.start)));
        for (range, part) in within {
            let target = range.start - source.start + to..range.end - source.start + to;
            self.set(&target, &part.file, part.first);
        }
    }

    /// Where a page comes from; none if it begins as zeros.
    pub fn of(&self, vpn: Vpn) -> Option<Origin> {
        let (&start, part) = self.parts.range(..=vpn).next_back()?;
        (vpn < part.end).then(|| Origin {
            file: Arc::clone(&part.file),
            number: part.first + (vpn - start),
            pages: part.end - vpn,
        })
    }

    /// Whether a page does not begin as zeros.
    pub fn contains(&self, vpn: Vpn) -> bool {
        self.parts.range(..=vpn).next_back().is_some_and(|(_, part)| vpn < part.end)
    }

    /// How many of `pages` from `vpn` on begin as zeros, without a gap.
    pub fn zeros_from(&self, vpn: Vpn, pages: u64) -> u64 {
        if self.contains(vpn) {
            return 0;
        }
        let next = self.parts.range(vpn..).next();
        next.map_or(pages, |(&start, _)| pages.min(start - vpn))
    }

    /// The first page of a range that does not begin as zeros.
    pub fn first_in(&self, range: &Range<Vpn>) -> Option<Vpn> {
        let zeros = self.zeros_from(range.start, range.end.saturating_sub(range.start));
        Some(range.start + zeros).filter(|first| *first < range.end)
    }

    /// Whether any page of a range does not begin as zeros.
    pub fn touches(&self, range: &Range<Vpn>) -> bool {
        self.first_in(range).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::file_pages::FilePages;
    use casemate_core::random::Random;

    const PAGES: usize = 150;

    #[test]
    fn origins_agree_with_a_page_by_page_model() {
        let files: Vec<Arc<FilePages>> =
            (0..3).map(|_| Arc::new(FilePages::of_nothing())).collect();
        let mut random = Random::new(1);
        let mut origins = Origins::default();
        let mut model: Vec<Option<(usize, u64)>> = vec![None; PAGES];
        for step in 0..20_000 {
            let start = random.below(100);
            let range = start..start + random.below(20);
            let pages = range.start as usize..range.end as usize;
            match random.below(3) {
                0 => {
                    origins.clear(&range);
                    model[pages].fill(None);
                }
                1 => {
                    let (file, first) = (random.below(3) as usize, random.below(1000));
                    origins.set(&range, &files[file], first);
                    for (i, page) in model[pages].iter_mut().enumerate() {
                        *page = Some((file, first + i as u64));
                    }
                }
                _ => {
                    let to = random.below(100);
                    origins.copy(&range, to);
                    let copied = model[pages].to_vec();
                    model[to as usize..to as usize + copied.len()].clone_from_slice(&copied);
                }
            }
            for (vpn, expected) in model.iter().enumerate() {
                let found = origins.of(vpn as u64).map(|origin| {
                    let file = files.iter().position(|file| Arc::ptr_eq(file, &origin.file));
                    (file.expect("one of them"), origin.number)
                });
                assert_eq!(found, *expected, "step {step}, page {vpn}");
            }
            let (at, most) = (random.below(140), random.below(10));
            let zeros = model[at as usize..].iter().take_while(|page| page.is_none()).count();
            assert_eq!(
                origins.zeros_from(at, most),
                most.min(zeros as u64).min(most),
                "step {step}"
            );
            let asked = at..(at + most).min(PAGES as u64);
            let is_touched =
                model[asked.start as usize..asked.end as usize].iter().any(Option::is_some);
            assert_eq!(origins.touches(&asked), is_touched, "step {step}");
        }
    }
}
