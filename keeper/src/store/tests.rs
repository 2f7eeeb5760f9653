//! Tests of the stores. `faulty` is a disk that fails on purpose, `oracle` compares with a plain
//! map, `moving` takes a move apart, `measure` prints times.

mod faulty;
mod measure;
mod moving;
mod oracle;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use casemate_pages::StorePlace;

use super::*;

/// A name in the directory for temporary files that nothing else has.
fn new_name() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    std::env::temp_dir().join(format!("casemate-store-{}-{number}", std::process::id()))
}

fn swapping(limit_pages: u64, attackable: bool) -> StoreConfig {
    StoreConfig {
        crypt_limit_bytes: Some(limit_pages * 4096),
        swap: Some(new_name()),
        attackable,
        ..Default::default()
    }
}

fn put(store: &PageStore, byte: u8) -> StorePlace {
    store.put(|page| page.fill(byte)).expect("there is room").0
}

fn got(store: &PageStore, place: StorePlace) -> u8 {
    let mut page = [0; 4096];
    store.get(place, &mut page).expect("the page is held");
    assert!(page.iter().all(|b| *b == page[0]));
    page[0]
}

#[test]
fn a_page_comes_back_until_it_is_released_as_often_as_it_was_held() {
    for config in [
        StoreConfig::default(),
        StoreConfig { attackable: true, ..Default::default() },
        swapping(2, false),
        swapping(2, true),
    ] {
        let store = PageStore::new(config).expect("a store");
        let places: Vec<_> = (0..9).map(|byte| put(&store, byte)).collect();
        for (byte, &place) in (0..).zip(&places) {
            store.retain(place);
            store.release(place);
            assert_eq!(got(&store, place), byte);
            assert_eq!(store.with(place, |page| page[4095]).expect("held"), byte);
            store.release(place);
            let mut page = [0; 4096];
            assert!(matches!(store.get(place, &mut page), Err(StoreError::NotHeld(_))));
        }
        let stats = store.stats();
        assert_eq!((stats.crypt_bytes, stats.swap_bytes, stats.strays), (0, 0, 0));
    }
}

#[test]
fn places_without_a_reference_are_errors_and_not_panics() {
    for config in [StoreConfig::default(), swapping(4, false)] {
        let store = PageStore::new(config).expect("a store");
        put(&store, 1);
        for bad in [0, 2, 500, 1 << 29, 1 << 31, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let mut page = [0; 4096];
            let place = StorePlace(bad);
            assert!(matches!(store.get(place, &mut page), Err(StoreError::NotHeld(_))), "{bad}");
            assert!(store.with(place, |_| ()).is_err());
            assert!(store.get_many(&[place], &mut [page]).is_err());
            store.retain(place);
            store.release(place);
        }
        assert_eq!(store.stats().strays, 16);
        assert_eq!(got(&store, StorePlace(1)), 1);
    }
}

#[test]
fn the_oldest_pages_go_to_swap() {
    let store = PageStore::new(swapping(16, true)).expect("a store");
    let places: Vec<_> = (0..64).map(|byte| put(&store, byte)).collect();
    let stats = store.stats();
    assert_eq!(stats.crypt_bytes + stats.swap_bytes, 64 * 4096);
    assert!(stats.crypt_peak <= 16 * 4096, "{stats:?}");
    let in_swap = |place| matches!(store.whereabouts(place), Some(Whereabouts::Swap(_)));
    let swapped = places.iter().take_while(|place| in_swap(**place)).count();
    assert_eq!(swapped as u64, stats.swap_bytes / 4096);
    assert!(swapped >= 48);
    let mut pages = vec![[0; 4096]; 64];
    store.get_many(&places, &mut pages).expect("all are held");
    assert!((0..64).zip(&pages).all(|(byte, page)| page == &[byte; 4096]));
    assert_eq!(store.stats().swap_pages_in as usize, swapped);
}

#[test]
fn without_swap_a_full_crypt_is_a_sentence() {
    let config = StoreConfig { crypt_limit_bytes: Some(8192), ..Default::default() };
    let store = PageStore::new(config).expect("a store");
    let first = put(&store, 1);
    put(&store, 2);
    let full = store.put(|_| unreachable!("there is no room")).err().map(|e| e.to_string());
    let sentence =
        "the Crypt is full at its limit of 8.0 KiB; raise --crypt-limit or add --swap FILE";
    assert_eq!(full.as_deref(), Some(sentence));
    store.release(first);
    put(&store, 3);
}

