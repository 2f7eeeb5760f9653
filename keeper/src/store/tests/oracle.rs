//! The stores against a plain map: what was acknowledged can be read back, or there is an error;
//! never other bytes.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use super::faulty::{Faulty, MemoryDisk, mix};
use parking_lot::Mutex;

use super::*;

/// Operations of a run. Six runs and two with threads: more than a million together.
const OPERATIONS: u64 = 200_000;

/// The run's seed: `CASEMATE_SEED` to repeat one, otherwise the time.
fn seed() -> u64 {
    let given = std::env::var("CASEMATE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64)
    });
    // Shown when the test fails.
    println!("repeat with CASEMATE_SEED={seed}");
    seed
}

struct Bits(u64);

impl Bits {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        (mix(self.0) % bound as u64) as usize
    }
}

/// Fills a page with its number, over and over: any mix of two pages is of neither.
pub(super) fn pattern(number: u64, page: &mut Page) {
    page[..8].copy_from_slice(&mix(number).to_le_bytes());
    // By doubling, since this must be fast in a build for tests.
    let mut filled = 8;
    while filled < PAGE_BYTES {
        page.copy_within(..filled, filled);
        filled *= 2;
    }
}

pub(super) fn check(number: u64, page: &Page) {
    let mut expected = [0; PAGE_BYTES];
    pattern(number, &mut expected);
    assert!(*page == expected, "page {number} came back with other bytes");
}

/// What the map knows: held pages with number and count.
#[derive(Default)]
struct Model {
    places: Vec<StorePlace>,
    pages: HashMap<StorePlace, (u64, u32)>,
    next: u64,
}

impl Model {
    fn add(&mut self, place: StorePlace, number: u64) {
        assert!(self.pages.insert(place, (number, 1)).is_none(), "{place:?} was given twice");
        self.places.push(place);
    }

    fn drop_one(&mut self, index: usize) -> StorePlace {
        let place = self.places[index];
        let count = &mut self.pages.get_mut(&place).expect("held").1;
        *count -= 1;
        if *count == 0 {
            self.pages.remove(&place);
            self.places.swap_remove(index);
        }
        place
    }
}

pub(super) fn retain<B: Backend>(store: &Store<B>, place: StorePlace) {
    store.refs.retain(place).expect("the page is held");
}

/// Random operations on about `most` pages; errors are allowed if `may_fail`.
fn run<B: Backend>(store: &Store<B>, bits: &mut Bits, most: usize, may_fail: bool) -> Model {
    let mut model = Model::default();
    let mut page = [0; PAGE_BYTES];
    let fine = |result: Result<(), StoreError>| match result {
        Err(e) if !may_fail => panic!("{e}"),
        other => other.is_ok(),
    };
    for _ in 0..OPERATIONS {
        let held = model.places.len();
        let kind = bits.below(100);
        if held == 0 || (kind < 35 && held < most) {
            model.next += 1;
            let number = model.next;
            match store.put(|page| pattern(number, page)) {
                Ok((place, ())) => model.add(place, number),
                Err(e) => assert!(may_fail, "{e}"),
            }
        } else if kind < 60 {
            let place = model.places[bits.below(held)];
            let number = model.pages[&place].0;
            if kind.is_multiple_of(2) {
                if fine(store.get(place, &mut page)) {
                    check(number, &page);
                }
            } else {
                fine(store.with(place, |page| check(number, page)));
            }
        } else if kind < 63 {
            let first = bits.below(held);
            let places: Vec<_> = model.places[first..].iter().copied().take(40).collect();
            let mut pages = vec![[0; PAGE_BYTES]; places.len()];
            if fine(store.get_many(&places, &mut pages)) {
                places.iter().zip(&pages).for_each(|(p, page)| check(model.pages[p].0, page));
            }
        } else if kind < 70 {
            let place = model.places[bits.below(held)];
            retain(store, place);
            model.pages.get_mut(&place).expect("held").1 += 1;
        } else {
            let place = model.drop_one(bits.below(held));
            store.release_many(&[place]);
        }
    }
    model
}

/// Everything that was acknowledged is there, and nothing is left when it is released.
fn finish<B: Backend>(store: &Store<B>, model: &Model) {
    let mut page = [0; PAGE_BYTES];
    for (&place, &(number, count)) in &model.pages {
        store.get(place, &mut page).expect("nothing fails any more");
        check(number, &page);
        (0..count).for_each(|_| store.release_many(&[place]));
    }
    let stats = store.stats();
    assert_eq!((stats.crypt_bytes, stats.swap_bytes, stats.strays), (0, 0, 0));
}

fn ram_only(config: &StoreConfig) -> Store<MemoryDisk> {
    Store::new(config, None).expect("a store")
}

fn on_file(config: &StoreConfig, rings: bool) -> Store<SwapDisk> {
    let path = new_name();
    let disk = SwapDisk::create(&path).expect("a swap file");
    let disk = if rings { disk } else { disk.without_rings() };
    Store::new(config, Some(SwapFile::new(path, disk))).expect("a store")
}

