//! Promises: those that wait, what they wait for, and what became of the kept ones.

use super::when::When;
use crate::machine::Cycle;
use crate::machine::memory::Request;

/// Index of a waiting promise.
pub(super) type Node = u32;

const NONE: u32 = u32::MAX;
const WAITING: u64 = 1 << 63;

/// What is to be done once all inputs of a promise are known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Nothing: it is kept so many cycles after them.
    Pass { after_cycles: u64 },
    /// A pipeline gets so many operations.
    Operate { pipeline: u32, operations: u64 },
    /// Memory gets a request.
    Ask(Request),
    /// The timeline hands out a token.
    Tell { token: u64 },
    /// Its cycle is not known yet: it is kept from outside.
    Outside,
}

/// A promise that waits for at most two others.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u64,
    action: Action,
    /// The latest of the inputs that are known.
    floor: Cycle,
    inputs: u8,
    /// What waits for this one: a list of [`link`]s.
    waiters: u32,
    /// The rest of the list that this one is in, for each of its inputs.
    rest: [u32; 2],
}

/// One end of a promise's two inputs, in a list.
fn link(node: Node, input: u32) -> u32 {
    node << 1 | input
}

/// All promises.
///
/// The cycle of a kept one is remembered until so many others were made that no more is asked of it
/// than that it is past.
pub(super) struct Promises {
    /// By the last bits of a promise's number: the cycle, or [`WAITING`] and the node.
    outcomes: Vec<u64>,
    made: u64,
    nodes: Vec<Waiting>,
    spare: Vec<Node>,
}

/// Outcomes that are remembered at least.
const REMEMBERED: usize = 1 << 14;

impl Promises {
    pub(super) fn new() -> Promises {
        Promises { outcomes: vec![0; REMEMBERED], made: 0, nodes: Vec::new(), spare: Vec::new() }
    }

    /// When it is, if that is known by now.
    #[inline]
    pub(super) fn cycle_of(&self, when: When) -> Option<Cycle> {
        when.known().or_else(|| self.outcome(when.promise_id()))
    }

    fn outcome(&self, id: u64) -> Option<Cycle> {
        if self.made - id > self.outcomes.len() as u64 {
            return Some(0);
        }
        let outcome = self.outcomes[self.slot(id)];
        (outcome & WAITING == 0).then_some(outcome)
    }

    fn slot(&self, id: u64) -> usize {
        id as usize & (self.outcomes.len() - 1)
    }

    /// A promise that waits for these inputs. Also the node if none of them has to be waited for.
    #[inline]
    pub(super) fn make(&mut self, action: Action, inputs: [When; 2]) -> (When, Option<Node>) {
        let id = self.next_id();
        let empty = Waiting { id, action, floor: 0, inputs: 0, waiters: NONE, rest: [NONE; 2] };
        let node = match self.spare.pop() {
            Some(node) => {
                self.nodes[node as usize] = empty;
                node
            }
            None => {
                self.nodes.push(empty);
                self.nodes.len() as Node - 1
            }
        };
        let slot = self.slot(id);
        self.outcomes[slot] = WAITING | u64::from(node);
        let ready = self.wait_for(node, inputs);
        (When::promise(id), ready.then_some(node))
    }

    /// A promise to be kept from outside will be kept when another is.
    pub(super) fn depend(&mut self, promise: When, on: When) -> Option<Node> {
        let node = self.node(promise)?;
        self.nodes[node as usize].action = Action::Pass { after_cycles: 0 };
        self.wait_for(node, [on, When::PAST]).then_some(node)
    }

    /// Whether everything is known already.
    fn wait_for(&mut self, node: Node, inputs: [When; 2]) -> bool {
        for (input, when) in inputs.into_iter().enumerate() {
            match self.cycle_of(when) {
                Some(cycle) => {
                    let floor = &mut self.nodes[node as usize].floor;
                    *floor = cycle.max(*floor);
                }
                None => {
                    let Some(on) = self.node(when) else { continue };
                    let first = self.nodes[on as usize].waiters;
                    let waiting = &mut self.nodes[node as usize];
                    waiting.rest[input] = first;
                    waiting.inputs += 1;
                    self.nodes[on as usize].waiters = link(node, input as u32);
                }
            }
        }
        self.nodes[node as usize].inputs == 0
    }

    fn node(&self, promise: When) -> Option<Node> {
        let id = promise.promise_id();
        if promise.known().is_some() || self.made - id > self.outcomes.len() as u64 {
            return None;
        }
        let outcome = self.outcomes[self.slot(id)];
        (outcome & WAITING != 0).then_some(outcome as Node)
    }

    /// The next number. The place of its outcome must not be that of a promise that still waits:
    /// else more places.
    fn next_id(&mut self) -> u64 {
        let id = self.made;
        self.made += 1;
        while self.outcomes[self.slot(id)] & WAITING != 0 {
            self.remember_more(id);
        }
        id
    }

    #[cold]
    fn remember_more(&mut self, made: u64) {
        let more = vec![0; 2 * self.outcomes.len()];
        let old = std::mem::replace(&mut self.outcomes, more);
        let oldest = made.saturating_sub(old.len() as u64);
        for id in oldest..made {
            let slot = self.slot(id);
            self.outcomes[slot] = old[id as usize & (old.len() - 1)];
        }
    }

    pub(super) fn action(&self, node: Node) -> Action {
        self.nodes[node as usize].action
    }

    /// When all inputs are there.
    pub(super) fn floor(&self, node: Node) -> Cycle {
        self.nodes[node as usize].floor
    }

    /// Keeps a promise. Appends the nodes that waited for nothing else, the last to come first.
    pub(super) fn keep(&mut self, node: Node, at: Cycle, ready: &mut Vec<Node>) {
        let Waiting { id, waiters, .. } = self.nodes[node as usize];
        let slot = self.slot(id);
        self.outcomes[slot] = at;
        self.spare.push(node);
        let mut next = waiters;
        while next != NONE {
            let waiting = &mut self.nodes[(next >> 1) as usize];
            waiting.floor = waiting.floor.max(at);
            waiting.inputs -= 1;
            if waiting.inputs == 0 {
                ready.push(next >> 1);
            }
            next = waiting.rest[(next & 1) as usize];
        }
    }
}
