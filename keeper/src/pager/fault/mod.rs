//! Faults: what a missing or write-protected page becomes.
//!
//! ```text
//! attend             reads the descriptor; wakes threads when the lock is free   serve.rs
//!   serve_inbox      events first, then each fault; Event: again                 serve.rs
//!     waits_for_*    for the agent of a forked child, for room                   waits.rs
//!     serve          one fault; Room: room is made, and again, once              turn_back.rs
//!       missing      there already, on the grace list, or nowhere                missing.rs
//!         look_up    records of the page and of those read ahead                 bring_in.rs
//!         needs_room for as many as were found                                   turn_back.rs
//!         bring_in   ciphertexts, verified, UFFDIO_COPY                          bring_in.rs
//!         fill_zeros no record: zeros                                            zeros.rs
//!         fill_of_file  no record, and it was a mapping of a file                of_file.rs
//!         fetch_further  pages below, or in line with it, are read ahead          line.rs
//!       written      no longer clean, no longer shared; protection lifted        written.rs
//! verify_stored      no fault: the scrubber's turn, pages stay where they are    verify_stored.rs
//! reseal_stored      no fault: pages get keys of the present epoch               reseal.rs
//! ```
//!
//! [`Fault`] is all that these steps may touch, beside the space whose lock is held: the account,
//! records and ciphertexts, the cipher to open them, and the bells to ring when faults wait. What
//! they need of other stages is in `Asks`: room, which only eviction makes, and that events are
//! mirrored.

mod bring_in;
mod line;
mod missing;
mod of_file;
mod reseal;
mod serve;
mod turn_back;
mod verify_stored;
mod waits;
mod written;
mod zeros;

use super::Stop;
use super::account::Account;
use super::healing::Healing;
use super::records::Records;
use super::run_end::RunEnd;
use super::space::{Space, SpaceState};
use super::spaces::Spaces;
use crate::attention::Attention;
use crate::budget::Budget;
use crate::event_counts::EventCounts;
use crate::readahead::MAX_WINDOW_PAGES;
use crate::store::PageStore;
use crate::sys::poll::Bell;
use crate::sys::uffd::Message;
use casemate_core::GlobalPageCounter;
use casemate_pages::PageCipher;
use std::sync::Arc;
#[cfg(test)]
pub(super) use verify_stored::tests as stored;

pub use reseal::{Resealed, Resealing};
pub use serve::has_left_over;
pub(super) use turn_back::TurnBack;

/// The most pages that one fault brings in.
const WINDOW: usize = MAX_WINDOW_PAGES as usize;
/// A run that reaches beyond its mapping is refused as a whole, after all of it was decrypted. Then
/// so many faults bring in one page each, before the next run is tried.
const FAULTS_SINGLY: u32 = 256;

/// What faults may touch beside the space that they are of.
#[derive(Clone, Copy)]
pub struct Fault<'a> {
    pub(super) end: RunEnd<'a>,
    pub(super) budget: &'a Budget,
    pub(super) account: Account<'a>,
    pub(super) counts: &'a EventCounts,
    pub(super) records: Records<'a>,
    pub(super) cipher: &'a PageCipher,
    pub(super) gpc: &'a GlobalPageCounter,
    pub(super) healing: &'a Healing,
    /// Where sealed pages are.
    pub(super) store: &'a PageStore,
    /// Spaces that may give room.
    pub(super) spaces: &'a Spaces,
    /// Rung when faults begin to wait for room.
    pub(super) waiting: &'a Bell,
    pub(super) attention: &'a Attention,
    pub(super) asks: &'a dyn Asks,
}

/// What faults ask of the other stages.
pub(super) trait Asks {
    /// Eviction: makes room for `pages` if fewer than the low watermark would be left free.
    fn make_room(&self, space: &Arc<Space>, state: &mut SpaceState, pages: u64)
    -> Result<(), Stop>;

    /// Eviction: takes room from other spaces; no lock is held. False if there was none.
    fn take_from_others(&self, but: &Space) -> Result<bool, Stop>;

    /// Events: mirrors `events`, and all others that are on their way.
    fn mirror(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
    ) -> Result<(), Stop>;
}

/// How serving a fault went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The thread may try again.
    Yes,
    /// The page is violated and the policy leaves the program to its SIGBUS.
    Poisoned,
    /// It is begun anew: when events have been read, or when there may be room.
    Back(TurnBack),
}
