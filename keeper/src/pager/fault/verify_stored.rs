//! Verifying pages where they are stored, before a program asks for them.

use super::bring_in::{Opened, Scratch, with_scratch};
use super::turn_back::Unserved;
use super::{Fault, Served};
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::plain::wipe;
use crate::pager::space::{Space, SpaceState, Vpn};
use casemate_core::PAGE_BYTES;
use casemate_pages::PageRecord;
use std::sync::Arc;

impl Fault<'_> {
    /// Verifies up to `most` stored pages of a space, from page `from` on: the page to go on at,
    /// and how many there were. None: there are no more. A page that is healed is the last. What is
    /// in the Clear as well is passed over: it does not come from there.
    pub fn verify_stored(
        &self,
        space: &Arc<Space>,
        from: Vpn,
        most: usize,
    ) -> Result<Option<(Vpn, u64)>, Stop> {
        let mut state = space.state.lock();
        if space.is_gone() || self.end.has_come() {
            return Ok(None);
        }
        let verified = self.end.or_stop(self.verify_batch(space, &mut state, from, most));
        let wakes = std::mem::take(&mut state.pending.wakes);
        drop(state);
        space.wake_all(&wakes);
        self.serve_left_over(space)?;
        verified
    }

    fn verify_batch(
        &self,
        space: &Space,
        state: &mut SpaceState,
        from: Vpn,
        most: usize,
    ) -> Result<Option<(Vpn, u64)>, Stop> {
        let mut stored = Vec::with_capacity(most);
        self.records.from(space.id, from, most, &mut stored)?;
        let Some(&(last, _)) = stored.last() else { return Ok(None) };
        let is_in_clear = |page: &Vpn| {
            state.clear.pages.contains_key(page) || state.grace.pages.contains_key(page)
        };
        stored.retain(|(page, _)| !is_in_clear(page));
        let verified = with_scratch(|scratch| -> Result<u64, Stop> {
            for (number, (vpn, record)) in (1..).zip(&stored) {
                // To find flipped bits takes milliseconds, in which the space serves no fault.
                if self.verify(space, state, *vpn, record, scratch)? {
                    return Ok(number);
                }
            }
            Ok(stored.len() as u64)
        })?;
        add(&self.counts.scrubbed_pages, verified);
        let is_all = verified == stored.len() as u64;
        let done = if is_all { last } else { stored[verified as usize - 1].0 };
        Ok(Some((done + 1, verified)))
    }

    /// Verifies one. Whether it was healed.
    fn verify(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        record: &PageRecord,
        scratch: &mut Scratch,
    ) -> Result<bool, Stop> {
        let (plain, mut mended) = (&mut scratch.pages[0].0, [0; PAGE_BYTES]);
        let opened = self.open_page(record, plain, Some(&mut mended))?;
        wipe(plain);
        let violation = match opened {
            Opened::AsItWas => return Ok(false),
            Opened::Healed => {
                self.store_anew(space, vpn, record, &mended)?;
                return Ok(true);
            }
            Opened::Violated(violation) => violation,
        };
        match self.violated(space, state, vpn, violation) {
            // If an event is to be read first, the thread that asks for the page finds it violated.
            Ok(Served::Yes | Served::Poisoned | Served::Back(_)) | Err(Unserved::Back(_)) => {
                Ok(false)
            }
            Err(Unserved::Stop(stop)) => Err(stop),
        }
    }

    /// Puts the ciphertext as it was sealed to another place. If there is none, it stays as it is,
    /// and is healed when it comes in.
    fn store_anew(
        &self,
        space: &Space,
        vpn: Vpn,
        record: &PageRecord,
        mended: &[u8; PAGE_BYTES],
    ) -> Result<(), Stop> {
        let Ok((place, ())) = self.store.put(|page| *page = *mended) else { return Ok(()) };
        self.records.enter(space.id, &[(vpn, PageRecord { place, ..*record })])?;
        Ok(())
    }
}

#[cfg(test)]
pub(in crate::pager) mod tests {
    use super::*;
    use crate::config::Config;
    use crate::metadata::MappedMetadata;
    use crate::outcome::{Ending, FailingFrame};
    use crate::pager::Pager;
    use crate::pager::healing::Healing;
    use crate::store::{PageStore, StoreConfig, Whereabouts};
    use crate::sys::uffd::Userfault;
    use casemate_core::GlobalPageCounter;
    use casemate_pages::{KeySet, PageCipher, PageDirectory, SpaceId, page_protocol};
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering::Relaxed;

    pub const STORED: u64 = 40;

    /// A pager that heals, and a space of which every third page is stored.
    pub fn with_stored() -> (Pager, Arc<Space>) {
        with_stored_in(StoreConfig { attackable: true, ..StoreConfig::default() })
    }

    /// The same in another store.
    pub fn with_stored_in(store: StoreConfig) -> (Pager, Arc<Space>) {
        let keys = KeySet::from_master(&[7; 32]);
        let metadata = MappedMetadata::new(false).expect("room");
        let state = metadata.state();
        let mut directory = PageDirectory::new(metadata, &keys.directory, 16 << 10);
        let store = PageStore::new(store).expect("a store");
        let (cipher, gpc) = (PageCipher::new(&keys.page), GlobalPageCounter::new());
        directory.create_space(SpaceId(1)).expect("a space");
        for number in 0..STORED {
            let mut page = [number as u8; PAGE_BYTES];
            let sealed = page_protocol::seal(&cipher, &gpc, &mut page).expect("seeds");
            let (place, ()) = store.put(|slot| sealed.store(&cipher, slot)).expect("a place");
            let new = sealed.at(place);
            page_protocol::record(&mut directory, SpaceId(1), 3 * number, new).expect("a record");
        }
        let config = Config::new(Vec::new());
        let mut pager = Pager::new(&config, cipher, directory, state, store).expect("a pager");
        pager.healing = Healing::with(None);
        let file = File::options().write(true).open("/dev/null").expect("there is one");
        let space = Space::new(SpaceId(1), Userfault::unusable(file.into()), SpaceState::default());
        (pager, space)
    }

