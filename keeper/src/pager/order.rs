//! The order of events. The kernel queues an event after the call's locks are gone, so the events
//! of different threads can be read in another order than their calls took effect.
//!
//! What a call needs tells which orders were possible: nothing is moved to where something registered
//! still is. A fork is placed by what its child holds ([`cut`]). Every order that explains what is seen
//! is followed to its end. If all leave the same contents in the same places, in the program and in
//! every child, any of them will do; if two differ, or none is left, the program is stopped: in doubt,
//! no byte is handed out.

mod contents;
mod cut;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use super::space::Vpn;
use crate::config::PAGE_BYTES;
use crate::ranges::PageRanges;
use crate::sys::uffd::{Message, Userfault};
use contents::Contents;
use cut::{Cut, Witness};
use std::ops::Range;

/// Steps that the search for orders may take. Each is a few microseconds.
const SEARCH_STEPS: u32 = 20_000;

/// A change of the address space, in pages.
#[derive(Debug)]
pub(super) enum Change {
    /// fork.
    Fork(Newborn),
    /// Contents moved; what was mapped at the source is unmapped if the call did so.
    Move { from: Range<Vpn>, to: Range<Vpn>, unmaps: bool },
    /// Contents dropped, the mapping stays.
    Remove(Range<Vpn>),
    /// Unmapped.
    Unmap(Range<Vpn>),
}

/// A child of a fork that nobody serves yet.
#[derive(Debug)]
pub(super) struct Newborn {
    /// Its faults and events.
    pub uffd: Userfault,
    /// What it has changed since, as far as its events have been read.
    pub changes: Vec<Change>,
    /// Its faults that were read with them.
    pub faults: Vec<Message>,
    /// Ranges that came under the pager in its parent only after the fork.
    pub lacks: Vec<Range<Vpn>>,
}

/// Turns events, in the order in which they were read, into changes. A plain mremap raises two: the
/// move, and the unmapping of its source, which by then must not be taken for anything else.
pub(super) fn changes(events: Vec<Message>) -> Vec<Change> {
    let pages = |start: u64, end: u64| start / PAGE_BYTES as u64..end.div_ceil(PAGE_BYTES as u64);
    let mut changes: Vec<Change> = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Message::Fork(uffd) => {
                let (theirs, faults, lacks) = (Vec::new(), Vec::new(), Vec::new());
                changes.push(Change::Fork(Newborn { uffd, changes: theirs, faults, lacks }));
            }
            Message::Remove { start, end } => changes.push(Change::Remove(pages(start, end))),
            Message::Remap { from, to, len } => changes.push(Change::Move {
                from: pages(from, from + len),
                to: pages(to, to + len),
                unmaps: false,
            }),
            Message::Unmap { start, end } => {
                let range = pages(start, end);
                let source = changes.iter_mut().find_map(|change| match change {
                    Change::Move { from, unmaps, .. } if *from == range && !*unmaps => Some(unmaps),
                    _ => None,
                });
                match source {
                    Some(unmaps) => *unmaps = true,
                    None => changes.push(Change::Unmap(range)),
                }
            }
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => {}
        }
    }
    changes
}

/// Why the order of calls cannot be told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Doubt {
    /// Two orders that differ in their result explain what is seen.
    #[error("two orders of {0} calls were possible")]
    Several(usize),
    /// No order explains what is seen.
    #[error("no order of {0} calls explains what a child holds")]
    None(usize),
    /// There are more orders than can be looked at.
    #[error("too many orders of {0} calls were possible")]
    TooMany(usize),
}

/// A doubt, and what it is about: for whoever has to find out why.
#[derive(Debug, thiserror::Error)]
#[error("{doubt} ({seen})")]
pub(super) struct Uncertain {
    doubt: Doubt,
    seen: String,
}

/// Looks at a child: which of these ranges are registered in it, each as a whole. Notes what the child
/// has changed before that. None if the child is no more.
pub(super) type Look<'a> = dyn FnMut(&mut Newborn, &[Range<Vpn>]) -> Option<Vec<bool>> + 'a;

