//! Where a fork belongs among the calls that were read with it: the child holds what was registered
//! at that moment, and can change nothing of it that we do not read.
//!
//! The calls before a fork need not be those that were read first, and calls that have no page in
//! common have no order that matters. So for each call it is asked whether the child knows of it.

use super::{Change, Doubt, contents::Contents, overlap};
use crate::pager::space::Vpn;
use crate::ranges::PageRanges;
use std::ops::Range;

/// Steps that the search for the calls before a fork may take.
const SEARCH_STEPS: u32 = 20_000;

/// Pages that every call concerns as a whole or not at all.
pub(super) struct Atom {
    /// Its pages.
    pub range: Range<Vpn>,
    /// Whether it is registered at the start; none if not known.
    at_start: Option<bool>,
    /// Came under the pager at a time that is not known.
    fresh: bool,
    /// The calls that may register it (true) or give it up (false).
    by: Vec<(usize, bool)>,
}

/// The pages that calls map and unmap, cut up at every border of every call.
pub(super) fn atoms(calls: &[Change], fresh: &[Range<Vpn>], start: &Contents) -> Vec<Atom> {
    let moved = |call: &&Change| !matches!(call, Change::Remove(_));
    let ranges: Vec<&Range<Vpn>> =
        calls.iter().filter(moved).flat_map(Change::ranges).chain(fresh).collect();
    let held = start.ranges();
    let mut borders: Vec<Vpn> =
        ranges.iter().copied().chain(held).flat_map(|range| [range.start, range.end]).collect();
    borders.sort_unstable();
    borders.dedup();
    let mut union = PageRanges::default();
    ranges.iter().for_each(|range| union.insert((*range).clone()));
    let inside = |range: &Range<Vpn>| union.contains(range.start);
    borders
        .windows(2)
        .map(|pair| pair[0]..pair[1])
        .filter(inside)
        .map(|range| {
            let by = calls
                .iter()
                .enumerate()
                .filter_map(|(i, call)| effect(call, &range).map(|registers| (i, registers)));
            let (at_start, fresh) = (start.holds(&range), start.is_fresh(&range));
            Atom { by: by.collect(), at_start, fresh, range }
        })
        .collect()
}

fn covers(outer: &Range<Vpn>, inner: &Range<Vpn>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether a call registers pages (true), gives them up (false), or neither.
fn effect(call: &Change, pages: &Range<Vpn>) -> Option<bool> {
    match call {
        Change::Fork(_) | Change::Remove(_) => None,
        Change::Unmap(range) => overlap(range, pages).then_some(false),
        Change::Move { from, to, unmaps } => {
            let gives_up = (*unmaps && overlap(from, pages)).then_some(false);
            overlap(to, pages).then_some(true).or(gives_up)
        }
    }
}

/// What a child says.
pub(super) struct Witness<'a> {
    /// How many calls had been read when its fork was.
    read_at: usize,
    /// For each atom whether it is registered in the child; none where that tells nothing.
    says: Vec<Option<bool>>,
    held: Option<Vec<bool>>,
    /// What it changed since, up to a fork of its own.
    since: &'a [Change],
}

impl<'a> Witness<'a> {
    /// `held`: for each atom, none for a child that is no more. `since`: what the child changed.
    pub(super) fn new(
        read_at: usize,
        held: Option<Vec<bool>>,
        since: &'a [Change],
        atoms: &[Atom],
    ) -> Self {
        let says = atoms.iter().enumerate().map(|(i, atom)| {
            let held = held.as_ref()?[i];
            let changed = since.iter().find(|change| effect(change, &atom.range).is_some());
            match changed {
                None => Some(held),
                // It had what it moved away, and had room where it moved something.
                Some(Change::Move { to, .. }) => Some(!overlap(to, &atom.range)),
                Some(Change::Unmap(gone)) if covers(&atom.range, gone) => Some(true),
                // Of what it unmapped it had something, which need not be this.
                Some(_) => None,
            }
        });
        let says = says.collect();
        let forked = since.iter().position(|change| matches!(change, Change::Fork(_)));
        Witness { read_at, says, held, since: &since[..forked.unwrap_or(since.len())] }
    }

    /// Whether there still is a child.
    pub(super) fn lives(&self) -> bool {
        self.held.is_some()
    }

    /// In words, with each atom's state at the start and in the child.
    pub(super) fn describe(&self, atoms: &[Atom]) -> String {
        let mut words = format!("child at {}:", self.read_at);
        for (atom, says) in atoms.iter().zip(&self.says) {
            let state = |known: Option<bool>| known.map_or('?', |on| if on { '+' } else { '-' });
            words += &format!(" {:x}{}{}", atom.range.start, state(atom.at_start), state(*says));
        }
        words + "; "
    }

    /// What the child does not have because its parent's was registered later.
    pub(super) fn lacks(
        &self,
        atoms: &[Atom],
        calls: &[Change],
        before: &[bool],
    ) -> Vec<Range<Vpn>> {
        let untouched = |atom: &Atom| {
            (0..calls.len()).all(|i| !before[i] || effect(&calls[i], &atom.range).is_none())
        };
        atoms
            .iter()
            .zip(&self.says)
            .filter(|&(atom, says)| atom.fresh && *says == Some(false) && untouched(atom))
            .map(|(atom, _)| atom.range.clone())
            .collect()
    }
}

