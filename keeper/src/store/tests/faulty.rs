//! A disk in memory that fails on purpose.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use casemate_core::random::Random;
use parking_lot::Mutex;

use super::super::backend::{Backend, Run, Source, Target};
use super::super::{PAGE_BYTES, Page};

/// One step of SplitMix64: reproducible bits from any state.
pub(super) fn mix(state: u64) -> u64 {
    Random::new(state).next()
}

/// Pages by offset, and what to do once when the next write is under way.
#[derive(Default)]
pub(super) struct MemoryDisk {
    pages: Mutex<HashMap<u64, Page>>,
    when_written: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl MemoryDisk {
    /// Calls this once, when pages have been written but the store does not know yet.
    pub(super) fn when_written(&self, hook: impl FnOnce() + Send + 'static) {
        *self.when_written.lock() = Some(Box::new(hook));
    }
}

impl Backend for MemoryDisk {
    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.pages.lock().retain(|at, _| !(offset..offset + bytes).contains(at));
        Ok(())
    }

    fn room_bytes(&self) -> u64 {
        u64::MAX
    }

    fn write(&self, runs: &[Run<'_, Source<'_>>], done: &mut Vec<io::Result<usize>>) {
        let mut disk = self.pages.lock();
        for run in runs {
            for (at, page) in (run.offset..).step_by(PAGE_BYTES).zip(run.pages.iter()) {
                disk.insert(at, page.copy());
            }
            done.push(Ok(run.bytes()));
        }
        drop(disk);
        // Other threads use the pages while they move.
        std::thread::yield_now();
        if let Some(hook) = self.when_written.lock().take() {
            hook();
        }
    }

    fn read(&self, runs: &mut [Run<'_, Target<'_>>], done: &mut Vec<io::Result<usize>>) {
        let disk = self.pages.lock();
        for run in runs {
            for (at, page) in (run.offset..).step_by(PAGE_BYTES).zip(run.pages.iter_mut()) {
                page.set(disk.get(&at).unwrap_or(&[0; PAGE_BYTES]));
            }
            done.push(Ok(run.bytes()));
        }
    }
}

/// A decorator: about every `rarity`-th operation fails, in every way that a disk can.
pub(super) struct Faulty<B> {
    disk: B,
    rarity: u64,
    seed: u64,
    operations: AtomicU64,
    failed: AtomicU64,
    mended: AtomicBool,
    capacity: u64,
}

enum Fault {
    None,
    Error(i32),
    /// Does the operation, and claims a part of it.
    Short,
}

impl<B> Faulty<B> {
    pub(super) fn new(disk: B, seed: u64, rarity: u64, capacity: u64) -> Self {
        let (operations, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { disk, rarity, seed, operations, failed, mended: AtomicBool::new(false), capacity }
    }

    /// From now on nothing fails.
    pub(super) fn mend(&self) {
        self.mended.store(true, Relaxed);
    }

    /// How many operations failed.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    fn next(&self) -> Fault {
        let bits = mix(self.seed ^ mix(self.operations.fetch_add(1, Relaxed)));
        if self.mended.load(Relaxed) || !bits.is_multiple_of(self.rarity) {
            return Fault::None;
        }
        self.failed.fetch_add(1, Relaxed);
        match bits >> 61 {
            0 => Fault::Error(libc::EIO),
            1 => Fault::Error(libc::ENOSPC),
            2 => Fault::Error(libc::ENODEV),
            3 => Fault::Error(libc::EINTR),
            4 => Fault::Error(libc::EDQUOT),
            _ => Fault::Short,
        }
    }

    /// What the disk says of runs that were done: page contents after a fault are not relied upon.
    fn spoil(&self, bytes: impl Iterator<Item = usize>, done: &mut [io::Result<usize>]) {
        for (place, bytes) in done.iter_mut().zip(bytes) {
            match self.next() {
                Fault::None => {}
                Fault::Error(code) => *place = Err(io::Error::from_raw_os_error(code)),
                Fault::Short => *place = Ok(mix(bytes as u64) as usize % bytes),
            }
        }
    }
}

impl<B: Backend> Backend for Faulty<B> {
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if offset + bytes > self.capacity {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        match self.next() {
            Fault::Error(code) => Err(io::Error::from_raw_os_error(code)),
            _ => self.disk.reserve(offset, bytes),
        }
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self.next() {
            Fault::Error(code) => Err(io::Error::from_raw_os_error(code)),
            _ => self.disk.discard(offset, bytes),
        }
    }

    fn room_bytes(&self) -> u64 {
        self.capacity.min(self.disk.room_bytes())
    }

    fn write(&self, runs: &[Run<'_, Source<'_>>], done: &mut Vec<io::Result<usize>>) {
        self.disk.write(runs, done);
        self.spoil(runs.iter().map(Run::bytes), done);
    }

    fn read(&self, runs: &mut [Run<'_, Target<'_>>], done: &mut Vec<io::Result<usize>>) {
        self.disk.read(runs, done);
        for (run, place) in runs.iter_mut().zip(&mut *done) {
            let bytes = run.bytes();
            match self.next() {
                Fault::None => continue,
                Fault::Error(code) => *place = Err(io::Error::from_raw_os_error(code)),
                Fault::Short => *place = Ok(mix(bytes as u64) as usize % bytes),
            }
            // What was not read is not there.
            let read = place.as_ref().map_or(0, |bytes| bytes / PAGE_BYTES);
            run.pages.iter_mut().skip(read).for_each(|page| page.set(&[0xee; PAGE_BYTES]));
        }
    }
}
