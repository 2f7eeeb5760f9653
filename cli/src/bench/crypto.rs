//! Page encryption through the engine, beside the library alone.
//!
//! The engine seals and opens with everything that the keeper does for a page: a fresh identifier,
//! the record in the directory, the walk up the tree with its nodes in the trusted cache, and the
//! copy into or out of untrusted memory. The library encrypts 4 KiB messages in place and does
//! nothing else. Messages stay in the processor's cache on both sides: what memory costs is not
//! what is asked here. Samples of all four are taken in turn, so that a slow spell meets them all.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, anyhow};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use casemate_core::{GlobalPageCounter, Lpid};
use casemate_pages::bytes::BytesPort;
use casemate_pages::page_protocol::{page_in, page_out};
use casemate_pages::{
    HeapMemory, KeySet, PAGE_BYTES, PageCipher, PageDirectory, PageRecord, SpaceId, StorePlace,
    Tag, Verification,
};
use serde::Serialize;

use super::numbers::Spread;
use casemate_core::random::Random;

/// Pages whose records are used in turn; they and their nodes fit the node cache.
const PAGES: u64 = 1024;
const NODE_CACHE: usize = 256 * 1024;
const SAMPLES: usize = 21;
const CALLS: u64 = 1000;
/// Pages of the large working set, 4 GiB: most of a walk is not in the node cache.
const MANY_PAGES: u64 = 1 << 20;

/// Microseconds per page.
#[derive(Serialize)]
pub struct Crypto {
    /// Through the engine.
    pub engine_seal_us: Spread,
    /// Through the engine.
    pub engine_open_us: Spread,
    /// AES-256-GCM alone.
    pub plain_seal_us: Spread,
    /// AES-256-GCM alone.
    pub plain_open_us: Spread,
    /// A lookup at random among 4 GiB, with the same node cache.
    pub cold_lookup_us: Spread,
    /// The same where a log hash verifies the directory.
    pub cold_lookup_logged_us: Spread,
    /// A check of that log hash: the records of 4 GiB, in milliseconds.
    pub check_ms: Spread,
    /// The engine's rate as a share of the library's, the worse of the two.
    pub ratio: f64,
}

type Page = [u8; PAGE_BYTES];
type Call<'a> = Box<dyn FnMut(u64) -> Result<()> + 'a>;

/// Measures; each run counts with the medians of its samples.
pub fn measure(runs: u32) -> Result<Crypto> {
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..runs {
        for (times, time) in times.iter_mut().zip(run()?) {
            times.push(time);
        }
    }
    let [engine_seal_us, engine_open_us, plain_seal_us, plain_open_us] =
        times.map(|times| Spread::of(&times));
    let ratio = (plain_seal_us.median / engine_seal_us.median)
        .min(plain_open_us.median / engine_open_us.median);
    let [cold_lookup_us, cold_lookup_logged_us, check_ms] = cold_lookups(runs)?;
    Ok(Crypto {
        engine_seal_us,
        engine_open_us,
        plain_seal_us,
        plain_open_us,
        cold_lookup_us,
        cold_lookup_logged_us,
        check_ms,
        ratio,
    })
}