/// Whether some child can tell if it knows of a call.
pub(super) fn is_told(call: usize, atoms: &[Atom], witnesses: &[Witness<'_>]) -> bool {
    let by_this = |atom: &Atom| atom.by.iter().any(|&(i, _)| i == call);
    let told = |at: usize| witnesses.iter().any(|witness| witness.says[at].is_some());
    atoms.iter().enumerate().any(|(at, atom)| by_this(atom) && told(at))
}

/// The calls that came before a fork.
pub(super) struct Cut {
    /// For each call.
    pub before: Vec<bool>,
    /// What they, and then the child itself, left where.
    pub contents: Contents,
}

struct Walk<'a> {
    calls: &'a [Change],
    order: &'a [usize],
    start: &'a Contents,
    atoms: &'a [Atom],
    witness: &'a Witness<'a>,
    state: Vec<Option<bool>>,
    before: Vec<bool>,
    after: Vec<usize>,
    found: Option<Cut>,
    /// How often a cut was found.
    times: u64,
    steps: u32,
}

impl Cut {
    /// Finds the cut of `order` that explains what the child holds. None if there is none; a doubt
    /// if there are two that leave the child different contents.
    pub(super) fn find(
        calls: &[Change],
        order: &[usize],
        start: &Contents,
        atoms: &[Atom],
        witness: &Witness<'_>,
    ) -> Result<Option<Cut>, Doubt> {
        if !witness.lives() {
            return Ok(Some(Cut { before: vec![true; calls.len()], contents: start.clone() }));
        }
        let mut walk = Walk {
            calls,
            order,
            start,
            atoms,
            witness,
            state: atoms.iter().map(|atom| atom.at_start).collect(),
            before: vec![false; calls.len()],
            after: Vec::new(),
            found: None,
            times: 0,
            steps: 0,
        };
        walk.go(0)?;
        Ok(walk.found)
    }
}

impl Walk<'_> {
    /// Whether an atom is as the child has it.
    fn agrees(&self, atom: usize) -> bool {
        match (self.witness.says[atom], self.state[atom]) {
            (Some(said), Some(state)) => said == state,
            _ => true,
        }
    }

    fn go(&mut self, at: usize) -> Result<(), Doubt> {
        self.steps += 1;
        if self.steps > SEARCH_STEPS {
            return Err(Doubt::TooMany(self.calls.len()));
        }
        let Some(&call) = self.order.get(at) else { return self.note() };
        let effects: Vec<(usize, bool)> = self
            .atoms
            .iter()
            .enumerate()
            .filter_map(|(i, atom)| {
                atom.by.iter().find(|(by, _)| *by == call).map(|&(_, registers)| (i, registers))
            })
            .collect();
        // What `madvise` removes at the same time as a fork the child may see or not, and what was not
        // registered it never had: where nothing speaks against it, the order of reading stands.
        let is_nothing =
            effects.iter().all(|&(i, registers)| !registers && self.state[i] == Some(false));
        let read_before = call < self.witness.read_at;
        let times = self.times;
        for before in [read_before, !read_before] {
            if before != read_before && is_nothing && self.times > times {
                break;
            }
            if before {
                self.count_in(at, call, &effects)?;
            } else if effects.iter().all(|&(i, _)| self.agrees(i)) {
                self.after.push(call);
                self.go(at + 1)?;
                self.after.pop();
            }
        }
        Ok(())
    }

    fn count_in(&mut self, at: usize, call: usize, effects: &[(usize, bool)]) -> Result<(), Doubt> {
        // What follows a call on the same pages cannot have come before the fork without it.
        if self.after.iter().any(|&other| self.calls[other].meets(&self.calls[call])) {
            return Ok(());
        }
        // Nor can one that uses what another has put there, if that one had not returned yet.
        let late = |other: usize| other >= self.witness.read_at;
        let filled = |other: usize| late(other) && self.before[other];
        if late(call)
            && (0..self.calls.len())
                .any(|other| filled(other) && self.calls[call].uses(&self.calls[other]))
        {
            return Ok(());
        }
        let old: Vec<Option<bool>> = effects.iter().map(|&(i, _)| self.state[i]).collect();
        effects.iter().for_each(|&(i, registers)| self.state[i] = Some(registers));
        self.before[call] = true;
        self.go(at + 1)?;
        self.before[call] = false;
        effects.iter().zip(old).for_each(|(&(i, _), old)| self.state[i] = old);
        Ok(())
    }

    /// All calls are before the fork or after it.
    fn note(&mut self) -> Result<(), Doubt> {
        if !(0..self.atoms.len()).all(|atom| self.agrees(atom)) {
            return Ok(());
        }
        self.times += 1;
        let mut contents = self.start.clone();
        let before = self.order.iter().filter(|&&call| self.before[call]);
        before.for_each(|&call| contents.happen(&self.calls[call]));
        // What the child has given up since makes no difference to it.
        self.witness.since.iter().for_each(|change| contents.happen(change));
        // What is registered and empty the child has said itself, where it could.
        let told = self.atoms.iter().zip(&self.witness.says).filter(|(_, says)| says.is_some());
        let contents =
            told.fold(contents.known(), |known, (atom, _)| known.without_empty(&atom.range));
        match &self.found {
            Some(known) if known.contents == contents => {}
            Some(_) => return Err(Doubt::Several(self.calls.len())),
            None => self.found = Some(Cut { before: self.before.clone(), contents }),
        }
        Ok(())
    }
}