#[test]
fn what_is_prepared_for_can_be_stored() {
    let config = StoreConfig { crypt_limit_bytes: Some(100 * 4096), ..Default::default() };
    let store = PageStore::new(config).expect("a store");
    let places: Vec<_> = (0..90).map(|byte| put(&store, byte)).collect();
    assert!(store.prepare(10) && !store.prepare(11) && !store.prepare(usize::MAX));
    assert!(store.spares(10) && !store.spares(11));
    store.release(places[0]);
    assert!(store.prepare(11) && store.spares(11));
    // Without a limit a page has room, whatever it takes; with a swap file, as the disk has.
    let store = PageStore::new(StoreConfig::default()).expect("a store");
    assert!(store.prepare(5000) && store.spares(u64::MAX));
    assert_eq!(store.stats().crypt_bytes, 0);
    let store = PageStore::new(swapping(100, false)).expect("a store");
    for byte in 0..90 {
        put(&store, byte);
    }
    assert!(store.prepare(1000) && store.spares(1000) && !store.spares(u64::MAX));
    assert!(store.stats().crypt_bytes <= 50 * 4096, "half of the Crypt is free");
}

#[test]
fn a_fill_that_panics_stores_nothing() {
    for config in [StoreConfig::default(), swapping(1, false)] {
        let store = PageStore::new(config).expect("a store");
        let panicked = catch_unwind(AssertUnwindSafe(|| store.put(|_| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(store.stats().crypt_bytes, 0);
        assert_eq!(got(&store, put(&store, 7)), 7);
    }
}

#[test]
fn the_swap_file_is_private_and_has_no_name() {
    let config = swapping(1, true);
    let path = config.swap.clone().expect("a name");
    let store = PageStore::new(config).expect("a store");
    assert!(fs::symlink_metadata(&path).is_err());
    let fd = store.adversary_fds().and_then(|fds| fds.swap).expect("an open file");
    let file = fs::File::from(fd.try_clone_to_owned().expect("a copy"));
    let metadata = file.metadata().expect("metadata");
    assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o600, 0));
}

#[test]
fn a_swap_file_that_exists_is_left_alone() {
    let config = swapping(1, false);
    let path = config.swap.clone().expect("a name");
    fs::write(&path, "precious").expect("a file");
    let link = new_name();
    symlink(&path, &link).expect("a link");
    for path in [&path, &link] {
        let config = StoreConfig { swap: Some(path.clone()), ..config.clone() };
        let refused = PageStore::new(config).err().expect("refused").to_string();
        assert!(refused.contains(&format!("swap file {}", path.display())), "{refused}");
    }
    assert_eq!(fs::read(&path).expect("still there"), b"precious");
    fs::remove_file(path).expect("removed");
    fs::remove_file(link).expect("removed");
}

#[test]
fn only_an_attackable_store_can_be_reached() {
    for mut config in [StoreConfig::default(), swapping(1, false)] {
        let store = PageStore::new(config.clone()).expect("a store");
        let place = put(&store, 1);
        assert!(store.adversary_fds().is_none() && store.whereabouts(place).is_none());
        config.attackable = true;
        config.swap = config.swap.map(|_| new_name());
        let store = PageStore::new(config).expect("a store");
        let places = [put(&store, 1), put(&store, 2)];
        for place in places {
            let fds = store.adversary_fds().expect("reachable");
            let (fd, at) = match store.whereabouts(place).expect("held") {
                Whereabouts::Crypt(at) => (fds.crypt, at),
                Whereabouts::Swap(at) => (fds.swap.expect("a swap file"), at),
            };
            let file = fs::File::from(fd.as_fd().try_clone_to_owned().expect("a copy"));
            file.write_all_at(&[9; 4096], at).expect("written");
            assert_eq!(got(&store, place), 9);
        }
    }
}

#[test]
fn memory_goes_back_to_the_kernel() {
    for attackable in [false, true] {
        let config = StoreConfig { attackable, verified_later: attackable, ..Default::default() };
        let store = PageStore::new(config).expect("a store");
        let places: Vec<_> = (0..20_000).map(|i| put(&store, i as u8)).collect();
        let full = store.stats();
        assert_eq!(full.crypt_bytes, 20_000 * 4096);
        assert!(full.crypt_peak <= full.crypt_bytes + 64 * 4096);
        assert!(full.metadata_bytes <= 20_000 * 16, "{full:?}");
        let kept: Vec<_> = places.iter().copied().step_by(40).collect();
        let gone: Vec<_> = places.iter().copied().filter(|p| !kept.contains(p)).collect();
        store.release_many(&gone);
        let stats = store.stats();
        let bound = stats.crypt_bytes + stats.crypt_bytes / 16 + (1024 + 64) * 4096;
        assert!(stats.crypt_resident_bytes <= bound, "{stats:?}");
        if let Some(fds) = store.adversary_fds() {
            let file = fs::File::from(fds.crypt.try_clone_to_owned().expect("a copy"));
            let blocks = file.metadata().expect("metadata").blocks() * 512;
            assert!(blocks <= bound, "{blocks} bytes are resident, {bound} are allowed");
        }
        for (i, &place) in kept.iter().enumerate() {
            assert_eq!(got(&store, place), (i * 40) as u8);
        }
        for i in 0..20_000 {
            put(&store, i as u8);
        }
    }
}