pub(super) fn limit(pages: u64) -> StoreConfig {
    StoreConfig { crypt_limit_bytes: Some(pages * 4096), ..Default::default() }
}

#[test]
fn ram_alone() {
    let mut bits = Bits(seed());
    for (config, may_fail) in [(StoreConfig::default(), false), (limit(100), true)] {
        let store = ram_only(&config);
        finish(&store, &run(&store, &mut bits, 5000, may_fail));
    }
}

#[test]
fn a_tiny_crypt_over_a_file() {
    let mut bits = Bits(seed());
    for (pages, rings) in [(1, true), (64, true), (64, false)] {
        let store = on_file(&limit(pages), rings);
        finish(&store, &run(&store, &mut bits, 1500, false));
        assert!(store.stats().crypt_peak <= pages * 4096);
    }
}

#[test]
fn a_disk_that_fails_in_every_way() {
    let seed = seed();
    let mut bits = Bits(seed);
    for (pages, rarity, capacity) in [(64, 40, 1 << 40), (16, 4, 1 << 40), (32, 500, 1 << 20)] {
        let disk = Faulty::new(MemoryDisk::default(), seed, rarity, capacity);
        let swap = SwapFile::new("/x".into(), disk);
        let store = Store::new(&limit(pages), Some(swap)).expect("a store");
        let model = run(&store, &mut bits, 1500, true);
        let disk = store.tiers.as_ref().expect("swap").swap().disk();
        disk.mend();
        assert!(disk.failed() > 100, "only {} failures", disk.failed());
        finish(&store, &model);
    }
}

#[test]
fn a_disk_that_stays_full_says_so_and_loses_nothing() {
    let disk = Faulty::new(MemoryDisk::default(), 1, u64::MAX, 1 << 20);
    let store = Store::new(&limit(8), Some(SwapFile::new("/x".into(), disk))).expect("a store");
    let mut model = Model::default();
    let full = loop {
        let number = model.next;
        match store.put(|page| pattern(number, page)) {
            Ok((place, ())) => model.add(place, number),
            Err(e) => break e.to_string(),
        }
        model.next += 1;
    };
    assert!(!store.tiers.as_ref().is_some_and(|tiers| tiers.prepare(1, &store.crypt, &store.refs)));
    assert_eq!(model.places.len(), 256 + 8);
    assert!(
        full.starts_with("swap file /x: no space left after 1.0 MiB; give it more room"),
        "{full}"
    );
    finish(&store, &model);
}

/// Threads put, share and release pages over a Crypt far too small for them.
fn threads<B: Backend>(store: &Store<B>, seed: u64, may_fail: bool) {
    let shared: Mutex<Vec<(StorePlace, u64)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let shared = &shared;
            scope.spawn(move || {
                let mut bits = Bits(mix(seed ^ thread));
                let mut own: Vec<(StorePlace, u64)> = Vec::new();
                let mut page = [0; PAGE_BYTES];
                for step in 0..30_000u64 {
                    match bits.below(10) {
                        0..4 if own.len() < 200 => {
                            let number = (thread << 32) | step;
                            match store.put(|page| pattern(number, page)) {
                                Ok((place, ())) => own.push((place, number)),
                                Err(e) => assert!(may_fail, "{e}"),
                            }
                        }
                        4..7 if !own.is_empty() => {
                            let (place, number) = own[bits.below(own.len())];
                            match store.get(place, &mut page) {
                                Ok(()) => check(number, &page),
                                Err(e) => assert!(may_fail, "{e}"),
                            }
                        }
                        // What another thread wrote is taken over, or what is ours handed on.
                        7 if !own.is_empty() => {
                            let it = own[bits.below(own.len())];
                            retain(store, it.0);
                            shared.lock().push(it);
                        }
                        8 => own.extend(shared.lock().pop()),
                        _ if !own.is_empty() => {
                            let (place, _) = own.swap_remove(bits.below(own.len()));
                            store.release_many(&[place]);
                        }
                        _ => {}
                    }
                }
                own.iter().for_each(|(place, _)| store.release_many(&[*place]));
            });
        }
    });
    shared.into_inner().iter().for_each(|(place, _)| store.release_many(&[*place]));
    let stats = store.stats();
    assert_eq!((stats.crypt_bytes, stats.swap_bytes, stats.strays), (0, 0, 0));
    // One page for each thread that fills may be beyond the limit.
    assert!(stats.crypt_peak <= (24 + 4) * 4096, "{stats:?}");
}

#[test]
fn threads_share_pages_while_they_move() {
    let seed = seed();
    threads(&on_file(&limit(24), true), seed, false);
    let disk = Faulty::new(MemoryDisk::default(), seed, 30, 1 << 40);
    let swap = SwapFile::new("/x".into(), disk);
    threads(&Store::new(&limit(24), Some(swap)).expect("a store"), seed, true);
}
