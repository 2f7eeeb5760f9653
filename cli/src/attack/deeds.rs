//! The attacks themselves, on stores that are only reached from outside.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};

use super::Change;
use super::args::AttackKind;
use super::protocol::Target;
use crate::failure::Failure;
use casemate_core::PAGE_BYTES;
use casemate_core::random::Random;

/// A line of metadata: what the engine verifies at once.
const LINE: usize = casemate_pages::directory_shape::LINE_BYTES;
/// Pages that are drawn before all are looked through for one with content.
const DRAWS: usize = 16;
/// Pages that a replay remembers.
const REPLAY_PAGES: usize = 4096;
/// Pages that a rollback remembers at most, of each store: 64 MiB.
const ROLLBACK_PAGES: usize = 16 * 1024;
/// Looks at the stores, a millisecond or more apart, before an attack that waits gives up.
const PATIENCE: usize = 30_000;

/// A page, aligned so that a swap file opened with O_DIRECT takes it too.
#[derive(Clone, PartialEq, Eq)]
#[repr(C, align(4096))]
pub struct Page([u8; PAGE_BYTES]);

impl Page {
    fn is_zero(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }
}

/// An untrusted store: a file of pages, read and written beside the keeper.
pub struct Store {
    name: &'static str,
    file: File,
    pages: usize,
}

impl Store {
    /// The first `bytes` of a file, as far as it goes.
    pub fn new(name: &'static str, file: File, bytes: u64) -> Result<Self> {
        let length = file.metadata().with_context(|| format!("cannot look at the {name}"))?.len();
        Ok(Store { name, file, pages: (bytes.min(length) / PAGE_BYTES as u64) as usize })
    }

    /// A page; none where the store has ended since.
    fn read(&self, page: usize) -> Result<Option<Box<Page>>> {
        let mut content = Box::new(Page([0; PAGE_BYTES]));
        let read = self
            .file
            .read_at(&mut content.0, (page * PAGE_BYTES) as u64)
            .with_context(|| format!("cannot read the {}", self.name))?;
        Ok((read == PAGE_BYTES).then_some(content))
    }

    fn write(&self, page: usize, content: &Page) -> Result<()> {
        self.file
            .write_all_at(&content.0, (page * PAGE_BYTES) as u64)
            .with_context(|| format!("cannot write to the {}", self.name))
    }

    /// A random page with content, other than `except`.
    fn random_page(
        &self,
        rng: &mut Random,
        except: Option<usize>,
    ) -> Result<Option<(usize, Box<Page>)>> {
        if self.pages == 0 {
            return Ok(None);
        }
        // What follows empty pages would be drawn more often than others.
        let draws: Vec<usize> = (0..DRAWS).map(|_| rng.index(self.pages)).collect();
        for page in draws.into_iter().chain(0..self.pages) {
            if Some(page) == except {
                continue;
            }
            if let Some(content) = self.read(page)?.filter(|content| !content.is_zero()) {
                return Ok(Some((page, content)));
            }
        }
        Ok(None)
    }

    /// Up to `most` pages with content, evenly over the store from a random start.
    fn sample(&self, rng: &mut Random, most: usize) -> Result<Vec<(usize, Box<Page>)>> {
        let mut sample = Vec::new();
        if self.pages == 0 {
            return Ok(sample);
        }
        let stride = self.pages.div_ceil(most).max(1);
        let start = rng.index(stride);
        for page in (start..self.pages).step_by(stride) {
            if let Some(content) = self.read(page)?.filter(|content| !content.is_zero()) {
                sample.push((page, content));
            }
        }
        Ok(sample)
    }

    /// Those of the sample whose content is another now, and not gone.
    fn changed<'a>(&self, sample: &'a [(usize, Box<Page>)]) -> Result<Vec<&'a (usize, Box<Page>)>> {
        let mut changed = Vec::new();
        for entry in sample {
            if self.read(entry.0)?.is_some_and(|now| now != entry.1 && !now.is_zero()) {
                changed.push(entry);
            }
        }
        Ok(changed)
    }

    fn change(&self, offset: usize, bytes: usize, what: impl Into<String>) -> Change {
        Change { store: self.name, offset: offset as u64, bytes: bytes as u64, what: what.into() }
    }
}

/// Does the deed; returns what was changed.
pub fn attack(target: &Target, kind: AttackKind, seed: u64, flips: u64) -> Result<Vec<Change>> {
    let rng = &mut Random::new(seed);
    match kind {
        AttackKind::Flip => {
            let each: Result<Vec<_>> = (0..flips).map(|_| flip(target, rng)).collect();
            Ok(each?.concat())
        }
        AttackKind::Splice => splice(target, rng),
        AttackKind::Replay => replay(target, rng),
        AttackKind::Rollback => rollback(target, rng),
        AttackKind::Metadata => metadata(&target.metadata, rng),
    }
}

