//! Memory that loses bits, no more than two of a page, and the scrubber that looks for them.

use crate::kernel::Wait;
use crate::pager::Pager;
use crate::scheduler;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const PAGE: u64 = 4096;
/// Pages of a space that are verified at once.
const BATCH: usize = 4;

/// A page as it was left, and the bits of it that have flipped.
type Flipped = (Box<[u8; PAGE as usize]>, u32);

/// Flips bits of what is stored.
pub fn flip(pager: &Arc<Pager>) {
    let mut flipped: HashMap<u64, Flipped> = HashMap::new();
    loop {
        scheduler::sleep(Wait::Bell(0).into(), Some(50 + scheduler::random(300)));
        let Some(stores) = pager.store.adversary_fds() else { return };
        let Ok(crypt) = stores.crypt.try_clone_to_owned().map(File::from) else { return };
        let slots = stores.crypt_bytes / PAGE;
        if slots == 0 {
            continue;
        }
        let slot = scheduler::random(slots);
        let mut page = Box::new([0; PAGE as usize]);
        if crypt.read_exact_at(&mut *page, slot * PAGE).is_err() {
            continue;
        }
        // Another page is there now, or the same one that was left.
        let bits =
            flipped.get(&slot).filter(|(left, _)| *left == page).map_or(0, |(_, bits)| *bits);
        if bits == 2 {
            continue;
        }
        page[scheduler::random(PAGE) as usize] ^= 1 << scheduler::random(8);
        if crypt.write_all_at(&*page, slot * PAGE).is_ok() {
            scheduler::trace(|| format!("bit {} of slot {slot} flips", bits + 1));
            flipped.insert(slot, (page, bits + 1));
        }
    }
}

/// Verifies what is stored, a few pages at a time.
pub fn scrub(pager: &Arc<Pager>) {
    loop {
        for space in pager.all_spaces() {
            let mut from = 0;
            loop {
                scheduler::sleep(Wait::Bell(0).into(), Some(1 + scheduler::random(60)));
                match pager.fault().verify_stored(&space, from, BATCH) {
                    Ok(Some((next, _))) => from = next,
                    Ok(None) => break,
                    Err(stop) => return pager.stop(stop),
                }
            }
        }
        scheduler::sleep(Wait::Bell(0).into(), Some(100));
    }
}
