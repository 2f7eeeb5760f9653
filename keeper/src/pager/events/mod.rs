//! Events: what changes an address space, and what becomes of its pages then.
//!
//! ```text
//! userfaultfd: fork, mremap, madvise, munmap
//!   gather         all that is on its way is read           mirror.rs
//!   are_in_order   or the run stops                         order.rs
//!   has_stayed     was it unmapped? the kernel is asked     unmapped.rs, look_again.rs
//!   change         records, pages in the Clear, ranges      change.rs, forked.rs
//! an announced call
//!   announced      made by the agent, or let through        calls/
//!   make           the agent makes it; its events are read  calls/make.rs
//!   change         as above
//! without a word
//!   survey         mappings that are not registered yet     survey.rs
//!   reconcile      pages in the kernel's own tables         reconcile.rs
//!   find_copied    shared pages that the kernel copied      copied.rs
//!   recognise      whose memory a child's space is          recognise.rs
//! run_attended     the agent works, and faults meanwhile    attended.rs
//! heard, growing   processes without a space of their own   heard.rs, growing.rs
//! ```
//!
//! Calls that change an armed space are announced (`calls`) and made one at a time, so their
//! events come in the order of the calls. A child that has no agent yet is told of by its events;
//! with one thread they are in order, too. Where several threads of such a space change the same
//! pages at once, the run stops.
//!
//! [`Events`] is all that these steps may touch, beside the space whose lock is held: the account,
//! the records, the other spaces (a fork adds one). What they need of other stages is in `Asks`.
//! They have neither the cipher nor a ciphertext, nor a buffer of plaintext.

mod attended;
pub mod calls;
mod change;
mod copied;
mod forked;
pub(crate) mod growing;
pub(crate) mod heard;
mod look_again;
mod mirror;
mod order;
pub mod recognise;
pub mod reconcile;
pub mod survey;
mod unmapped;

use super::Stop;
use super::account::Account;
use super::fault::Served;
use super::records::Records;
use super::run_end::RunEnd;
use super::space::{Grace, Space, SpaceState, Vpn};
use super::spaces::Spaces;
use crate::attention::Attention;
use crate::budget::Budget;
use crate::config::PAGE_BYTES;
use crate::event_counts::EventCounts;
use crate::sys::file_pages::OpenFiles;
use std::sync::Arc;

/// What events may touch beside the space that they change.
#[derive(Clone, Copy)]
pub struct Events<'a> {
    pub(super) end: RunEnd<'a>,
    pub(super) budget: &'a Budget,
    pub(super) account: Account<'a>,
    pub(super) counts: &'a EventCounts,
    pub(super) records: Records<'a>,
    pub(super) spaces: &'a Spaces,
    pub(super) attention: &'a Attention,
    /// Files whose private mappings were replaced.
    pub(super) files: &'a OpenFiles,
    pub(super) asks: &'a dyn Asks,
}

/// What events ask of the other stages.
pub(super) trait Asks {
    /// Faults: a page is missing, to the agent or to a thread that reads the program's memory.
    fn missing(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
        write: bool,
        tid: i32,
    ) -> Result<Served, Stop>;

    /// Faults: lifts the protection of a page that is to be written, room or not.
    fn lift(&self, space: &Arc<Space>, state: &mut SpaceState, vpn: Vpn) -> Result<Served, Stop>;

    /// Faults: serves what was read from the descriptor meanwhile. No lock is held.
    fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop>;

    /// Faults: has another thread serve it.
    fn hand_left_over(&self, space: &Space);

    /// Eviction: takes a page on that has come out of the program by another way than eviction, if
    /// `read` finds that it has to be kept.
    fn spare(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        read: &mut dyn FnMut(&mut [u8; PAGE_BYTES]) -> Result<bool, Stop>,
    ) -> Result<(), Stop>;

    /// Faults: puts such a page back, unless something is in the way.
    fn put_back(&self, space: &Space, state: &mut SpaceState, vpn: Vpn);

    /// Eviction: a batch of the space's coldest pages leaves. How many; 0 if there are none.
    fn evict_batch(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<u64, Stop>;

    /// Eviction: empties the grace list of the space into the Crypt.
    fn seal_all(&self, space: &Space, grace: &mut Grace) -> Result<(), Stop>;
}
