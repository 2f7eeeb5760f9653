//! Pages without a record in memory that took the place of a mapping of a file: what the file has.

use super::bring_in::{Scratch, as_bytes, with_scratch};
use super::turn_back::{TurnBack, Unserved, unless_event};
use super::{FAULTS_SINGLY, Fault, Served};
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::pager::plain::wipe;
use crate::pager::space::{Origin, Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use crate::sys::uffd::Refusal;

impl Fault<'_> {
    /// Pages that were never written, or given back. A thread that touches one behind the end of
    /// its file, or one that cannot be read, gets the signal that the kernel would have sent.
    pub(super) fn fill_of_file(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        pages: u64,
        origin: &Origin,
        scratch: &mut Scratch,
    ) -> Result<(u64, Served), Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let most = pages.min(origin.pages) as usize;
        let mut count = 0;
        while count < most
            && origin.file.read_page(origin.number + count as u64, &mut scratch.pages[count].0)
        {
            count += 1;
        }
        if count == 0 {
            return self.no_such_page(space, state, address);
        }
        let is_shielded = state.calls.is_forking();
        let source = &as_bytes(&scratch.pages[..])[..count * PAGE_BYTES];
        let (mut bytes, mut result) = space.uffd.copy(address, source, is_shielded);
        if bytes == 0 && count > 1 && result == Err(Refusal::NoMapping) {
            state.faults.singly = FAULTS_SINGLY;
            (bytes, result) = space.uffd.copy(address, &source[..PAGE_BYTES], is_shielded);
        }
        profile::ended(Phase::Fill);
        scratch.pages.iter_mut().take(count).for_each(|page| wipe(&mut page.0));
        let came = self.has_filled(space, state, vpn, (bytes, result), is_shielded)?;
        add(&self.counts.file_fills, came);
        Ok((came.max(1), Served::Yes))
    }

    fn no_such_page(
        &self,
        space: &Space,
        state: &mut SpaceState,
        address: u64,
    ) -> Result<(u64, Served), Unserved> {
        match unless_event(space.uffd.poison(address, PAGE_BYTES as u64))? {
            Ok(()) | Err(Refusal::Present) => {}
            Err(refusal) => self.refused(space, address, refusal)?,
        }
        state.pending.wakes.push((address, PAGE_BYTES as u64));
        Ok((1, Served::Yes))
    }

    /// The same for one page that counts as one of the Clear already.
    pub(super) fn copy_of_file(
        &self,
        space: &Space,
        vpn: Vpn,
        origin: &Origin,
    ) -> Result<Result<(), Refusal>, TurnBack> {
        let address = vpn * PAGE_BYTES as u64;
        with_scratch(|scratch| {
            let page = &mut scratch.pages[0].0;
            let answer = match origin.file.read_page(origin.number, page) {
                true => space.uffd.copy(address, &page[..], false).1,
                false => space.uffd.poison(address, PAGE_BYTES as u64),
            };
            wipe(page);
            unless_event(answer)
        })
    }
}