/// Microseconds per page: engine's seal and open, library's seal and open.
pub fn run() -> Result<[f64; 4]> {
    // A benchmark's key protects nothing.
    let keys = KeySet::from_master(&[1; 32]);
    let cipher = PageCipher::new(&keys.page);
    let counter = GlobalPageCounter::new();
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[2; 32]).map_err(library_failed)?);
    let plain = noise();
    let mut crypt: Box<Page> = Box::new([0; PAGE_BYTES]);
    let (mut private, mut sealed, mut message) = (plain.clone(), plain.clone(), plain.clone());
    let mut for_seal = directory(&keys, Verification::Tree, ANY_RECORD, PAGES)?;
    let to = (PLACE, &mut *crypt);
    let sample = page_out(&mut for_seal, &cipher, &counter, (SPACE, 0), &mut private, to)?;
    let mut for_open = directory(&keys, Verification::Tree, sample, PAGES)?;
    let mut engine_seal = |call: u64| -> Result<()> {
        // What was sealed before is sealed again, as the library does it.
        let (page, to) = ((SPACE, call % PAGES), (PLACE, black_box(&mut *sealed)));
        page_out(&mut for_seal, &cipher, &counter, page, black_box(&mut private), to)?;
        Ok(())
    };
    let mut opened = plain.clone();
    let mut engine_open = |call: u64| -> Result<()> {
        let (page, cipher_at) = ((SPACE, call % PAGES), |_| black_box(&*crypt));
        let record = page_in(&mut for_open, &cipher, page, cipher_at, black_box(&mut *opened))?;
        record.map(drop).ok_or_else(|| anyhow!("a record was lost"))
    };
    let mut plain_seal = |call: u64| -> Result<()> {
        let message = black_box(&mut message[..]);
        let tag = key.seal_in_place_separate_tag(nonce(call), Aad::empty(), message);
        let _tag = black_box(tag.map_err(library_failed)?);
        Ok(())
    };
    let mut library_crypt = noise();
    let library_tag = key
        .seal_in_place_separate_tag(nonce(0), Aad::empty(), &mut library_crypt[..])
        .map_err(library_failed)?;
    let mut library_message: Box<Page> = Box::new([0; PAGE_BYTES]);
    let mut plain_open = |_: u64| -> Result<()> {
        // Opening in place would leave nothing to open the next time.
        key.open_separate_gather(
            nonce(0),
            Aad::empty(),
            black_box(&library_crypt[..]),
            library_tag.as_ref(),
            black_box(&mut library_message[..]),
        )
        .map_err(library_failed)
    };
    medians([
        Box::new(&mut engine_seal),
        Box::new(&mut engine_open),
        Box::new(&mut plain_seal),
        Box::new(&mut plain_open),
    ])
}

/// Takes samples of all calls in turn; the median of each, per call. The first warms up.
fn medians(mut calls: [Call<'_>; 4]) -> Result<[f64; 4]> {
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut number = 0;
    for sample in 0..=SAMPLES {
        for (call, times) in calls.iter_mut().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..CALLS {
                call(number)?;
                number += 1;
            }
            if sample > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6 / CALLS as f64);
            }
        }
    }
    Ok(times.map(|times| Spread::of(&times).median))
}

/// Microseconds of a lookup whose walk is mostly fetched and verified anew, by a tree and by a log
/// hash in turn, and milliseconds of a check of the latter.
fn cold_lookups(runs: u32) -> Result<[Spread; 3]> {
    let keys = KeySet::from_master(&[1; 32]);
    let mut by_tree = directory(&keys, Verification::Tree, ANY_RECORD, MANY_PAGES)?;
    let mut by_log = directory(&keys, Verification::LogHash, ANY_RECORD, MANY_PAGES)?;
    let mut rng = Random::new(1);
    let mut samples: [Vec<f64>; 3] = Default::default();
    for _ in 0..runs {
        for (directory, samples) in [&mut by_tree, &mut by_log].into_iter().zip(&mut samples) {
            let start = Instant::now();
            for _ in 0..CALLS * SAMPLES as u64 {
                let page = rng.index(MANY_PAGES as usize) as u64;
                black_box(directory.lookup(SPACE, page)?);
            }
            samples.push(start.elapsed().as_secs_f64() * 1e6 / (CALLS * SAMPLES as u64) as f64);
        }
        let start = Instant::now();
        black_box(by_log.check()?);
        samples[2].push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(samples.map(|samples| Spread::of(&samples)))
}

const SPACE: SpaceId = SpaceId(1);
const PLACE: StorePlace = StorePlace(1);
const ANY_RECORD: PageRecord = PageRecord { lpid: Lpid(1), tag: Tag([1; 16]), place: PLACE };

fn directory(
    keys: &KeySet,
    how: Verification,
    record: PageRecord,
    pages: u64,
) -> Result<PageDirectory<HeapMemory>> {
    let port = BytesPort::new(HeapMemory::new(), &keys.directory);
    let mut directory = PageDirectory::verified_by(how, port, NODE_CACHE);
    directory.create_space(SPACE)?;
    for page in 0..pages {
        directory.replace(SPACE, page, Some(record))?;
    }
    Ok(directory)
}

fn library_failed(_: aws_lc_rs::error::Unspecified) -> anyhow::Error {
    anyhow!("AES-256-GCM failed")
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// A page of noise.
fn noise() -> Box<Page> {
    let mut rng = Random::new(1);
    let mut page = Box::new([0; PAGE_BYTES]);
    for chunk in page.chunks_exact_mut(8) {
        chunk.copy_from_slice(&rng.next().to_le_bytes());
    }
    page
}