/// Puts changes into the order in which they happened, or into one that comes to the same. `fresh`
/// are ranges of `registered` that came under the pager while these changes happened: before some
/// of them or after.
pub(super) fn resolve(
    changes: Vec<Change>,
    registered: &PageRanges,
    fresh: &[Range<Vpn>],
    look: &mut Look<'_>,
) -> Result<Vec<Change>, Uncertain> {
    let has_fork = changes.iter().any(|change| matches!(change, Change::Fork(_)));
    if changes.len() < 2 && (fresh.is_empty() || !has_fork) {
        return Ok(changes);
    }
    let (mut forks, mut calls) = (Vec::new(), Vec::with_capacity(changes.len()));
    for change in changes {
        match change {
            Change::Fork(child) => forks.push((calls.len(), child)),
            call => calls.push(call),
        }
    }
    let (registered, mut fresh) = before_any(&calls, registered, fresh);
    if !has_fork {
        // Only what calls concern matters then; there may be thousands of fresh ranges.
        fresh.retain(|range| calls.iter().flat_map(Change::ranges).any(|r| overlap(r, range)));
    }
    let start = Contents::of(&registered, &fresh, &calls);
    let atoms = cut::atoms(&calls, &fresh, &start);
    let ranges: Vec<Range<Vpn>> = atoms.iter().map(|atom| atom.range.clone()).collect();
    let mut held = Vec::with_capacity(forks.len());
    for (_, child) in &mut forks {
        let known = if ranges.is_empty() { Some(Vec::new()) } else { look(child, &ranges) };
        if known.is_none() && child.changes.iter().any(|change| matches!(change, Change::Fork(_))) {
            // It left a child of its own, and can say no more when that was.
            let doubt = Doubt::None(calls.len());
            return Err(Uncertain { doubt, seen: "a child ended that had forked".to_owned() });
        }
        held.push(known);
    }
    let witnesses: Vec<Witness<'_>> = forks
        .iter()
        .zip(held)
        .map(|((read_at, child), held)| Witness::new(*read_at, held, &child.changes, &atoms))
        .collect();
    let plan = match plan(&calls, &start, &atoms, &witnesses) {
        Ok(plan) => plan,
        Err(doubt) => {
            let read_at =
                |at| forks.iter().filter(move |fork| fork.0 == at).map(|_| "fork ".into());
            let call = |at: usize| calls.get(at).map(|call| format!("{call} "));
            let mut seen: String =
                (0..=calls.len()).flat_map(|at| read_at(at).chain(call(at))).collect();
            for witness in &witnesses {
                seen += &witness.describe(&atoms);
            }
            return Err(Uncertain { doubt, seen });
        }
    };
    let lacks: Vec<Vec<Range<Vpn>>> = witnesses
        .iter()
        .zip(&plan.cuts)
        .map(|(witness, cut)| witness.lacks(&atoms, &calls, cut))
        .collect();
    for ((_, child), lacks) in forks.iter_mut().zip(lacks) {
        child.lacks = lacks;
    }
    Ok(plan.arrange(calls, forks))
}

/// Had a range been under the pager before something was moved there, its unmapping would have been
/// reported first. So it came under the pager with what was moved there.
fn before_any(
    calls: &[Change],
    registered: &PageRanges,
    fresh: &[Range<Vpn>],
) -> (PageRanges, Vec<Range<Vpn>>) {
    let (mut registered, mut unknown) = (registered.clone(), PageRanges::default());
    fresh.iter().for_each(|range| unknown.insert(range.clone()));
    let mut given_up = PageRanges::default();
    for call in calls {
        match call {
            Change::Move { from, to, .. } => {
                for filled in
                    unknown.common_with(to).iter().flat_map(|r| given_up.missing_from(r.clone()))
                {
                    unknown.remove(filled.clone());
                    registered.remove(filled);
                }
                given_up.insert(from.clone());
            }
            Change::Unmap(range) => given_up.insert(range.clone()),
            Change::Remove(_) | Change::Fork(_) => {}
        }
    }
    (registered, unknown.common_with(&(0..Vpn::MAX)))
}

