//! What the test suites share: seeded random numbers and a model of the page directory.
#![allow(dead_code)] // each suite uses its part

pub mod traffic;

use std::collections::{BTreeMap, BTreeSet};

use casemate_engine::{Lpid, PageRecord, Place, SpaceId, Tag};

/// SplitMix64: small, seeded, the same everywhere.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub fn record(&mut self) -> PageRecord {
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&self.next().to_le_bytes());
        tag[8..].copy_from_slice(&self.next().to_le_bytes());
        PageRecord { lpid: Lpid(self.next()), tag: Tag(tag), place: Place(self.next() | 1) }
    }

    /// A page number: dense low ones, neighbours of table borders, and far ones.
    pub fn vpn(&mut self) -> u64 {
        match self.below(8) {
            0..=3 => self.below(600),
            4 => 0x7f_fff0_0000 + self.below(300),
            5 => (1 << 16) - 150 + self.below(300),
            6 => (self.below(4) << 34) + self.below(3),
            _ => (1 << 52) - 1 - self.below(200),
        }
    }
}

/// Seeds: `CASEMATE_SEED` to repeat one run, otherwise a fixed one.
pub fn seed(default: u64) -> u64 {
    std::env::var("CASEMATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(default)
}

/// Prints the seed if the test fails.
pub struct SeedOnFailure(pub u64);

impl Drop for SeedOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat: CASEMATE_SEED={}", self.0);
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
