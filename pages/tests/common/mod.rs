//! What the test suites share: seeded random numbers and a model of the page directory.
#![allow(dead_code, unused_imports)] // each suite uses its part

use std::collections::{BTreeMap, BTreeSet};

use casemate_core::Lpid;
use casemate_pages::{PageRecord, SpaceId, StorePlace, Tag};

pub use casemate_core::random::{Random, SeedOnFailure, seed};

/// What a page directory is asked about.
pub trait PageRandom {
    fn record(&mut self) -> PageRecord;

    /// A page number: dense low ones, neighbours of table borders, and far ones.
    fn vpn(&mut self) -> u64;
}

impl PageRandom for Random {
    fn record(&mut self) -> PageRecord {
        let mut tag = [0; 16];
        self.fill(&mut tag);
        PageRecord { lpid: Lpid(self.next()), tag: Tag(tag), place: StorePlace(self.next() | 1) }
    }

    fn vpn(&mut self) -> u64 {
        match self.below(8) {
            0..=3 => self.below(600),
            4 => 0x7f_fff0_0000 + self.below(300),
            5 => (1 << 16) - 150 + self.below(300),
            6 => (self.below(4) << 34) + self.below(3),
            _ => (1 << 52) - 1 - self.below(200),
        }
    }
}

/// The page directory, as simple as it can be written.
#[derive(Clone, Default)]
pub struct Model {
    pub spaces: BTreeSet<u32>,
    pub records: BTreeMap<(u32, u64), PageRecord>,
}

impl Model {
    pub fn range(&self, space: SpaceId, first: u64, pages: u64) -> Vec<(u64, PageRecord)> {
        let end = first + pages;
        self.records
            .range((space.0, first)..(space.0, end))
            .map(|((_, vpn), record)| (*vpn, *record))
            .collect()
    }

    pub fn replace(
        &mut self,
        space: SpaceId,
        vpn: u64,
        record: Option<PageRecord>,
    ) -> Option<PageRecord> {
        match record {
            Some(record) => self.records.insert((space.0, vpn), record),
            None => self.records.remove(&(space.0, vpn)),
        }
    }

    pub fn remove_range(&mut self, space: SpaceId, first: u64, pages: u64) -> Vec<PageRecord> {
        let gone = self.range(space, first, pages);
        for (vpn, _) in &gone {
            self.records.remove(&(space.0, *vpn));
        }
        gone.into_iter().map(|(_, record)| record).collect()
    }
}
