//! Where the handles of the stages are made, and what each stage may ask of the others.
//!
//! A handle borrows what its stage may touch, and reaches the other stages only by its trait
//! `Asks`, which is met here.

use super::account::Account;
use super::agent::Broken;
use super::aside::Aside;
use super::events::{self, Events};
use super::evict::{self, Evict};
use super::fault::{self, Fault, Served};
use super::records::Records;
use super::run_end::RunEnd;
use super::space::{Grace, Space, SpaceState, Vpn};
use super::{Pager, Stop};
use crate::config::PAGE_BYTES;
use crate::hand::{Hand, Op, OpResult};
use crate::sys::uffd::Message;
use std::sync::Arc;

impl Pager {
    /// Serves faults.
    pub fn fault(&self) -> Fault<'_> {
        Fault {
            end: self.end(),
            budget: &self.budget,
            account: self.account(),
            counts: &self.counts,
            records: self.records(),
            cipher: &self.cipher,
            gpc: &self.gpc,
            healing: &self.healing,
            store: &self.store,
            spaces: &self.spaces,
            waiting: &self.waiting,
            attention: &self.attention,
            asks: self,
        }
    }

    /// Takes pages out of the Clear.
    pub fn evict(&self) -> Evict<'_> {
        Evict {
            end: self.end(),
            budget: &self.budget,
            account: self.account(),
            counts: &self.counts,
            records: self.records(),
            cipher: &self.cipher,
            gpc: &self.gpc,
            store: &self.store,
            plain: &self.plain,
            spaces: &self.spaces,
            attention: &self.attention,
            asks: self,
        }
    }

    /// Follows what changes address spaces.
    pub fn events(&self) -> Events<'_> {
        Events {
            end: self.end(),
            budget: &self.budget,
            account: self.account(),
            counts: &self.counts,
            records: self.records(),
            spaces: &self.spaces,
            attention: &self.attention,
            files: &self.files,
            asks: self,
        }
    }

    pub(super) fn end(&self) -> RunEnd<'_> {
        RunEnd {
            ending: &self.ending,
            noted: &self.noted,
            stopped: &self.stopped,
            metadata: &self.metadata,
            counts: &self.counts,
            on_violation: self.on_violation,
        }
    }

    pub(super) fn records(&self) -> Records<'_> {
        Records::new(&self.directory, &self.store)
    }

    fn account(&self) -> Account<'_> {
        Account::new(&self.budget, &self.shared)
    }
}

impl fault::Asks for Pager {
    fn make_room(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pages: u64,
    ) -> Result<(), Stop> {
        self.evict().make_room(space, state, pages)
    }

    fn take_from_others(&self, but: &Space) -> Result<bool, Stop> {
        self.evict().take_from_others(but)
    }

    fn mirror(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
    ) -> Result<(), Stop> {
        self.events().mirror(space, state, events)
    }
}

impl evict::Asks for Pager {
    fn settle(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop> {
        self.events().settle(space, state)
    }

    fn settle_beside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pages: &mut dyn Iterator<Item = Vpn>,
    ) -> Result<bool, Stop> {
        self.events().settle_beside(space, state, pages)
    }

    fn run_attended(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        ops: &[Op],
        aside: &mut Aside,
    ) -> Result<Vec<OpResult>, Broken> {
        self.events().run_attended(space, state, hand, ops, aside)
    }

    fn hand_left_over(&self, space: &Space) {
        self.fault().hand_left_over(space);
    }
}

impl events::Asks for Pager {
    fn missing(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
        write: bool,
        tid: i32,
    ) -> Result<Served, Stop> {
        self.fault().missing(space, state, vpn, write, tid)
    }

    fn lift(&self, space: &Arc<Space>, state: &mut SpaceState, vpn: Vpn) -> Result<Served, Stop> {
        self.fault().lift(space, state, vpn)
    }

    fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop> {
        self.fault().serve_left_over(space)
    }

    fn hand_left_over(&self, space: &Space) {
        self.fault().hand_left_over(space);
    }

    fn spare(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        read: &mut dyn FnMut(&mut [u8; PAGE_BYTES]) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        self.evict().spare(space, state, vpn, read)
    }

    fn put_back(&self, space: &Space, state: &mut SpaceState, vpn: Vpn) {
        self.fault().put_back(space, state, vpn);
    }

    fn evict_batch(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<u64, Stop> {
        self.evict().evict_batch(space, state)
    }

    fn seal_all(&self, space: &Space, grace: &mut Grace) -> Result<(), Stop> {
        self.evict().seal_all(space, grace)
    }
}
