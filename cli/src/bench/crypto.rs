//! Page encryption through the engine, beside the library alone.
//!
//! The engine seals and opens with everything that the keeper does for a page: a fresh identifier,
//! the record in the directory, the walk up the tree with its nodes in the trusted cache, and the
//! copy out of untrusted memory. The library encrypts 4 KiB messages in place and does nothing
//! else.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, anyhow};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use casemate_engine::{
    GlobalPageCounter, HeapMemory, KeySet, PAGE_BYTES, PageCipher, PageDirectory, PageRecord,
    Place, SpaceId,
};
use serde::Serialize;

use super::numbers::Spread;
use crate::rng::Rng;

/// Pages in each round; their records and nodes fit the node cache.
const PAGES: u64 = 1024;
const ROUNDS: u64 = 16;
const NODE_CACHE: usize = 256 * 1024;

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
    /// The engine's rate as a share of the library's, the worse of the two.
    pub ratio: f64,
}

/// Measures.
pub fn measure(runs: u32) -> Result<Crypto> {
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..runs {
        let (engine_seal, engine_open) = engine()?;
        let (plain_seal, plain_open) = library()?;
        let all = [engine_seal, engine_open, plain_seal, plain_open];
        for (times, time) in times.iter_mut().zip(all) {
            times.push(time);
        }
    }
    let [engine_seal_us, engine_open_us, plain_seal_us, plain_open_us] =
        times.map(|times| Spread::of(&times));
    let ratio = (plain_seal_us.median / engine_seal_us.median)
        .min(plain_open_us.median / engine_open_us.median);
    Ok(Crypto { engine_seal_us, engine_open_us, plain_seal_us, plain_open_us, ratio })
}

fn per_page(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6 / (PAGES * ROUNDS) as f64
}

/// A page of noise.
fn noise() -> Box<[u8; PAGE_BYTES]> {
    let mut rng = Rng::new(1);
    let mut page = Box::new([0; PAGE_BYTES]);
    for chunk in page.chunks_exact_mut(8) {
        chunk.copy_from_slice(&rng.next().to_le_bytes());
    }
    page
}

fn engine() -> Result<(f64, f64)> {
    // A benchmark's key protects nothing.
    let keys = KeySet::from_master(&[1; 32]);
    let cipher = PageCipher::new(&keys.page);
    let counter = GlobalPageCounter::new();
    let mut directory = PageDirectory::new(HeapMemory::new(), &keys.directory, NODE_CACHE);
    let space = SpaceId(1);
    directory.create_space(space)?;
    let plain = noise();
    let mut crypt = vec![[0_u8; PAGE_BYTES]; PAGES as usize];
    let mut seal = |directory: &mut PageDirectory<HeapMemory>| -> Result<()> {
        for (page, place) in (0..PAGES).zip(&mut crypt) {
            let lpid = counter.next()?;
            let tag = cipher.seal(lpid, black_box(&plain), place);
            let record = PageRecord { lpid, tag, place: Place(page + 1) };
            directory.replace(space, page, Some(record))?;
        }
        Ok(())
    };
    // The first time makes the tables; it is not timed.
    seal(&mut directory)?;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        seal(&mut directory)?;
    }
    let sealed = per_page(start);
    let mut clear = Box::new([0_u8; PAGE_BYTES]);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for (page, place) in (0..PAGES).zip(&crypt) {
            let record =
                directory.lookup(space, page)?.ok_or_else(|| anyhow!("a record was lost"))?;
            cipher.open(record.lpid, &record.tag, place, &mut clear)?;
            black_box(&clear);
        }
    }
    Ok((sealed, per_page(start)))
}

fn library() -> Result<(f64, f64)> {
    let failed = |_| anyhow!("AES-256-GCM failed");
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[1; 32]).map_err(failed)?);
    let nonce = |round: u64, page: u64| {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&(round * PAGES + page).to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    };
    let mut pages = vec![*noise(); PAGES as usize];
    let mut tags = Vec::with_capacity(PAGES as usize);
    let (mut sealing, mut opening) = (0.0, 0.0);
    for round in 0..ROUNDS {
        tags.clear();
        let start = Instant::now();
        for (number, page) in (0..PAGES).zip(&mut pages) {
            let tag = key
                .seal_in_place_separate_tag(nonce(round, number), Aad::empty(), black_box(page))
                .map_err(failed)?;
            tags.push(tag);
        }
        sealing += per_page(start);
        let start = Instant::now();
        for ((number, page), tag) in (0..PAGES).zip(&mut pages).zip(&tags) {
            key.open_in_place_separate_tag(
                nonce(round, number),
                Aad::empty(),
                tag.as_ref(),
                black_box(page),
            )
            .map_err(failed)?;
        }
        opening += per_page(start);
    }
    Ok((sealing, opening))
}