/// Follows every order. All that explain what is seen must come to the same; then the first is taken.
fn plan(
    calls: &[Change],
    start: &Contents,
    atoms: &[cut::Atom],
    witnesses: &[Witness<'_>],
) -> Result<Plan, Doubt> {
    let mut plan: Option<Plan> = None;
    let mut search = Search { calls, steps: 0 };
    let mut visit = |order: &[usize], end: Contents| {
        let Some(found) = Plan::of(calls, order, end, start, atoms, witnesses)? else {
            return Ok(());
        };
        match &plan {
            Some(known) if known.same_result(&found) => Ok(()),
            Some(_) => Err(Doubt::Several(calls.len())),
            None => {
                plan = Some(found);
                Ok(())
            }
        }
    };
    search.follow((0..calls.len()).collect(), start.clone(), Vec::new(), &mut visit)?;
    plan.ok_or(Doubt::None(calls.len()))
}

/// One order of the calls, the place of each fork in it, and what it leads to.
struct Plan {
    order: Vec<usize>,
    /// For each fork which calls came before it.
    cuts: Vec<Vec<bool>>,
    /// Forks from the first to the last.
    sequence: Vec<usize>,
    end: Contents,
    children: Vec<Option<Contents>>,
}

impl Plan {
    /// None if this order does not explain what the children hold.
    fn of(
        calls: &[Change],
        order: &[usize],
        end: Contents,
        start: &Contents,
        atoms: &[cut::Atom],
        witnesses: &[Witness<'_>],
    ) -> Result<Option<Plan>, Doubt> {
        let (mut cuts, mut children) = (Vec::new(), Vec::new());
        for witness in witnesses {
            let Some(cut) = Cut::find(calls, order, start, atoms, witness)? else {
                return Ok(None);
            };
            // What a child held that is no more makes no difference.
            children.push(witness.lives().then_some(cut.contents));
            cuts.push(cut.before);
        }
        let mut sequence: Vec<usize> = (0..cuts.len()).collect();
        let told = |fork: usize| {
            let before = |&i: &usize| cuts[fork][i] && cut::is_told(i, atoms, witnesses);
            (0..calls.len()).filter(before).count()
        };
        sequence.sort_by_key(|&fork| (!witnesses[fork].lives(), told(fork), fork));
        // Of two forks one came first, with all that came before it.
        for pair in sequence.windows(2) {
            let earlier = cuts[pair[0]].clone();
            for (i, _) in earlier.iter().enumerate().filter(|&(_, &before)| before) {
                if !cuts[pair[1]][i] && cut::is_told(i, atoms, witnesses) {
                    return Ok(None);
                }
                cuts[pair[1]][i] = true;
            }
        }
        Ok(Some(Plan { order: order.to_vec(), cuts, sequence, end, children }))
    }

    fn same_result(&self, other: &Plan) -> bool {
        self.end == other.end && self.children == other.children
    }

    /// The calls in this order, with the forks between them.
    fn arrange(self, calls: Vec<Change>, forks: Vec<(usize, Newborn)>) -> Vec<Change> {
        let mut calls: Vec<Option<Change>> = calls.into_iter().map(Some).collect();
        let mut forks: Vec<Option<Newborn>> =
            forks.into_iter().map(|(_, child)| Some(child)).collect();
        let mut arranged = Vec::with_capacity(calls.len() + forks.len());
        for &fork in &self.sequence {
            let before = self.order.iter().filter(|&&i| self.cuts[fork][i]);
            arranged.extend(before.filter_map(|&i| calls[i].take()));
            arranged.extend(forks[fork].take().map(Change::Fork));
        }
        arranged.extend(self.order.iter().filter_map(|&i| calls[i].take()));
        arranged
    }
}

type Visit<'a> = dyn FnMut(&[usize], Contents) -> Result<(), Doubt> + 'a;

/// Finds the orders in which calls can have happened. Calls keep the order in which they were read,
/// except that a move to a taken place waits for what frees the place.
struct Search<'a> {
    calls: &'a [Change],
    steps: u32,
}

impl Search<'_> {
    fn follow(
        &mut self,
        mut pending: Vec<usize>,
        mut now: Contents,
        mut done: Vec<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Doubt> {
        while let Some(&head) = pending.first() {
            self.steps += 1;
            if self.steps > SEARCH_STEPS {
                return Err(Doubt::TooMany(self.calls.len()));
            }
            let first = self.freeing(&pending, &now);
            let Some((&last, others)) = first.split_last() else {
                // Nothing is in the way, or nothing that anything frees: what we think is
                // registered there is not.
                pending.remove(0);
                now.happen(&self.calls[head]);
                done.push(head);
                continue;
            };
            let take = |call: usize,
                        pending: &mut Vec<usize>,
                        now: &mut Contents,
                        done: &mut Vec<usize>| {
                pending.retain(|&i| i != call);
                now.happen(&self.calls[call]);
                done.push(call);
            };
            let mut branches = Vec::with_capacity(others.len());
            for &call in others {
                let (mut p, mut n, mut d) = (pending.clone(), now.clone(), done.clone());
                take(call, &mut p, &mut n, &mut d);
                branches.push((p, n, d));
            }
            take(last, &mut pending, &mut now, &mut done);
            for (p, n, d) in branches {
                self.follow(p, n, d, visit)?;
            }
        }
        visit(&done, now)
    }

    /// Which calls can have happened before the first of `pending`, whose target is taken: those that
    /// free it, or free the target of one that does.
    fn freeing(&self, pending: &[usize], now: &Contents) -> Vec<usize> {
        let mut wanted = vec![pending[0]];
        let mut possible = Vec::new();
        let mut next = 0;
        while let Some(&blocked) = wanted.get(next) {
            next += 1;
            let Change::Move { to, .. } = &self.calls[blocked] else { continue };
            if !now.is_taken(to) {
                continue;
            }
            for &call in &pending[1..] {
                if wanted.contains(&call) || !frees(&self.calls[call], to) {
                    continue;
                }
                wanted.push(call);
                if !matches!(&self.calls[call], Change::Move { to, .. } if now.is_taken(to)) {
                    possible.push(call);
                }
            }
        }
        possible
    }
}

fn frees(change: &Change, target: &Range<Vpn>) -> bool {
    match change {
        Change::Move { from, unmaps, .. } => *unmaps && overlap(from, target),
        Change::Unmap(range) => overlap(range, target),
        Change::Fork(_) | Change::Remove(_) => false,
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Fork(_) => write!(f, "fork"),
            Change::Move { from, to, unmaps } => {
                let how = if *unmaps { "move" } else { "move, not unmap," };
                write!(f, "{how} {:x}+{:x} to {:x}", from.start, from.end - from.start, to.start)
            }
            Change::Remove(range) => {
                write!(f, "remove {:x}+{:x}", range.start, range.end - range.start)
            }
            Change::Unmap(range) => {
                write!(f, "unmap {:x}+{:x}", range.start, range.end - range.start)
            }
        }
    }
}

