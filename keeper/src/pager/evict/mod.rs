//! Eviction: the coldest pages of a space leave the Clear, in batches.
//!
//! ```text
//! make_room, reclaim   whose pages leave, and how many             room.rs
//!   evict_batch        the coldest pages, sorted by their way      batch.rs
//!     make_own           what a fork shared is copied first        unshare.rs
//!     move_out           UFFDIO_MOVE to a staging                  move_out.rs
//!       what was not counted is looked for                         missed.rs
//!     freeze_batch       what may not be written is moved aside    freeze.rs
//!       has_left       clean: dropped; zeros: dropped; else grace  leave.rs
//!   seal_oldest        grace -> ciphertext, record                 seal.rs
//!     put                to the store; full: ended spaces' goes    put.rs
//! retire_idle          what nothing has asked for in a while       idle.rs
//! fit                  what a larger Clear had room for            shrink.rs
//! empty                all of it, of a run that is locked          shrink.rs
//! ```
//!
//! The agent moves pages out of the program's mappings (`UFFDIO_MOVE`), which no racing write and
//! no pinned page survives unnoticed: from then on the program faults on them, and what was moved
//! out changes no more.
//!
//! [`Evict`] is all that these steps may touch, beside the space whose lock is held: the account,
//! the cipher and its counter, records and ciphertexts, the buffers of the grace list, the other
//! spaces (to take room from them). What eviction needs of other stages is in `Asks`. It fills no
//! page, and it changes nothing of what is mapped where.

mod batch;
mod freeze;
mod idle;
mod leave;
mod missed;
mod move_out;
mod put;
mod room;
mod seal;
mod shrink;
mod unshare;

use super::account::Account;
use super::agent::Broken;
use super::aside::Aside;
use super::plain::PlainPool;
use super::records::Records;
use super::rights::staging_for;
use super::run_end::RunEnd;
use super::space::{Clear, ClearPage, Space, SpaceState, Vpn};
use super::spaces::Spaces;
use super::{Stop, rights};
use crate::attention::Attention;
use crate::budget::Budget;
use crate::event_counts::EventCounts;
use crate::hand::{Hand, Op, OpResult, StagingKind};
use crate::store::PageStore;
use casemate_core::GlobalPageCounter;
use casemate_pages::PageCipher;
use std::sync::Arc;

pub use idle::{IdleSince, Moment};
pub use room::Taken;

/// Pages that others share still, and that leave in one batch: the kernel makes a copy of each
/// first.
const MOST_COPIES: u64 = 8;

/// What eviction may touch beside the space that it takes pages from.
#[derive(Clone, Copy)]
pub struct Evict<'a> {
    pub(super) end: RunEnd<'a>,
    pub(super) budget: &'a Budget,
    pub(super) account: Account<'a>,
    pub(super) counts: &'a EventCounts,
    pub(super) records: Records<'a>,
    pub(super) cipher: &'a PageCipher,
    pub(super) gpc: &'a GlobalPageCounter,
    /// Where sealed pages go.
    pub(super) store: &'a PageStore,
    /// Buffers of the grace list.
    pub(super) plain: &'a Arc<PlainPool>,
    /// Spaces that room is taken from.
    pub(super) spaces: &'a Spaces,
    pub(super) attention: &'a Attention,
    pub(super) asks: &'a dyn Asks,
}

/// What eviction asks of the other stages.
pub(super) trait Asks {
    /// Events: mirrors what is on its way, until nothing is.
    fn settle(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop>;

    /// Events: the same, unless what is on its way touches one of these pages. Whether it did not.
    fn settle_beside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pages: &mut dyn Iterator<Item = Vpn>,
    ) -> Result<bool, Stop>;

    /// Events: has the agent work, and serves what it faults on and what it raises meanwhile.
    fn run_attended(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        ops: &[Op],
        aside: &mut Aside,
    ) -> Result<Vec<OpResult>, Broken>;

    /// Faults: has another thread serve what was read from the descriptor on the agent's behalf.
    fn hand_left_over(&self, space: &Space);
}

/// A page on its way out.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    vpn: Vpn,
    page: ClearPage,
}

/// Leaves a page in the Clear, at the end of the queue, if it is still there. As it is known now:
/// what was clean when it was chosen may have lost its record since, and would be dropped.
fn keep(clear: &mut Clear, leaving: &Leaving) {
    if let Some(page) = clear.pages.get(&leaving.vpn).copied() {
        clear.enqueue(leaving.vpn, page.clean, false);
    }
}

/// Those of `group` that are in the Clear still, as they are known now: what was clean when it was
/// chosen may have been written since.
fn still_there<'a>(clear: &Clear, group: impl Iterator<Item = &'a Leaving>) -> Vec<Leaving> {
    let vpns = group.map(|leaving| leaving.vpn);
    vpns.filter_map(|vpn| Some(Leaving { vpn, page: *clear.pages.get(&vpn)? })).collect()
}

/// A page was refused by a staging of this kind: its mapping may have other rights, or be locked,
/// which is read unless that is known meanwhile, of another page of the batch. Whether that
/// explains it.
fn learn_rights(state: &mut SpaceState, leaving: &Leaving, kind: StagingKind) -> bool {
    let fits = |state: &SpaceState| staging_for(&state.mapped.rights, leaving.vpn) == Some(kind);
    if fits(state) {
        rights::learn_rights(state);
    }
    let is_explained = !fits(state);
    if is_explained || state.clear.is_refused_first(leaving.vpn) {
        keep(&mut state.clear, leaving);
    } else {
        // Twice, and not by its rights (by a protection key, for example): it stays until they
        // change. (Once, they may have changed between the refusal and the look.)
        state.clear.stuck.insert(leaving.vpn..leaving.vpn + 1);
    }
    is_explained
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PAGE_BYTES;

    /// Pages of a batch are refused together once they are locked: what is read for the first of
    /// them explains all.
    #[test]
    fn a_page_is_stuck_only_if_its_rights_do_not_explain_it_twice() {
        let memory = vec![1_u8; 4 * PAGE_BYTES];
        let first = (memory.as_ptr() as u64).div_ceil(PAGE_BYTES as u64);
        let address = (first * PAGE_BYTES as u64) as *const libc::c_void;
        // SAFETY: two whole pages within the block.
        assert_eq!(unsafe { libc::mlock(address, 2 * PAGE_BYTES) }, 0);
        let mut state = SpaceState::default();
        state.processes.pids.push(std::process::id() as i32);
        for vpn in first..first + 2 {
            state.clear.enqueue(vpn, false, false);
        }
        let page = |vpn| state.clear.pages.get(&vpn).copied().expect("it is in the Clear");
        let leaving = [first, first + 1].map(|vpn| Leaving { vpn, page: page(vpn) });
        for page in &leaving {
            assert!(learn_rights(&mut state, page, StagingKind::Rw));
        }
        for is_stuck in [false, true] {
            assert!(!learn_rights(&mut state, &leaving[1], StagingKind::RwLocked));
            assert_eq!(state.clear.stuck.contains(first + 1), is_stuck);
        }
        assert!(!state.clear.stuck.contains(first));
        state.clear.release(&(0..Vpn::MAX));
        assert!(state.clear.stuck.is_empty());
    }
}
