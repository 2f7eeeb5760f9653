//! How many records there are of pages that were sealed before the present epoch.

use casemate_core::Lpid;

use crate::page_record::PageRecord;

/// Exact counts of a directory's records, wherever they are moved.
#[derive(Default)]
pub(crate) struct EpochCounts {
    /// The first LPID of the present epoch.
    first: u64,
    /// Records with earlier ones.
    before: u64,
    all: u64,
}

impl EpochCounts {
    /// LPIDs from `first` on are of a new epoch. No record has one yet.
    pub fn begin(&mut self, first: Lpid) {
        (self.first, self.before) = (first.0, self.all);
    }

    /// Records of pages that were sealed before the present epoch.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// All records.
    pub fn all(&self) -> u64 {
        self.all
    }

    pub fn add(&mut self, record: &PageRecord) {
        self.all += 1;
        self.before += u64::from(record.lpid.0 < self.first);
    }

    pub fn remove(&mut self, record: &PageRecord) {
        self.all = self.all.saturating_sub(1);
        self.before = self.before.saturating_sub(u64::from(record.lpid.0 < self.first));
    }
}