impl Change {
    /// The ranges that a call concerns.
    fn ranges(&self) -> impl Iterator<Item = &Range<Vpn>> {
        let (one, other) = match self {
            Change::Fork(_) => (None, None),
            Change::Unmap(range) | Change::Remove(range) => (Some(range), None),
            Change::Move { from, to, .. } => (Some(from), Some(to)),
        };
        one.into_iter().chain(other)
    }

    /// What `madvise` removes.
    pub(super) fn removed(&self) -> Option<Range<Vpn>> {
        match self {
            Change::Remove(range) => Some(range.clone()),
            Change::Fork(_) | Change::Move { .. } | Change::Unmap(_) => None,
        }
    }

    /// Whether a call takes away what `other` has put somewhere.
    fn uses(&self, other: &Change) -> bool {
        let source = match self {
            Change::Move { from, .. } | Change::Unmap(from) => from,
            Change::Fork(_) | Change::Remove(_) => return false,
        };
        matches!(other, Change::Move { to, .. } if overlap(to, source))
    }

    /// Whether two calls concern a common page: then their order matters.
    fn meets(&self, other: &Change) -> bool {
        self.ranges().any(|a| other.ranges().any(|b| overlap(a, b)))
    }
}

fn overlap(a: &Range<Vpn>, b: &Range<Vpn>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Whether a change concerns a page.
pub(super) fn touches_page(changes: &[Change], vpn: Vpn) -> bool {
    changes.iter().any(|change| change.ranges().any(|range| range.contains(&vpn)))
}
