//! Ciphertext goes to the store. One that is full gives up first what it has of processes that have
//! ended.

use super::Evict;
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::Vpn;
use crate::sys::uffd::Refusal;
use casemate_pages::StorePlace;

impl Evict<'_> {
    /// Stores the page that `fill` writes.
    pub(super) fn put(&self, fill: impl Fn(&mut [u8; PAGE_BYTES])) -> Result<StorePlace, Stop> {
        let mut may_be_room = true;
        loop {
            match self.store.put(&fill) {
                Ok((place, ())) => return Ok(place),
                // Once more after there was nothing: others may have given up the last of it.
                Err(error) if may_be_room && error.is_for_want_of_room() => {
                    may_be_room = self.drop_some_of_ended()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives up some of what is stored of spaces that have ended. Whether there was anything.
    fn drop_some_of_ended(&self) -> Result<bool, Stop> {
        Ok(self.spaces.ended.drop_some(self.records, self.budget)? || self.drop_some_of_ending()?)
    }

    /// The same of spaces that have ended, and are not retired yet: on a machine that is busy the
    /// watcher comes late.
    fn drop_some_of_ending(&self) -> Result<bool, Stop> {
        for space in self.spaces.all() {
            // A thread that has it may be reading what is stored of it.
            let Some(state) = space.state.try_lock() else { continue };
            let has_ended = space.is_gone()
                || space.uffd.quiet(state.mapped.unregistered_address()) == Err(Refusal::SpaceGone);
            if !has_ended {
                continue;
            }
            if let Some(released) = self.records.drop_first(space.id, &mut (0..Vpn::MAX))? {
                self.budget.sealed(0, released);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::PAGE_BYTES;
    use crate::pager::fault::stored::{STORED, with_stored_in};
    use crate::pager::space::Space;
    use crate::pager::{Pager, Stop};
    use crate::store::{StoreConfig, StoreError};
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    /// A full store, of which all is of `space`, and what becomes of it when that has ended.
    fn gives_up(end: impl Fn(&Pager, &Arc<Space>)) {
        let crypt_limit_bytes = Some(STORED * PAGE_BYTES as u64);
        let full = StoreConfig { crypt_limit_bytes, ..StoreConfig::default() };
        let (pager, space) = with_stored_in(full);
        pager.add_space(&space);
        let put = || pager.evict().put(|page| page.fill(5));
        let refused = put();
        let is_full = matches!(refused, Err(Stop::Store(StoreError::CryptFull { .. })));
        assert!(is_full, "{refused:?}");
        end(&pager, &space);
        for _ in 0..STORED {
            put().expect("room");
        }
        assert!(put().is_err(), "it is full again");
    }

    #[test]
    fn a_full_store_gives_up_what_it_has_of_retired_spaces() {
        gives_up(|pager, space| pager.events().retire(space));
    }

    #[test]
    fn a_full_store_gives_up_what_it_has_of_spaces_that_have_ended() {
        gives_up(|_, space| space.gone.store(true, Relaxed));
    }

    #[test]
    fn what_another_thread_may_be_reading_stays() {
        let (pager, space) = with_stored_in(StoreConfig::default());
        pager.add_space(&space);
        space.gone.store(true, Relaxed);
        let state = space.state.lock();
        assert!(!pager.evict().drop_some_of_ended().expect("no violation"));
        drop(state);
        assert!(pager.evict().drop_some_of_ended().expect("no violation"));
    }
}