    pub fn record(pager: &Pager, vpn: Vpn) -> PageRecord {
        let mut found = Vec::new();
        pager.records().from(SpaceId(1), vpn, 1, &mut found).expect("verified");
        let (at, record) = found.pop().expect("a record");
        assert_eq!(at, vpn);
        record
    }

    /// Flips bits of a stored page from outside.
    pub fn flip(pager: &Pager, vpn: Vpn, bits: &[u64]) {
        let place = record(pager, vpn).place;
        let Some(Whereabouts::Crypt(start)) = pager.store.whereabouts(place) else {
            panic!("in RAM")
        };
        let crypt = pager.store.adversary_fds().expect("attackable").crypt;
        let file = File::from(crypt.try_clone_to_owned().expect("another"));
        for bit in bits {
            let mut byte = [0];
            file.read_exact_at(&mut byte, start + bit / 8).expect("a byte");
            byte[0] ^= 1 << (bit % 8);
            file.write_all_at(&byte, start + bit / 8).expect("a byte");
        }
    }

    /// Verifies everything in batches of 7, and returns how many pages that were.
    fn scrub(pager: &Pager, space: &Arc<Space>) -> Result<u64, Stop> {
        let (mut from, mut pages) = (0, 0);
        while let Some((next, verified)) = pager.fault().verify_stored(space, from, 7)? {
            assert!(next > from);
            (from, pages) = (next, pages + verified);
        }
        Ok(pages)
    }

    #[test]
    fn what_has_flipped_is_stored_anew_before_more_of_it_flips() {
        let (pager, space) = with_stored();
        for round in 0..5 {
            flip(&pager, 3 * 7, &[round, 20_000 + round]);
            let before = record(&pager, 3 * 7);
            assert_eq!(scrub(&pager, &space).expect("healed"), STORED);
            let after = record(&pager, 3 * 7);
            assert_eq!((after.lpid, after.tag), (before.lpid, before.tag));
            assert_ne!(after.place, before.place);
            let mut plain = [0; PAGE_BYTES];
            let fetched = pager.store.with(after.place, |cipher| {
                page_protocol::fetch(&pager.cipher, &after, cipher, &mut plain)
            });
            fetched.expect("stored").open(&pager.cipher).expect("verified without healing");
            assert_eq!(plain, [7; PAGE_BYTES]);
        }
        assert_eq!(pager.counts.healed_pages.load(Relaxed), 5);
        assert_eq!(pager.counts.healed_bits.load(Relaxed), 10);
        assert_eq!(pager.counts.scrubbed_pages.load(Relaxed), 5 * STORED);
        assert!(pager.ending().is_none());
        assert_eq!(pager.store.pages(), STORED, "the old ciphertext is given back");
    }

    #[test]
    fn a_place_that_fails_again_is_named() {
        let (pager, space) = with_stored();
        let (failed, _) = pager.store.in_crypt(record(&pager, 0).place).expect("in RAM");
        flip(&pager, 0, &[1]);
        scrub(&pager, &space).expect("healed");
        assert_eq!(pager.healing.failing_again(), []);
        // Another page is put where that one was, and its bits flip there.
        flip(&pager, 3, &[9]);
        scrub(&pager, &space).expect("healed");
        flip(&pager, 3, &[5, 6]);
        scrub(&pager, &space).expect("healed");
        let frame = FailingFrame { crypt_offset: failed, times: 2, bits: 3, ..Default::default() };
        assert_eq!(pager.healing.failing_again(), [frame]);
    }

    /// A fork shares ciphertexts: each of its processes meets what flipped before.
    #[test]
    fn what_flipped_once_is_counted_once() {
        let (pager, space) = with_stored();
        let child = SpaceId(2);
        flip(&pager, 3, &[70, 71]);
        assert_eq!(pager.records().fork(SpaceId(1), child).expect("a copy"), STORED);
        let file = File::options().write(true).open("/dev/null").expect("there is one");
        let other = Space::new(child, Userfault::unusable(file.into()), SpaceState::default());
        for space in [&space, &Arc::clone(&other)] {
            assert_eq!(scrub(&pager, space).expect("healed"), STORED);
        }
        assert_eq!(pager.counts.healed_pages.load(Relaxed), 1);
        assert_eq!(pager.counts.healed_bits.load(Relaxed), 2);
        assert_eq!(pager.healing.failing_again(), []);
    }

    #[test]
    fn three_flipped_bits_end_the_run_and_no_page_is_verified_after_that() {
        let (pager, space) = with_stored();
        flip(&pager, 3 * 11, &[1, 2, 3]);
        assert!(scrub(&pager, &space).is_err());
        assert!(matches!(pager.ending(), Some(Ending::Violation { .. })), "{:?}", pager.ending());
        assert_eq!(scrub(&pager, &space).expect("it has ended"), 0);
    }

    #[test]
    fn what_is_in_the_clear_too_is_passed_over() {
        let (pager, space) = with_stored();
        flip(&pager, 3 * 11, &[1, 2, 3]);
        space.state.lock().clear.enqueue(3 * 11, true, false);
        assert_eq!(scrub(&pager, &space).expect("not asked"), STORED - 1);
    }
}