/// The stores of ciphertext.
fn ciphertext(target: &Target) -> impl Iterator<Item = &Store> {
    std::iter::once(&target.crypt).chain(&target.swap)
}

fn nothing_there() -> Failure {
    Failure::no(
        "the run has put no ciphertext out yet: give it a smaller --clear, or attack it later",
    )
}

fn flip(target: &Target, rng: &mut Random) -> Result<Vec<Change>> {
    for store in ciphertext(target) {
        if let Some((page, content)) = store.random_page(rng, None)? {
            let byte = rng.index(PAGE_BYTES);
            return flip_bit(store, page, content, byte, rng);
        }
    }
    Err(nothing_there().into())
}

fn metadata(store: &Store, rng: &mut Random) -> Result<Vec<Change>> {
    let Some((page, content)) = store.random_page(rng, None)? else {
        return Err(nothing_there().into());
    };
    let lines = PAGE_BYTES / LINE;
    let start = rng.index(lines);
    let line = (0..lines)
        .map(|step| (start + step) % lines)
        .find(|line| content.0[line * LINE..][..LINE].iter().any(|byte| *byte != 0))
        .unwrap_or(start);
    let byte = line * LINE + rng.index(LINE);
    flip_bit(store, page, content, byte, rng)
}

fn flip_bit(
    store: &Store,
    page: usize,
    mut content: Box<Page>,
    byte: usize,
    rng: &mut Random,
) -> Result<Vec<Change>> {
    let bit = rng.index(8);
    content.0[byte] ^= 1 << bit;
    store.write(page, &content)?;
    Ok(vec![store.change(page * PAGE_BYTES + byte, 1, format!("flipped bit {bit}"))])
}

fn splice(target: &Target, rng: &mut Random) -> Result<Vec<Change>> {
    for store in ciphertext(target) {
        let Some((one, one_content)) = store.random_page(rng, None)? else { continue };
        let Some((two, two_content)) = store.random_page(rng, Some(one))? else { continue };
        store.write(one, &two_content)?;
        store.write(two, &one_content)?;
        let swapped =
            |with: usize| format!("swapped with the page at offset {:#x}", with * PAGE_BYTES);
        return Ok(vec![
            store.change(one * PAGE_BYTES, PAGE_BYTES, swapped(two)),
            store.change(two * PAGE_BYTES, PAGE_BYTES, swapped(one)),
        ]);
    }
    Err(nothing_there().into())
}

fn replay(target: &Target, rng: &mut Random) -> Result<Vec<Change>> {
    let mut samples = Vec::new();
    for store in ciphertext(target) {
        samples.push((store, store.sample(rng, REPLAY_PAGES)?));
    }
    if samples.iter().all(|(_, sample)| sample.is_empty()) {
        return Err(nothing_there().into());
    }
    for _ in 0..PATIENCE {
        for (store, sample) in &samples {
            if let Some((page, old)) = store.changed(sample)?.first() {
                store.write(*page, old)?;
                return Ok(vec![store.change(
                    page * PAGE_BYTES,
                    PAGE_BYTES,
                    "put the old content back",
                )]);
            }
        }
        if target.ended() {
            break;
        }
    }
    Err(nothing_changed().into())
}

fn nothing_changed() -> Failure {
    Failure::no("nothing that was remembered changed while the run lasted or patience held")
}

fn rollback(target: &Target, rng: &mut Random) -> Result<Vec<Change>> {
    let mut samples = vec![(&target.metadata, target.metadata.sample(rng, ROLLBACK_PAGES)?)];
    for store in ciphertext(target) {
        samples.push((store, store.sample(rng, ROLLBACK_PAGES)?));
    }
    if samples[1..].iter().all(|(_, sample)| sample.is_empty()) {
        return Err(nothing_there().into());
    }
    for _ in 0..PATIENCE {
        // A rollback is one of data and metadata together: wait until both have moved on.
        let mut moved = Vec::new();
        for (store, sample) in &samples {
            moved.push((*store, store.changed(sample)?));
        }
        if !moved[0].1.is_empty() && moved[1..].iter().any(|(_, pages)| !pages.is_empty()) {
            let mut changes = Vec::new();
            for (store, pages) in moved {
                for (page, old) in &pages {
                    store.write(*page, old)?;
                }
                changes.extend(ranges(store, &pages));
            }
            return Ok(changes);
        }
        if target.ended() {
            break;
        }
    }
    Err(nothing_changed().into())
}

/// Neighbouring pages as one change.
fn ranges(store: &Store, pages: &[&(usize, Box<Page>)]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (page, _) in pages {
        let offset = (page * PAGE_BYTES) as u64;
        match changes.last_mut() {
            Some(last) if last.offset + last.bytes == offset => last.bytes += PAGE_BYTES as u64,
            _ => changes.push(store.change(
                page * PAGE_BYTES,
                PAGE_BYTES,
                "put the old content back",
            )),
        }
    }
    changes
}
