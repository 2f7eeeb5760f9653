//! What the program's memory must hold: words that were stored, kept beside the simulated pages and
//! untouched by the pager. While contents are being advised away several words may be right.

use std::collections::BTreeMap;
use std::ops::Range;

/// Words of a page that the program uses.
pub const WORDS: usize = 4;
/// Where they lie.
pub const OFFSETS: [u64; WORDS] = [0, 1024, 2048 + 8, 4096 - 8];

/// What may be read.
#[derive(Debug, Clone, Default)]
struct Word {
    /// One of these; never empty but for 0.
    values: Vec<u64>,
    /// So many of them are from before the advice that is being given.
    old: usize,
}

impl Word {
    fn allowed(&self) -> &[u64] {
        if self.values.is_empty() { &[0] } else { &self.values }
    }
}

#[derive(Debug, Clone, Default)]
struct Page {
    words: [Word; WORDS],
    /// Its contents are being advised away.
    in_flux: bool,
}

/// The contents of one address space, by page; what is not in it is zero.
#[derive(Debug, Clone, Default)]
pub struct Truth(BTreeMap<u64, Page>);

impl Truth {
    /// Whether `value` may be read. If so, and nothing changes the page, it is what will be read
    /// again.
    pub fn loaded(&mut self, vpn: u64, word: usize, value: u64) -> Result<(), String> {
        let Some(page) = self.0.get_mut(&vpn) else {
            return if value == 0 { Ok(()) } else { Err("0".to_owned()) };
        };
        if !page.words[word].allowed().contains(&value) {
            return Err(format!("{:#x?}", page.words[word].allowed()));
        }
        if !page.in_flux {
            page.words[word].values = vec![value];
        }
        Ok(())
    }

    pub fn stored(&mut self, vpn: u64, word: usize, value: u64) {
        let page = self.0.entry(vpn).or_default();
        if page.in_flux {
            page.words[word].values.push(value);
        } else {
            page.words[word].values = vec![value];
        }
    }

    /// The contents of these pages are about to be dropped, at some moment before
    /// [`Truth::settle`].
    pub fn unsettle(&mut self, range: &Range<u64>) {
        for vpn in range.clone() {
            let page = self.0.entry(vpn).or_default();
            if std::mem::replace(&mut page.in_flux, true) {
                continue;
            }
            for word in &mut page.words {
                word.values = word.allowed().to_vec();
                word.old = word.values.len();
                word.values.push(0);
            }
        }
    }

    /// They have been dropped: what was there before is not there any more.
    pub fn settle(&mut self, range: &Range<u64>) {
        for (_, page) in self.0.range_mut(range.clone()) {
            if std::mem::take(&mut page.in_flux) {
                for word in &mut page.words {
                    word.values.drain(..word.old);
                }
            }
        }
    }

    /// The kernel dropped a page for an advice that was given while something else was there.
    pub fn dropped_late(&mut self, vpn: u64) {
        if self.0.get(&vpn).is_some_and(|page| !page.in_flux) {
            self.0.remove(&vpn);
        }
    }

    /// Nothing is there any more.
    pub fn clear(&mut self, range: &Range<u64>) {
        let gone: Vec<u64> = self.0.range(range.clone()).map(|(vpn, _)| *vpn).collect();
        gone.iter().for_each(|vpn| drop(self.0.remove(vpn)));
    }

    /// What was at `from` is at `to`.
    pub fn shift(&mut self, from: &Range<u64>, to: u64) {
        let moved: Vec<u64> = self.0.range(from.clone()).map(|(vpn, _)| *vpn).collect();
        let moved: Vec<(u64, Page)> =
            moved.into_iter().filter_map(|vpn| Some((vpn, self.0.remove(&vpn)?))).collect();
        self.clear(&(to..to + (from.end - from.start)));
        for (vpn, mut page) in moved {
            page.in_flux = false;
            self.0.insert(vpn - from.start + to, page);
        }
    }

    /// For the child of a fork.
    pub fn copied(&self) -> Truth {
        let mut copy = self.clone();
        copy.0.values_mut().for_each(|page| page.in_flux = false);
        copy
    }
}
