//! Pages on their way to swap, one step at a time.

use std::sync::Arc;

use super::faulty::{Faulty, MemoryDisk};
use super::oracle::{check, limit, pattern, retain};
use super::*;

#[test]
fn a_page_that_moves_while_it_is_copied_is_copied_again() {
    let swap = SwapFile::new("/x".into(), MemoryDisk::default());
    let store = Store::new(&limit(1), Some(swap)).expect("a store");
    let tiers = store.tiers.as_ref().expect("swap");
    let put = |number| store.put(|page| pattern(number, page)).expect("put").0;
    let slot = store.refs.held(put(1)).expect("held");
    let mut page = [0; PAGE_BYTES];
    let swapped = tiers.read_ram(slot, |ram| {
        // Its RAM slot is used anew before it has been copied.
        put(2);
        store.crypt.read(ram, &mut page)
    });
    check(2, &page);
    let swapped = swapped.expect("held").expect("it is in swap by now");
    tiers.swap().read(&[swapped], &mut [Target::new(&mut page)]).expect("read");
    check(1, &page);
}

#[test]
fn a_failed_write_changes_no_order() {
    let disk = Faulty::new(MemoryDisk::default(), 7, 1, 1 << 40);
    let store = Store::new(&limit(32), Some(SwapFile::new("/x".into(), disk))).expect("a store");
    let tiers = store.tiers.as_ref().expect("swap");
    let put = |number| store.put(|page| pattern(number, page));
    let places: Vec<_> = (0..32).map(|number| put(number).expect("put").0).collect();
    assert!((0..40).all(|_| put(99).is_err()));
    tiers.swap().disk().mend();
    put(32).expect("put");
    let find = |place: &StorePlace| tiers.find(store.refs.held(*place).expect("held"));
    assert!(places[..4].iter().all(|p| matches!(find(p), Some(Location::Swap(_)))));
    assert!(places[4..].iter().all(|p| matches!(find(p), Some(Location::Ram(_)))));
}

#[test]
fn pages_are_shared_and_released_while_they_move() {
    let swap = SwapFile::new("/x".into(), MemoryDisk::default());
    let store = Arc::new(Store::new(&limit(32), Some(swap)).expect("a store"));
    let put = |number| store.put(|page| pattern(number, page)).expect("put").0;
    let places: Vec<_> = (0..32).map(put).collect();
    // A release that has been decided, and not carried out, when the page's turn comes.
    let Released::Last(slow) = store.refs.release(places[0]) else { panic!("it was held once") };
    let (other, moving) = (Arc::clone(&store), places.clone());
    store.tiers.as_ref().expect("swap").swap().disk().when_written(move || {
        other.release_many(&moving[1..3]);
        retain(&other, moving[3]);
        for (number, &place) in (3..).zip(&moving[3..]) {
            other.with(place, |page| check(number, page)).expect("held");
        }
        assert!(other.refs.retain(moving[1]).is_err(), "it has no reference any more");
    });
    let last = put(32);
    store.tiers.as_ref().expect("swap").free(&[slow], &store.crypt);
    assert_eq!(store.stats().swap_bytes, 2 * 4096, "of four pages two were released");
    for (number, &place) in (3..).zip(&places[3..]).chain([(32, &last)]) {
        store.with(place, |page| check(number, page)).expect("held");
        store.release_many(&[place]);
    }
    assert_eq!(store.stats().swap_bytes, 4096);
    store.release_many(&[places[3]]);
    let stats = store.stats();
    assert_eq!((stats.crypt_bytes, stats.swap_bytes, stats.strays), (0, 0, 0));
}
