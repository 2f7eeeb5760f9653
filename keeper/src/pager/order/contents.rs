//! Whose contents are where, while an order of calls is followed.

use super::{Change, overlap};
use crate::pager::space::Vpn;
use crate::ranges::PageRanges;
use std::ops::Range;

/// Neighbouring pages whose contents were neighbours at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    range: Range<Vpn>,
    /// Where its contents were at the start; none if it was empty since.
    origin: Option<Vpn>,
    /// Came under the pager at a time that is not known: whether it was registered is not either.
    fresh: bool,
}

/// What is registered, and where its contents come from. Two that are equal hold the same in the
/// same places. Only the pages that calls concern are looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Contents(Vec<Piece>);

impl Contents {
    /// What is there at the start, as far as `calls` concern it.
    pub(super) fn of(registered: &PageRanges, fresh: &[Range<Vpn>], calls: &[Change]) -> Self {
        let mut concerned = PageRanges::default();
        calls.iter().flat_map(Change::ranges).for_each(|range| concerned.insert(range.clone()));
        fresh.iter().for_each(|range| concerned.insert(range.clone()));
        let mut this = Contents::default();
        for range in concerned.common_with(&(0..Vpn::MAX)) {
            for held in registered.common_with(&range) {
                this.insert(Piece { origin: Some(held.start), range: held, fresh: false });
            }
        }
        for range in fresh.iter().flat_map(|range| registered.common_with(range)) {
            this.take(&range);
            this.insert(Piece { origin: None, range, fresh: true });
        }
        this
    }

    /// Whether something is certainly registered in a range.
    pub(super) fn is_taken(&self, range: &Range<Vpn>) -> bool {
        self.0.iter().any(|piece| !piece.fresh && overlap(&piece.range, range))
    }

    /// Whether a range is registered as a whole (or not at all); none if in part, or not known.
    pub(super) fn holds(&self, range: &Range<Vpn>) -> Option<bool> {
        let mut held = 0;
        for piece in self.0.iter().filter(|piece| overlap(&piece.range, range)) {
            if piece.fresh {
                return None;
            }
            held += piece.range.end.min(range.end) - piece.range.start.max(range.start);
        }
        match held {
            0 => Some(false),
            all if all == range.end - range.start => Some(true),
            _ => None,
        }
    }

    /// Where something is registered.
    pub(super) fn ranges(&self) -> impl Iterator<Item = &Range<Vpn>> {
        self.0.iter().map(|piece| &piece.range)
    }

    /// Whether a range came under the pager at an unknown time, and nothing has happened to it.
    pub(super) fn is_fresh(&self, range: &Range<Vpn>) -> bool {
        self.0.iter().any(|piece| piece.fresh && overlap(&piece.range, range))
    }

    /// Without what came under the pager at an unknown time: it held nothing that we knew.
    pub(super) fn known(mut self) -> Self {
        self.0.retain(|piece| !piece.fresh);
        self
    }

    /// Without what is registered and holds nothing in a range.
    pub(super) fn without_empty(mut self, range: &Range<Vpn>) -> Self {
        let held: Vec<Piece> =
            self.take(range).into_iter().filter(|p| p.origin.is_some()).collect();
        held.into_iter().for_each(|piece| self.insert(piece));
        self
    }

    /// A call takes effect.
    pub(super) fn happen(&mut self, call: &Change) {
        match call {
            Change::Fork(_) | Change::Remove(_) => {}
            Change::Unmap(range) => drop(self.take(range)),
            Change::Move { from, to, unmaps } => {
                let mut moving = self.take(from);
                if !unmaps {
                    self.insert(Piece { range: from.clone(), origin: None, fresh: false });
                }
                // What moved was registered as a whole, whatever we know of its parts.
                let mut at = from.start;
                let known = moving.clone();
                for piece in known.iter().map(|piece| &piece.range).chain([&(from.end..from.end)]) {
                    if at < piece.start {
                        let (range, origin) = (at..piece.start, Some(at));
                        moving.push(Piece { range, origin, fresh: false });
                    }
                    at = piece.end;
                }
                drop(self.take(to));
                for piece in moving {
                    let place = |vpn: Vpn| vpn - from.start + to.start;
                    let range = place(piece.range.start)..place(piece.range.end);
                    self.insert(Piece { range, origin: piece.origin, fresh: false });
                }
            }
        }
    }

    /// Takes out what is in a range, in the order of addresses.
    fn take(&mut self, range: &Range<Vpn>) -> Vec<Piece> {
        let (mut taken, mut left) = (Vec::new(), Vec::with_capacity(self.0.len() + 1));
        for piece in self.0.drain(..) {
            if !overlap(&piece.range, range) {
                left.push(piece);
                continue;
            }
            let inner = piece.range.start.max(range.start)..piece.range.end.min(range.end);
            let part = |part: Range<Vpn>| Piece {
                origin: piece.origin.map(|origin| origin + (part.start - piece.range.start)),
                range: part,
                fresh: piece.fresh,
            };
            let (before, after) = (piece.range.start..inner.start, inner.end..piece.range.end);
            left.extend((!before.is_empty()).then(|| part(before.clone())));
            taken.push(part(inner.clone()));
            left.extend((!after.is_empty()).then(|| part(after.clone())));
        }
        self.0 = left;
        taken
    }

    /// Adds what is in no other piece, joined with its neighbours where they belong together.
    fn insert(&mut self, mut new: Piece) {
        let goes_on = |a: &Piece, b: &Piece| {
            let next = a.origin.map(|origin| origin + (a.range.end - a.range.start));
            a.range.end == b.range.start && next == b.origin && a.fresh == b.fresh
        };
        let mut at = self.0.partition_point(|piece| piece.range.start < new.range.start);
        if at < self.0.len() && goes_on(&new, &self.0[at]) {
            new.range.end = self.0.remove(at).range.end;
        }
        if at > 0 && goes_on(&self.0[at - 1], &new) {
            at -= 1;
            let before = self.0.remove(at);
            new = Piece { range: before.range.start..new.range.end, ..before };
        }
        self.0.insert(at, new);
    }
}
