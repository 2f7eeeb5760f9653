//! Events by their cycle, and in a cycle in the order in which they were entered.
//!
//! Nearly all come within some hundred cycles, so that a wheel with a slot for each of the next
//! cycles holds them; what comes later waits in a heap until the wheel reaches it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::machine::Cycle;

/// Cycles that the wheel reaches from now on, now included: a power of two.
const REACH: u64 = 1024;
const WORDS: usize = REACH as usize / 64;

/// No node.
const NONE: u32 = u32::MAX;

/// What is to happen.
#[derive(Debug)]
pub(super) struct Events {
    now: Cycle,
    /// By the last bits of the cycle.
    slots: Box<[Slot; REACH as usize]>,
    /// A bit for each slot that holds events.
    occupied: [u64; WORDS],
    nodes: Vec<Node>,
    /// The first of the nodes that hold nothing.
    spare: u32,
    /// Beyond the wheel: by cycle, then in their order.
    far: BinaryHeap<Reverse<(Cycle, u64, u64)>>,
    entered_far: u64,
}

/// The events of a cycle, oldest first: a list of nodes.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    what: u64,
    next: u32,
}

impl Events {
    /// None, at cycle 0.
    pub(super) fn new() -> Self {
        Events {
            now: 0,
            slots: Box::new([Slot { first: NONE, last: NONE }; REACH as usize]),
            occupied: [0; WORDS],
            nodes: Vec::new(),
            spare: NONE,
            far: BinaryHeap::new(),
            entered_far: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.occupied == [0; WORDS] && self.far.is_empty()
    }

    /// Enters an event; one that is due before now is due now.
    #[inline]
    pub(super) fn enter(&mut self, at: Cycle, what: u64) {
        let at = at.max(self.now);
        if at - self.now < REACH {
            self.place(at, what);
        } else {
            self.far.push(Reverse((at, self.entered_far, what)));
            self.entered_far += 1;
        }
    }

    #[inline]
    fn place(&mut self, at: Cycle, what: u64) {
        let node = self.node(what);
        let number = slot_of(at);
        let slot = &mut self.slots[number];
        match slot.first {
            NONE => {
                slot.first = node;
                self.occupied[number / 64] |= 1 << (number % 64);
            }
            _ => self.nodes[slot.last as usize].next = node,
        }
        slot.last = node;
    }

    #[inline]
    fn node(&mut self, what: u64) -> u32 {
        let new = Node { what, next: NONE };
        if self.spare == NONE {
            self.nodes.push(new);
            return self.nodes.len() as u32 - 1;
        }
        let node = self.spare;
        self.spare = std::mem::replace(&mut self.nodes[node as usize], new).next;
        node
    }

    /// The cycle of the first event.
    #[inline]
    pub(super) fn next(&self) -> Option<Cycle> {
        let first = slot_of(self.now);
        let (word, bit) = (first / 64, first % 64);
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return Some(self.now + u64::from(here.trailing_zeros()));
        }
        // The words after it, and at last its own again, of which only the bits before are left.
        for step in 1..=WORDS {
            let bits = self.occupied[(word + step) % WORDS];
            if bits != 0 {
                let ahead = 64 * step as u64 + u64::from(bits.trailing_zeros());
                return Some(self.now + ahead - bit as u64);
            }
        }
        self.far.peek().map(|Reverse((at, ..))| *at)
    }

    /// Moves on, to a cycle no later than that of the first event.
    #[inline]
    pub(super) fn advance(&mut self, now: Cycle) {
        debug_assert!(self.next().is_none_or(|next| now <= next));
        self.now = now;
        while let Some(&Reverse((at, _, what))) = self.far.peek()
            && at - now < REACH
        {
            self.far.pop();
            self.place(at, what);
        }
    }

    /// Takes the first event of this cycle, if there is one.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        let number = slot_of(self.now);
        let slot = &mut self.slots[number];
        let first = slot.first;
        if first == NONE {
            return None;
        }
        let node = &mut self.nodes[first as usize];
        slot.first = std::mem::replace(&mut node.next, self.spare);
        self.spare = first;
        if slot.first == NONE {
            self.occupied[number / 64] &= !(1 << (number % 64));
        }
        Some(node.what)
    }
}

fn slot_of(at: Cycle) -> usize {
    (at % REACH) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_core::random::Random;

    /// The same events out of a heap and out of the wheel, with distances on both sides of its
    /// reach, and with events that enter while others of their cycle are taken.
    #[test]
    fn they_come_as_out_of_a_heap() {
        let mut numbers = Random::new(7);
        let (mut events, mut model) = (Events::new(), BinaryHeap::new());
        let (mut now, mut entered, mut far) = (0, 0, 0);
        let mut enter = |events: &mut Events, model: &mut BinaryHeap<_>, now: Cycle, after| {
            events.enter(now + after, entered);
            model.push(Reverse((now + after, entered)));
            entered += 1;
            far += u64::from(after >= REACH);
        };
        for _ in 0..20_000 {
            for _ in 0..numbers.below(4) {
                let reach = [1, 3, 64, REACH - 1, REACH, 3 * REACH][numbers.below(6) as usize];
                enter(&mut events, &mut model, now, numbers.below(reach + 1));
            }
            let expected = model.peek().map(|&Reverse((at, _))| at);
            assert_eq!(events.next(), expected);
            let Some(next) = expected else { continue };
            now = next;
            events.advance(now);
            while let Some(&Reverse((at, what))) = model.peek()
                && at == now
            {
                assert_eq!(events.take(), Some(what), "cycle {now}");
                model.pop();
                if numbers.below(8) == 0 {
                    enter(&mut events, &mut model, now, 0);
                }
            }
            assert_eq!(events.take(), None);
        }
        assert!(far > 1000, "{far} events lay beyond the wheel");
    }
}
